"""A Plan click passes few packages: whoever follows it has to change rooms at most eight times."""

from django.test import Client

from tests.people import Tenant
from tests.rooms import journey_of

MAX_CHANGES = 8


def test_a_plan_click_changes_rooms_at_most_eight_times(ours: Tenant) -> None:
    address = f"/{ours.organization.slug}/specs/{ours.spec.slug}/"
    client = Client()
    client.force_login(ours.operator)
    client.get(address)
    journey = journey_of(lambda: client.post(f"{address}plan"))
    assert ours.spec.jobs.count() == 1
    assert {"console/pages", "specs", "console/jobs", "console/live"} <= set(journey.rooms)
    assert journey.changes <= MAX_CHANGES, "\n".join(journey.files)
