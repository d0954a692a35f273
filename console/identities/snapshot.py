"""The part of an identity that decides what a job does, as the job's snapshot names it."""

from typing import Any

from console.identities.models import CloudIdentity
from specs.snapshot import snapshot_hash


def outcome_digest(identity: CloudIdentity) -> str:
    """Hash everything about an identity that decides what a job does: another digest makes plans stale."""
    without_effect = identity.cloud.settings_without_effect
    deciding = {name: value for name, value in identity.settings.items() if name not in without_effect}
    return snapshot_hash(
        {
            "id": str(identity.pk),
            "provider": identity.provider,
            "external_id": identity.external_id,
            "settings": deciding,
        }
    )


def snapshot_field(identity: CloudIdentity) -> dict[str, Any]:
    """Return the identity as a job's snapshot names it."""
    return {"id": str(identity.pk), "settings_sha256": outcome_digest(identity)}
