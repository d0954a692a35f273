"""Answers lost on the network: the request was carried out, and its repeat changes nothing."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from console.audit.models import AuditEvent
from console.jobs.models import Attempt, JobClaim, LogChunk
from runner.protocol import Claim, from_wire
from tests.chaos.lossy import LossyNetwork, lossy_network
from tests.chaos.remote import RemoteRunner
from tests.console_app import line
from tests.console_process import Programs
from tests.people import ALL_TYPES, Tenant, fresh, new_key
from tests.waiting import wait_until


@pytest.fixture
def network(programs: Programs) -> Iterator[LossyNetwork]:
    with lossy_network(programs.server().url) as network:
        yield network


class Caller:
    """Says a thing once, and may not hear the answer."""

    def __init__(self, network: LossyNetwork, credential: str) -> None:
        self._network = network
        self._headers = {"Authorization": f"Bearer {credential}"}

    def say(self, method: str, path: str, body: dict[str, Any]) -> httpx.Response:
        return httpx.request(
            method,
            f"{self._network.url}{path}",
            json=body,
            headers=self._headers,
            trust_env=False,
            timeout=35,
        )

    def say_and_hear_nothing(self, method: str, path: str, body: dict[str, Any]) -> None:
        before = self._network.lost
        self._network.losing.set()
        with pytest.raises(httpx.TransportError):
            self.say(method, path, body)
        self._network.losing.clear()
        assert self._network.lost == before + 1, "the console had answered"


def test_a_lost_claim_a_lost_log_answer_and_a_lost_final_report(network: LossyNetwork, ours: Tenant) -> None:
    """One attempt, every answer of which is lost once. One console process serves all of it."""
    job, other = ours.request(spec=ours.new_spec("first")), ours.request(spec=ours.new_spec("second"))
    caller = Caller(network, ours.new_runner()[1])

    claiming = ("POST", "/api/jobs/claim", {"claim_key": new_key(), "types": ALL_TYPES})
    caller.say_and_hear_nothing(*claiming)
    assert fresh(job).status == "CLAIMED"
    claim = from_wire(Claim, caller.say(*claiming).json())
    assert claim.job_id == str(job.pk)
    assert Attempt.objects.count() == JobClaim.objects.count() == 1
    assert fresh(other).status == "QUEUED", "nothing else was handed out"

    path = f"/api/jobs/{claim.job_id}"
    starting = ("PUT", f"{path}/status", {"claim_id": claim.claim_id, "status": "PROCESSING"})
    caller.say_and_hear_nothing(*starting)
    assert caller.say(*starting).json() == {"status": "PROCESSING"}

    logging = ("POST", f"{path}/logs", {"claim_id": claim.claim_id, "first_seq": 1, "lines": [line("one")]})
    caller.say_and_hear_nothing(*logging)
    assert caller.say(*logging).json() == {"next_seq": 2}
    assert LogChunk.objects.filter(job=job).count() == 1

    result = {"summary": {"add": 3}}
    ending = ("PUT", f"{path}/status", {"claim_id": claim.claim_id, "status": "SUCCESS", "result": result})
    caller.say_and_hear_nothing(*ending)
    assert fresh(job).status == "SUCCESS"
    assert caller.say(*ending).json() == {"status": "SUCCESS"}
    different = caller.say("PUT", f"{path}/status", {"claim_id": claim.claim_id, "status": "FAILED"})
    assert (different.status_code, different.json()["code"]) == (409, "report_conflict")
    assert (fresh(job).status, fresh(job).result) == ("SUCCESS", result)
    assert AuditEvent.objects.filter(target_id=job.pk, action="job.succeeded").count() == 1


def test_a_held_claim_whose_caller_has_gone_leaves_no_job_with_nobody(
    network: LossyNetwork, ours: Tenant
) -> None:
    """The connection is cut while the request is held. The job that comes next goes to the next request."""
    lost = Caller(network, ours.new_runner("gone")[1])
    with pytest.raises(httpx.TransportError):
        httpx.post(
            f"{network.url}/api/jobs/claim",
            json={"claim_key": new_key(), "types": ALL_TYPES, "wait_seconds": 20},
            headers=lost._headers,
            timeout=1.0,
            trust_env=False,
        )
    job = ours.request()
    with RemoteRunner(network.url, ours.new_runner("waiting")[1]) as waiting:

        def is_claimed_by_the_one_who_waits() -> bool:
            claim = waiting.claim()
            return claim is not None and claim.job_id == str(job.pk)

        wait_until(is_claimed_by_the_one_who_waits, what="the job in the hands of the runner that is there")
