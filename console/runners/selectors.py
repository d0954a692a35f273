"""Reading runners, and the progress of a new one's registration."""

from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from django.db.models import Count, Exists, OuterRef
from django.utils import timezone

from console.accounts.models import Organization
from console.ids import first_id_at
from console.runners.models import RegistrationToken, Runner, RunnerCredential, RunnerStatus

A_DAY = timedelta(days=1)


def runners_of(organization: Organization) -> list[Runner]:
    """The organization's runners with the number of slots in use, those online first."""
    runners = Runner.objects.filter(organization=organization).annotate(busy_slots=Count("claims"))
    return list(runners.prefetch_related("pools").order_by("-status", "name"))


def runners_in_detail(organization: Organization) -> list[Runner]:
    """Return the runners with the number of jobs of the last day, and whether they are revoked."""
    valid = RunnerCredential.objects.filter(runner=OuterRef("pk"), revoked_at=None)
    runners = (
        Runner.objects.filter(organization=organization)
        .annotate(busy_slots=Count("claims"), is_revoked=~Exists(valid))
        .prefetch_related("pools")
        .order_by("-status", "name")
    )
    # An attempt's id is of the time of its claim, so the last day is a range of ids.
    begun = Runner.objects.filter(
        organization=organization, attempts__claim_id__gte=first_id_at(timezone.now() - A_DAY)
    )
    jobs_by_runner = dict(begun.annotate(taken=Count("attempts")).values_list("pk", "taken"))
    details: list[Any] = list(runners)
    for runner in details:
        runner.jobs_today = jobs_by_runner.get(runner.pk, 0)
    return details


@dataclass(frozen=True, slots=True)
class Arrival:
    """The progress of the runner that registers with a token."""

    token: RegistrationToken
    runner: Runner | None
    online: bool
    #: True when a job of its own has succeeded.
    proven: bool

    @property
    def contacted(self) -> bool:
        return self.token.contacted_at is not None

    @property
    def expired(self) -> bool:
        return self.runner is None and self.token.expires_at <= timezone.now()


def arrival_by(token: RegistrationToken) -> Arrival:
    runner = token.runner
    if runner is None:
        return Arrival(token, None, online=False, proven=False)
    proven = Runner.objects.filter(pk=runner.pk, attempts__outcome="succeeded").exists()
    return Arrival(token, runner, online=runner.status == RunnerStatus.ONLINE, proven=proven)
