"""The rail at the left of every page: its places, who sees them, and which addresses belong to each."""

from dataclasses import dataclass

from django.urls import ResolverMatch

from console.accounts.rights import Right

ORGANIZATION = "<slug:org>/"


@dataclass(frozen=True, slots=True)
class Place:
    """One place of the rail; its icon in `static/icons.svg` has the same key."""

    key: str
    label: str
    #: The name of the address that it leads to.
    address: str
    #: The first words of the addresses that belong to it.
    words: tuple[str, ...]
    #: The right that a person needs to be offered it.
    right: Right = Right.SEE


RAIL = (
    Place("dashboard", "Dashboard", "dashboard", words=("", "start")),
    Place("specs", "Specs", "specs", words=("specs", "variable-sets", "blueprints")),
    Place("jobs", "Jobs", "jobs", words=("jobs",)),
    Place("runners", "Runners", "runners", words=("runners",)),
    Place("identities", "Identities", "identities", words=("identities",)),
    Place("state", "State", "states", words=("state",)),
    Place("audit", "Audit", "audit", words=("audit",), right=Right.READ_AUDIT),
    Place("settings", "Settings", "settings", words=("settings",)),
)

#: Pages that belong elsewhere than their address says: a job is read as part of its Spec, and a Spec's
#: state among the states.
BELOW = {"jobs/<int:number>/": "specs", "specs/<slug:spec_slug>/state/": "state"}


def place_of(match: ResolverMatch | None) -> str:
    """Return the key of the place that an address belongs to; nothing for pages of no organization."""
    if match is None or not match.route.startswith(ORGANIZATION):
        return ""
    address = match.route.removeprefix(ORGANIZATION)
    for beginning, key in BELOW.items():
        if address.startswith(beginning):
            return key
    word = address.partition("/")[0]
    return next((place.key for place in RAIL if word in place.words), "")
