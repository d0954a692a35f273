"""Read Specs, their revisions, variables and outputs."""

from typing import Any

from django.db.models import Max

from console.accounts.models import Organization
from console.errors import NotFound
from specs.configuration_cache import load_configuration
from specs.models import Component, Output, Revision, Spec
from specs.variables import EffectiveVariable, effective_variables, resolve_variables


def specs_of(organization: Organization) -> list[Spec]:
    """Return the organization's Specs, each with its revision number and its components."""
    queryset = Spec.objects.filter(organization=organization, archived_at=None)
    queryset = queryset.select_related("organization", "pool")
    newest_number = Max("revisions__number")
    specs: list[Spec] = list(
        queryset.prefetch_related("components").annotate(revision_number=newest_number).order_by("name")
    )
    return specs


def current_number(spec: Spec) -> int:
    """Return only the number of the newest revision: its document can be large."""
    annotated_number: int | None = getattr(spec, "revision_number", None)
    return annotated_number or spec.revisions.aggregate(newest=Max("number"))["newest"]


def current_revision(spec: Spec) -> Revision:
    return spec.revisions.select_related("author").latest("number")


def revision_of(spec: Spec, number: int) -> Revision:
    revision = spec.revisions.select_related("author").filter(number=number).first()
    if revision is None:
        raise NotFound(f"{spec.name} has no revision {number}.")
    return revision


def revisions_of(spec: Spec, *, before: int | None = None, limit: int = 50) -> list[Revision]:
    """Return the newest revisions first, without their documents, which can be large."""
    revisions = spec.revisions.select_related("author").defer("document")
    if before is not None:
        revisions = revisions.filter(number__lt=before)
    return list(revisions.order_by("-number")[:limit])


def variables_of(spec: Spec) -> list[EffectiveVariable]:
    """Return every variable as the next job would see it, and the origin of its value."""
    document = current_revision(spec).document
    return effective_variables(spec, document, declared=load_configuration(document))


def snapshot_of(spec: Spec, revision: Revision | None = None) -> dict[str, Any]:
    """Return everything that decides the outcome of a job: a revision, and the current variables."""
    revision = revision or current_revision(spec)
    snapshot = dict(revision.document)
    snapshot.update(resolve_variables(spec, snapshot, declared=load_configuration(snapshot)))
    snapshot["terraform_version"] = spec.terraform_version or None
    snapshot["region"] = spec.region or None
    return snapshot


def outputs_of(spec: Spec) -> list[Output]:
    return list(spec.outputs.order_by("name"))


def components_of(spec: Spec) -> list[Component]:
    return sorted(spec.components.all(), key=lambda component: component.kind)
