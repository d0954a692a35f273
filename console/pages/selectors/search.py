"""Search over an organization's Specs and jobs, from the line at the top of every page."""

import re
from dataclasses import dataclass

from django.db.models import Case, IntegerField, Q, Value, When

from console.accounts.models import Organization
from console.jobs.models import Job
from specs.models import Spec

SHOWN = 20
NUMBER = re.compile(r"^#?(\d{1,12})$")


@dataclass(frozen=True, slots=True)
class Found:
    specs: list[Spec]
    jobs: list[Job]

    @property
    def nothing(self) -> bool:
        return not self.specs and not self.jobs


def search(organization: Organization, text: str) -> Found:
    """Specs by name, and jobs by number or by the Specs that were found."""
    text = text.strip()[:100]
    if not text:
        return Found([], [])
    specs = _specs(organization, text)
    return Found(specs, _jobs(organization, text, specs))


def _specs(organization: Organization, text: str) -> list[Spec]:
    """Match names that begin with the text before names that contain it."""
    rank = Case(
        When(Q(name__iexact=text) | Q(slug__iexact=text), then=Value(0)),
        When(name__istartswith=text, then=Value(1)),
        default=Value(2),
        output_field=IntegerField(),
    )
    matches = Spec.objects.filter(
        Q(name__icontains=text) | Q(slug__icontains=text), organization=organization
    ).annotate(rank=rank)
    return list(matches.select_related("organization").order_by("archived_at", "rank", "name")[:SHOWN])


def _jobs(organization: Organization, text: str, specs: list[Spec]) -> list[Job]:
    """The job of that number; else the newest of each of the first few Specs, one step down an index each."""
    jobs = Job.objects.select_related("organization", "spec", "requested_by").defer(
        "config_snapshot", "result"
    )
    if number := NUMBER.match(text):
        return list(jobs.filter(organization=organization, number=int(number.group(1))))
    if not specs:
        return []
    return list(jobs.filter(spec__in=specs[:5]).order_by("-pk")[:SHOWN])
