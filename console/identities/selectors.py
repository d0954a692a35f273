"""Reading cloud identities, their users, and the resources of their accounts."""

from itertools import groupby

from django.db.models import Count

from console.accounts.models import Organization
from console.identities.models import ANY, CloudIdentity, ResourceList
from console.identities.restrictions import may_use
from console.identities.services import Allowed
from console.jobs.models import Job
from console.runners.models import Pool
from specs.models import Spec


def identities_of(organization: Organization) -> list[CloudIdentity]:
    """Return the organization's identities by name, each with the number of Specs that use it."""
    identities = CloudIdentity.objects.filter(organization=organization).select_related("organization")
    return list(identities.annotate(spec_count=Count("specs")).order_by("name"))


def identities_for(spec: Spec) -> list[CloudIdentity]:
    """Return the identities that a Spec may use, and the one that it has."""
    identities = CloudIdentity.objects.filter(organization=spec.organization_id).order_by("name")
    return [identity for identity in identities if identity.pk == spec.identity_id or may_use(identity, spec)]


def identities_for_new(organization: Organization) -> list[CloudIdentity]:
    """Return the identities that a new Spec may use: those that name their Specs cannot name it."""
    identities = CloudIdentity.objects.filter(organization=organization).order_by("name")
    return [identity for identity in identities if ANY in identity.allowed_specs]


def specs_using(identity: CloudIdentity) -> list[Spec]:
    return list(Spec.objects.filter(identity=identity).order_by("name"))


def allowed_names(identity: CloudIdentity) -> Allowed:
    """Return who may use it, by names; deleted Specs and pools are left out."""
    return Allowed(
        specs=_names(Spec, identity.allowed_specs, "slug"),
        environments=identity.allowed_environments,
        pools=_names(Pool, identity.allowed_pools, "name"),
    )


def lists_by_region(identity: CloudIdentity) -> list[tuple[str, list[ResourceList]]]:
    """Return the resource lists of each region, those of the whole account first."""
    lists = sorted(identity.lists.all(), key=lambda item: (item.region != "global", item.region, item.kind))
    return [(region, list(group)) for region, group in groupby(lists, key=lambda item: item.region)]


def latest_jobs(identity: CloudIdentity, limit: int = 6) -> list[Job]:
    newest = (
        Job.objects.filter(identity=identity).select_related("organization", "requested_by").order_by("-id")
    )
    return list(newest.defer("config_snapshot", "result")[:limit])


def _names(model: type[Spec] | type[Pool], allowed: list[str], key: str) -> list[str]:
    if ANY in allowed:
        return [ANY]
    return sorted(model._default_manager.filter(pk__in=allowed).values_list(key, flat=True))
