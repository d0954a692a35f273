"""The base of every cloud: all that the console knows of one, as data and plain functions."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar
from uuid import UUID

from console.errors import BadInput
from console.identities.clouds.checks import quoted, unknown_setting
from console.identities.clouds.snippet import Snippet

Settings = dict[str, Any]

#: The controls by which a form asks for a setting.
TEXT, LONG, CHOICE, NUMBER, WORDS = "text", "long", "choice", "number", "words"

#: The kinds that a FETCH_RESOURCES lists, and that a blueprint's variable may name as its `picker`.
RESOURCE_KINDS = ("region", "vpc", "subnet", "hosted_zone", "cluster", "key_pair", "certificate")

#: The length of a session where the cloud decides it.
DEFAULT_SESSION_SECONDS = 3_600


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """One setting of an identity, as a form asks for it."""

    name: str
    label: str
    control: str = TEXT
    placeholder: str = ""
    hint: str = ""
    required: bool = False
    choices: tuple[tuple[str, str], ...] = ()


REGIONS = Setting(
    name="regions",
    label="Regions to scan",
    control=WORDS,
    hint="For pickers, separated by spaces. Leave empty to scan every region.",
)


@dataclass(frozen=True, slots=True)
class SpecSubjects:
    """The subjects of the tokens of one Spec's jobs, one for each action."""

    slug: str
    by_action: Mapping[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Trust:
    """The issuer and the subjects that an account is told to trust, for one identity."""

    issuer: str
    audience: str
    organization_id: UUID
    identity_id: UUID
    identity_slug: str
    external_id: str
    test_subject: str
    specs: tuple[SpecSubjects, ...]
    #: With `*`, for clouds that match patterns: as wide as the identity allows, and no wider.
    patterns: tuple[str, ...]


class Cloud:
    """One kind of account that jobs can act in. A cloud is a subclass and one line in the registry."""

    #: The value of `CloudIdentity.provider`, also on the wire.
    key: ClassVar[str]
    label: ClassVar[str]
    #: One sentence for the page on which a person chooses a cloud.
    summary: ClassVar[str]
    #: The first paragraph above the form, and the label of its button.
    introduction: str = "Step 1 of 3. Name what jobs will act as; the next page shows how to create it."
    submit_label: str = "Continue to setup"
    #: False: jobs use the credentials of the runner's machine. There is nothing to set up, and no session.
    has_sessions: bool = True
    #: The account trusts an external id, which Slipway makes and nobody chooses.
    has_external_id: bool = False
    #: Settings that no form asks for.
    derived_settings: tuple[str, ...] = ()
    #: Settings that do not change the outcome of a job, so that a change of them leaves plans fresh.
    settings_without_effect: frozenset[str] = frozenset({"regions"})
    #: The spelling of a region, and one for people to see.
    region_pattern: re.Pattern[str]
    region_example: str
    resource_kinds: tuple[str, ...] = RESOURCE_KINDS

    @property
    def form(self) -> tuple[Setting, ...]:
        """Return the settings that the form asks for."""
        raise NotImplementedError

    def check_settings(self, settings: Any) -> Settings:
        """Return the settings as they are stored, complete, or refuse them by field."""
        if not isinstance(settings, dict):
            raise BadInput("settings: expected an object", field="settings")
        names = (*(setting.name for setting in self.form), *self.derived_settings)
        for name in settings:
            if name not in names:
                raise unknown_setting(self.key, str(name), names)
        return self.checked(settings)

    def checked(self, settings: Settings) -> Settings:
        """Return the settings as they are stored; each name has been found known."""
        raise NotImplementedError

    def merge_settings(self, stored: Settings, changes: Settings) -> Settings:
        return {**stored, **changes}

    def account(self, settings: Settings) -> str:
        """Return the account, project or subscription; empty where only the runner knows it."""
        return ""

    def audience(self, settings: Settings) -> str:
        """Return the audience of a job's token; empty where credentials are obtained without a token."""
        return ""

    def is_assumed_by_runner(self, settings: Settings) -> bool:
        """Tell whether the runner's own credentials obtain the session, rather than a job's token."""
        return False

    def session_seconds(self, settings: Settings) -> int:
        """Return the length of session that is asked for."""
        return DEFAULT_SESSION_SECONDS

    def require_region(self, settings: Settings, region: str) -> None:
        """Refuse a Spec's region that this cloud does not have."""
        self._require_region(region)

    def claim_settings(
        self, settings: Settings, *, region: str, external_id: str, session_name: str
    ) -> Settings:
        """Return the settings that a claim carries to the runner."""
        return dict(settings)

    def setup(self, settings: Settings, trust: Trust) -> list[Snippet]:
        """Return the texts to run in the account, so that it trusts this console."""
        return []

    def _require_region(self, region: str) -> None:
        if region and not self.region_pattern.fullmatch(region):
            raise BadInput(
                f"region: {quoted(region)} is not a region of the identity's cloud, such as "
                f"{self.region_example}. Choose another region, or another identity.",
                field="region",
            )
