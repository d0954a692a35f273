"""The secrets of a state: values that it marks itself, and the Spec's own sensitive variables."""

from collections.abc import Iterator
from typing import Any

from console.state.masking import Secrets
from console.state.models import StateVersion
from console.state.resources import marked_values
from specs.selectors import current_revision
from specs.variables import secret_values, sets_of


def secrets_of(*states: tuple[StateVersion, dict[str, Any]]) -> Secrets:
    """Collect the secrets of these versions of one Spec, each with its content."""
    return Secrets.of(
        marked=[value for _, content in states for value in marked_values(content)],
        values=[value for version, _ in states for value in _spec_secrets(version)],
    )


def _spec_secrets(version: StateVersion) -> Iterator[Any]:
    """Terraform may not know that a variable is sensitive: its values now, and as the writing job had."""
    spec = version.spec
    bundles = [current_revision(spec).document, *(variable_set.variables for variable_set in sets_of(spec))]
    if version.job is not None:
        bundles.append(version.job.config_snapshot)
    for bundle in bundles:
        yield from secret_values(bundle, organization_id=spec.organization_id)
