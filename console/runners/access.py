"""The only doors to a runner and to a pool."""

from typing import Any
from uuid import UUID

from console.accounts.access import organization_to_administer
from console.accounts.models import Organization
from console.errors import NotFound
from console.runners.models import Pool, RegistrationToken, Runner


def runner_to_administer(user: Any, org_slug: str, runner_id: UUID) -> Runner:
    organization = organization_to_administer(user, org_slug)
    runners = Runner.objects.select_related("organization").filter(organization=organization)
    runner = runners.filter(pk=runner_id).first()
    if runner is None:
        raise NotFound
    return runner


def registration_to_administer(user: Any, org_slug: str, token_id: UUID) -> RegistrationToken:
    organization = organization_to_administer(user, org_slug)
    tokens = RegistrationToken.objects.select_related("runner", "pool", "organization")
    token = tokens.filter(pk=token_id, organization=organization).first()
    if token is None:
        raise NotFound
    return token


def pool_of(organization: Organization, name: str) -> Pool:
    pool = organization.pools.filter(name=name).first()
    if pool is None:
        raise NotFound(f"{organization.name} has no pool named {name}.")
    return pool
