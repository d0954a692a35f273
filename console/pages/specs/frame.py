"""Helpers that the pages of one Spec share: tabs, pools, environments."""

from typing import Any
from uuid import UUID

from console.accounts.models import Organization
from console.errors import BadInput
from console.runners.models import Pool
from console.runners.services import default_pool
from specs.models import Spec

ENVIRONMENTS = ("development", "staging", "production")


SOURCES = ("blueprint", "inline", "git")


def tab_context(spec: Spec, name: str) -> dict[str, Any]:
    return {"spec": spec, "tab": name}


def list_pools(organization: Organization) -> list[Pool]:
    default_pool(organization)
    return list(Pool.objects.filter(organization=organization).order_by("name"))


def find_pool(organization: Organization, text: str) -> Pool:
    try:
        pool = Pool.objects.filter(organization=organization, pk=UUID(text)).first() if text else None
    except ValueError:
        pool = None
    if text and pool is None:
        raise BadInput("There is no such pool. Choose one of the list.", field="pool")
    return pool or default_pool(organization)
