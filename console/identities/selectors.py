"""Reading cloud identities, who uses them, and what was found in their accounts."""

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
    """The organization's identities by name, each with how many Specs use it."""
    found = CloudIdentity.objects.filter(organization=organization).select_related("organization")
    return list(found.annotate(spec_count=Count("specs")).order_by("name"))


def identities_for(spec: Spec) -> list[CloudIdentity]:
    """Those that a Spec may use, and the one that it has."""
    found = CloudIdentity.objects.filter(organization=spec.organization_id).order_by("name")
    return [one for one in found if one.pk == spec.identity_id or may_use(one, spec)]


def identities_for_new(organization: Organization) -> list[CloudIdentity]:
    """Those that a Spec which is not there yet may use: an identity that names its Specs cannot name it."""
    found = CloudIdentity.objects.filter(organization=organization).order_by("name")
    return [one for one in found if ANY in one.allowed_specs]


def specs_using(identity: CloudIdentity) -> list[Spec]:
    return list(Spec.objects.filter(identity=identity).order_by("name"))


def allowed_names(identity: CloudIdentity) -> Allowed:
    """Who may use it, by the names that people know; what is gone since is left out."""
    return Allowed(
        specs=_names(Spec, identity.allowed_specs, "slug"),
        environments=identity.allowed_environments,
        pools=_names(Pool, identity.allowed_pools, "name"),
    )


def lists_by_region(identity: CloudIdentity) -> list[tuple[str, list[ResourceList]]]:
    """What is known of each region, those of the whole account first."""
    found = sorted(identity.lists.all(), key=lambda one: (one.region != "global", one.region, one.kind))
    return [(region, list(lists)) for region, lists in groupby(found, key=lambda one: one.region)]


def latest_jobs(identity: CloudIdentity, limit: int = 6) -> list[Job]:
    newest = (
        Job.objects.filter(identity=identity).select_related("organization", "requested_by").order_by("-id")
    )
    return list(newest.defer("config_snapshot", "result")[:limit])


def _names(model: type[Spec] | type[Pool], allowed: list[str], key: str) -> list[str]:
    if ANY in allowed:
        return [ANY]
    return sorted(model._default_manager.filter(pk__in=allowed).values_list(key, flat=True))
