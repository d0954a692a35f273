"""Reading state versions."""

from typing import Any

from django.db.models import Count, OuterRef, Q, QuerySet, Subquery

from console.accounts.models import Organization
from console.errors import NotFound
from console.state.models import Backend, BackendKind, StateVersion
from specs.models import Spec


def newest_version(spec: Spec) -> StateVersion | None:
    """The newest version without its body."""
    return _versions().filter(spec=spec).order_by("-serial").first()


def versions_of(spec: Spec, *, before: int | None = None, limit: int = 50) -> list[StateVersion]:
    """The spec's versions, newest first, from below the serial `before`."""
    versions = _versions().filter(spec=spec)
    if before is not None:
        versions = versions.filter(serial__lt=before)
    return list(versions.order_by("-serial")[:limit])


def version_with_body(spec: Spec, serial: int) -> StateVersion:
    version = (
        StateVersion.objects.select_related("spec__organization", "job", "author")
        .filter(spec=spec, serial=serial)
        .first()
    )
    if version is None:
        raise NotFound(
            f"{spec.name} has no state version with serial {serial}: it never was, or is no longer kept."
        )
    return version


def specs_with_state(
    organization: Organization, *, after: tuple[str, str] | None = None, limit: int = 100
) -> list[Any]:
    """The organization's specs, each with its newest version, their number, its lock and where it is kept.

    By name, from beyond the name and the id `after`.
    """
    newest = StateVersion.objects.filter(spec=OuterRef("pk")).order_by("-serial").values("pk")[:1]
    specs: list[Any] = list(
        Spec.objects.filter(_beyond(after), organization=organization, archived_at=None)
        .select_related("organization", "state_lock__job", "state_lock__user", "state_backend")
        .annotate(newest_state=Subquery(newest), state_count=Count("state_versions"))
        .order_by("name", "pk")[:limit]
    )
    shared = Backend.objects.filter(organization=organization, spec=None).first()
    versions = _versions().in_bulk([spec.newest_state for spec in specs if spec.newest_state])
    for spec in specs:
        spec.newest = versions.get(spec.newest_state)
        spec.kept_in = _backend_label(spec, shared)
    return specs


def _beyond(after: tuple[str, str] | None) -> Q:
    if after is None:
        return Q()
    name, pk = after
    return Q(name__gt=name) | Q(name=name, pk__gt=pk)


def _backend_label(spec: Any, shared: Backend | None) -> str:
    """Name the backend by the rule of `backends.backend_of`, without a query for each Spec."""
    own = getattr(spec, "state_backend", None)
    backend = own or (shared if spec.newest is None else None)
    return BackendKind(backend.kind if backend else BackendKind.CONSOLE).label


def _versions() -> QuerySet[StateVersion]:
    return StateVersion.objects.select_related("spec__organization", "job", "author").defer("sealed_body")
