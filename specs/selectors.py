"""Reading specs."""

from django.db.models import Max

from console.accounts.models import Organization
from console.errors import NotFound
from specs.declared import declared_by
from specs.models import Component, Output, Revision, Spec
from specs.variables import Effective, effective


def specs_of(organization: Organization) -> list[Spec]:
    """The organization's specs with the number of its revision and the components of each."""
    found = Spec.objects.filter(organization=organization, archived_at=None)
    found = found.select_related("organization", "pool")
    newest_number = Max("revisions__number")
    specs: list[Spec] = list(
        found.prefetch_related("components").annotate(revision_number=newest_number).order_by("name")
    )
    return specs


def current_number(spec: Spec) -> int:
    """The number alone: the document with it can be large."""
    known: int | None = getattr(spec, "revision_number", None)
    return known or spec.revisions.aggregate(newest=Max("number"))["newest"]


def current_revision(spec: Spec) -> Revision:
    return spec.revisions.select_related("author").latest("number")


def revision_of(spec: Spec, number: int) -> Revision:
    found = spec.revisions.select_related("author").filter(number=number).first()
    if found is None:
        raise NotFound(f"{spec.name} has no revision {number}.")
    return found


def revisions_of(spec: Spec, *, before: int | None = None, limit: int = 50) -> list[Revision]:
    """The newest first, without their documents, which can be large."""
    revisions = spec.revisions.select_related("author").defer("document")
    if before is not None:
        revisions = revisions.filter(number__lt=before)
    return list(revisions.order_by("-number")[:limit])


def variables_of(spec: Spec) -> list[Effective]:
    """Every variable as the next job would see it, and where its value comes from."""
    document = current_revision(spec).document
    return effective(spec, document, declared=declared_by(document))


def outputs_of(spec: Spec) -> list[Output]:
    return list(spec.outputs.order_by("name"))


def components_of(spec: Spec) -> list[Component]:
    return sorted(spec.components.all(), key=lambda one: one.kind)
