"""Temporary cloud credentials for one attempt: obtained, kept fresh while Terraform runs, gone afterwards."""

from __future__ import annotations

import fnmatch
from collections.abc import Callable, Mapping

from runner.credentials.ambient import Ambient
from runner.credentials.aws import Aws
from runner.credentials.azure import Azure
from runner.credentials.gcp import Gcp
from runner.credentials.handing import Cloud, Handed, Occasion
from runner.outcome import StepFailed

_CLOUDS: dict[str, Callable[[Occasion], Cloud]] = {
    "aws": Aws, "gcp": Gcp, "azure": Azure, "ambient": Ambient
}  # fmt: skip


def cloud_of(occasion: Occasion) -> Cloud:
    """The identity's cloud. Asks the console for a token where one is needed."""
    provider = occasion.identity.provider
    if provider not in _CLOUDS:
        raise StepFailed(
            "provider_unknown",
            f"This runner does not know the cloud {provider!r}. Update the runner.",
            fatal=True,
        )
    return _CLOUDS[provider](occasion)


def with_credentials(
    environ: Mapping[str, str], handed: Handed, *, runner_environ: Mapping[str, str]
) -> tuple[dict[str, str], list[str]]:
    """Terraform's environment with the credentials in it, and the names that had to give way to them."""
    outranked = sorted(name for name in environ if _matches(name, handed.outranked))
    kept = {name: value for name, value in environ.items() if name not in outranked}
    passed = {name: value for name, value in runner_environ.items() if _matches(name, handed.passed)}
    return {**passed, **handed.defaults, **kept, **handed.environ}, outranked


def _matches(name: str, patterns: tuple[str, ...]) -> bool:
    return any(fnmatch.fnmatchcase(name, pattern) for pattern in patterns)
