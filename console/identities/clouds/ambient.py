"""The runner's own credentials: jobs may do whatever the machine of the runner is allowed to do."""

from collections.abc import Mapping

from console.identities.clouds.checks import ascii_pattern, checked_regions, matching, wrong_value
from console.identities.clouds.cloud import CHOICE, REGIONS, Cloud, Setting, Settings


class Ambient(Cloud):
    key = "ambient"
    label = "Runner credentials"
    summary = "Nothing to set up: jobs have the permissions of the runner’s machine."
    introduction = (
        "Jobs use the credentials of the runner’s machine. Anyone who can use this identity has the "
        "permissions of that machine."
    )
    submit_label = "Create identity"
    has_sessions = False
    region_pattern = ascii_pattern(r"[a-z0-9-]{1,40}")
    region_example = "eu-central-1"

    def __init__(self, *, clouds: Mapping[str, Cloud]) -> None:
        self._clouds = clouds

    @property
    def form(self) -> tuple[Setting, ...]:
        hint = Setting(
            name="provider_hint",
            label="Which cloud they are for",
            control=CHOICE,
            hint="So that a test can ask that cloud who the runner is, and its resources can be scanned.",
            choices=(("", "none of these"), *((key, cloud.label) for key, cloud in self._hinted().items())),
        )
        return (hint, REGIONS)

    def checked(self, settings: Settings) -> Settings:
        hint = settings.get("provider_hint") or ""
        hinted = self._hinted()
        if not isinstance(hint, str) or (hint and hint not in hinted):
            raise wrong_value("provider_hint", hint, f"{', '.join(hinted)}, or nothing")
        cloud = hinted.get(hint, self)
        check = matching("regions", cloud.region_pattern, f"a region such as {cloud.region_example}")
        return {"provider_hint": hint, "regions": checked_regions(settings, check)}

    def require_region(self, settings: Settings, region: str) -> None:
        """Refuse a region that the hinted cloud does not have; without a hint, any region may exist."""
        if hint := settings.get("provider_hint"):
            self._clouds[hint].require_region({}, region)

    def _hinted(self) -> dict[str, Cloud]:
        """Return the clouds that the runner's credentials can be for."""
        return {key: cloud for key, cloud in self._clouds.items() if cloud is not self}
