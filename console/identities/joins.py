"""The hooks by which cloud identities take part in the life of Specs and jobs."""

from typing import Any

from console.accounts.models import Organization
from console.identities import jobs as identity_jobs
from console.identities.access import identity_of
from console.identities.claims import identity_access, identity_field, require_identity
from console.identities.restrictions import require_allowed
from console.jobs import hooks
from runner.protocol import JobType
from specs import hooks as spec_hooks
from specs.models import Spec


class SpecIdentities:
    """The answers to what Specs ask about identities: see `specs.hooks.Identities`."""

    def find(self, organization: Organization, name: Any) -> Any:
        return identity_of(organization, name)

    def require_usable(self, spec: Spec) -> None:
        assert spec.identity is not None
        require_allowed(identity=spec.identity, spec=spec)
        spec.identity.cloud.require_region(spec.identity.settings, spec.region)


def join() -> None:
    spec_hooks.identities = SpecIdentities()
    hooks.before_request.append(require_identity)
    hooks.snapshot_fields.append(identity_field)
    hooks.claim_fields.append(identity_access)
    hooks.on_end(identity_jobs.keep_test, types=[JobType.CONNECTION_TEST])
    hooks.on_end(identity_jobs.keep_fetch, types=[JobType.FETCH_RESOURCES])
