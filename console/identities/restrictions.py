"""The restrictions of an identity: which Specs, environments and pools may use it."""

from uuid import UUID

from console.errors import IdentityNotAllowed
from console.identities.models import ANY, CloudIdentity
from console.runners.models import Pool
from specs.models import Spec


def require_allowed(*, identity: CloudIdentity, spec: Spec, pool_id: UUID | None = None) -> None:
    """Refuse a Spec, an environment or a pool that the identity does not allow, and say which of them."""
    if not _allows(identity.allowed_specs, spec.pk):
        raise IdentityNotAllowed(
            f"Identity {identity.name} does not allow the Spec {spec.name}. Ask an admin to allow it, or "
            "choose another identity.",
            field="identity",
        )
    if not _allows(identity.allowed_environments, spec.environment):
        raise IdentityNotAllowed(
            f"Identity {identity.name} does not allow the environment {spec.environment}. Ask an admin to "
            "allow it, or choose another identity.",
            field="identity",
        )
    require_pool(identity=identity, pool_id=pool_id or spec.pool_id)


def require_pool(*, identity: CloudIdentity, pool_id: UUID) -> None:
    if not _allows(identity.allowed_pools, pool_id):
        name = Pool.objects.filter(pk=pool_id).values_list("name", flat=True).first()
        raise IdentityNotAllowed(
            f"Identity {identity.name} does not allow the runners of pool {name}. Ask an admin to allow "
            "them, or choose another pool.",
            field="pool",
        )


def may_use(identity: CloudIdentity, spec: Spec) -> bool:
    try:
        require_allowed(identity=identity, spec=spec)
    except IdentityNotAllowed:
        return False
    return True


def pool_to_test_with(identity: CloudIdentity) -> Pool | None:
    """Return the default pool if the identity allows it, else another that it allows, else None."""
    pools = Pool.objects.filter(organization=identity.organization_id).order_by("name")
    allowed = [pool for pool in pools if _allows(identity.allowed_pools, pool.pk)]
    return next((pool for pool in allowed if pool.name == "default"), next(iter(allowed), None))


def _allows(allowed: list[str], name: object) -> bool:
    return ANY in allowed or str(name) in allowed
