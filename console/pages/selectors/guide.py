"""The first-run guide: four steps, each ticked by what is there, none by a click."""

from dataclasses import dataclass

from django.db.models import Exists

from console.accounts.models import Organization
from console.identities.models import CloudIdentity
from console.jobs.models import Job
from console.runners.models import Runner, RunnerStatus
from specs.models import Spec


@dataclass(frozen=True, slots=True)
class Guide:
    """The steps of the first-run guide, and which of them an organization has taken."""

    runner_online: bool
    runner_known: bool
    cloud_connected: bool
    cloud_skipped: bool
    spec_made: bool
    planned: bool
    closed: bool
    first_spec: Spec | None

    @property
    def steps(self) -> tuple[bool, ...]:
        return (self.runner_online, self.cloud_connected or self.cloud_skipped, self.spec_made, self.planned)

    @property
    def done(self) -> int:
        return sum(self.steps)

    @property
    def complete(self) -> bool:
        return all(self.steps)

    @property
    def next_step(self) -> int:
        """The first that is not done, from 1; 0 when all are."""
        return 0 if self.complete else self.steps.index(False) + 1


def guide_of(organization: Organization) -> Guide:
    """One look: everything that the ticks stand for, and a Spec to go on with."""
    runners = Runner.objects.filter(organization=organization)
    specs = Spec.objects.filter(organization=organization, archived_at=None)
    organizations = Organization.objects.filter(pk=organization.pk).annotate(
        has_online=Exists(runners.filter(status=RunnerStatus.ONLINE)),
        has_runner=Exists(runners),
        has_identity=Exists(CloudIdentity.objects.filter(organization=organization)),
        has_spec=Exists(specs),
        # Few plans come before the first one that succeeds, so this ends soon.
        has_plan=Exists(Job.objects.filter(organization=organization, type="PLAN", status="SUCCESS")),
    )
    facts = organizations.get()
    return Guide(
        runner_online=facts.has_online,
        runner_known=facts.has_runner,
        cloud_connected=facts.has_identity,
        cloud_skipped=facts.cloud_skipped_at is not None,
        spec_made=facts.has_spec,
        planned=facts.has_plan,
        closed=facts.guide_closed_at is not None,
        first_spec=specs.select_related("organization").order_by("pk").first(),
    )
