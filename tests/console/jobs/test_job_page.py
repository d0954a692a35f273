"""The job page: why it waits, what each button will do, what it left, and who may see what of it."""

from __future__ import annotations

import html
import json
from typing import Any

from django.test import Client
from django.urls import reverse

from console.accounts.models import User
from console.audit.models import AuditEvent
from console.jobs.models import Job
from console.jobs.services import cancel_job, retry_job
from runner.protocol import Claim, JobType
from tests.console.jobs.test_errored_states import STATE, upload
from tests.console.plans.review import Person, revise
from tests.console_app import Console, RunnerClient, line
from tests.page_source import source_of
from tests.people import Tenant, fresh
from tests.plans_made import a_plan

OUTPUTS = {
    "url": {"sensitive": False, "value": "https://shop.example"},
    "password": {"sensitive": True},
    "a/b": {"sensitive": True},
}


def page_of(user: User, job: Job, part: str = "job", **more: Any) -> str:
    client = Client()
    client.force_login(user, backend="django.contrib.auth.backends.ModelBackend")
    answer = client.get(reverse(part, args=[job.organization.slug, job.number]), **more)
    assert answer.status_code == 200, answer.content
    return html.unescape(source_of(answer))


def deployed(console: Console, ours: Tenant, runner: RunnerClient) -> Job:
    """A DEPLOY that left outputs."""
    plan = a_plan(console, ours)
    answer = console.person(ours, "operator").post(f"/api/plans/{plan.pk}/deploy", json={})
    assert answer.status_code == 202, answer.text
    claim = runner.take_and_start()
    result = {"outputs": OUTPUTS, "summary": {"add": 1}}
    assert runner.succeed(claim, result=result, sensitive_outputs={"password": "s3cret"}).status_code == 200
    return Job.objects.select_related("organization", "spec").get(pk=claim.job_id)


def test_a_queued_job_says_why_it_waits_and_what_to_do(ours: Tenant) -> None:
    page = page_of(ours.viewer, ours.request())
    assert "Waiting:" in page
    assert "No runner serves pool default. Add a runner to this pool." in page
    assert "Lines will appear here as they are written." in page


def test_a_job_names_the_revision_that_it_is_of_and_a_deploy_and_a_retry_that_of_their_plan(
    console: Console, ours: Tenant, runner: RunnerClient
) -> None:
    operator = console.person(ours, "operator")
    plan = a_plan(console, ours)
    revise(ours.spec, variables={"name": "quay"})
    preview = operator.post("/api/jobs", json={"spec": str(ours.spec.pk), "type": "PLAN", "revision": 1})
    assert preview.json()["revision"] == 1
    claim = runner.take_and_start()
    assert runner.fail(claim, fatal=True).status_code == 200
    again = retry_job(job=fresh(Job.objects.get(pk=claim.job_id)), requested_by=ours.operator)
    cancel_job(job=again, requested_by=ours.operator)
    newest = ours.request()
    assert (plan.job.revision, again.revision, newest.revision) == (1, 1, 2)
    page = page_of(ours.viewer, newest)
    assert f'href="/ours/specs/{ours.spec.slug}/revisions/?before=3#revision-2">2</a>' in page
    assert 'id="revision-2"' in Person(ours.viewer).reads("spec-revisions", ours.spec)


def test_each_button_says_what_it_will_do(ours: Tenant, runner: RunnerClient) -> None:
    job = ours.request()
    assert "The job has not started" in page_of(ours.operator, job)
    assert "The job has not started" not in page_of(ours.viewer, job)
    claim = runner.take_and_start()
    running = page_of(ours.operator, job)
    assert "The runner interrupts Terraform" in running
    assert "heartbeat" in running
    assert "lease ends" in running
    cancel_job(job=fresh(job), requested_by=ours.operator)
    assert "Terraform may still be running there" in page_of(ours.operator, job)
    runner.report(claim, "CANCELLED")
    assert "Retry queues a new plan job with the same configuration." in page_of(ours.operator, job)


def test_an_unsaved_state_is_shown_with_what_to_do_and_is_downloaded_by_operators_on_record(
    ours: Tenant, runner: RunnerClient
) -> None:
    job = ours.request()
    claim = runner.take_and_start()
    assert "State not saved" not in page_of(ours.operator, job)
    assert upload(runner, claim) == 201
    page = page_of(ours.operator, job)
    assert "State not saved." in page
    assert "terraform state push errored.tfstate" in page
    assert "State not saved." in page_of(ours.operator, job, "job-header", headers={"HX-Request": "true"})
    assert "An operator can download it" in page_of(ours.viewer, job)
    address = reverse("job-errored-state", args=["ours", job.number, claim.claim_id])
    assert address in page
    assert downloaded(ours.operator, address) == (200, STATE)
    assert downloaded(ours.viewer, address)[0] == 403
    assert AuditEvent.objects.filter(action="job.errored_state_downloaded").count() == 1


def downloaded(user: User, address: str) -> tuple[int, bytes]:
    client = Client()
    client.force_login(user, backend="django.contrib.auth.backends.ModelBackend")
    answer = client.get(address)
    return answer.status_code, answer.content


def test_outputs_are_shown_and_a_secret_one_can_be_revealed_only_with_the_right_and_while_it_is_this_jobs(
    console: Console, ours: Tenant, runner: RunnerClient
) -> None:
    job = deployed(console, ours, runner)
    page = page_of(ours.operator, job)
    assert "https://shop.example" in page
    assert "s3cret" not in page
    assert 'aria-label="Reveal password"' in page
    assert 'aria-label="Reveal a/b"' not in page, "no address can name it"
    assert "Reveal" not in page_of(ours.viewer, job)
    deployed(console, ours, runner)
    assert "Reveal" not in page_of(ours.operator, job), "what would be revealed is another job's"


def test_huge_and_hostile_outputs_are_harmless(console: Console, ours: Tenant, runner: RunnerClient) -> None:
    ours.request()
    claim = runner.take_and_start()
    Job.objects.filter(pk=claim.job_id).update(type=JobType.DEPLOY)
    outputs = {
        "huge": {"sensitive": False, "value": "x" * 3_000_000},
        "<script>alert(1)</script>": {"sensitive": False, "value": "<script>alert(2)</script>\u202e"},
    }
    assert runner.succeed(claim, result={"outputs": outputs}).status_code == 200
    client = Client()
    client.force_login(ours.viewer, backend="django.contrib.auth.backends.ModelBackend")
    page = client.get(reverse("job", args=["ours", Job.objects.get().number])).content.decode()
    assert len(page) < 60_000
    assert "2,998,000 more characters" in page
    assert "<script>alert" not in page


def test_the_trail_and_the_export_tell_the_whole_story(
    console: Console, ours: Tenant, runner: RunnerClient
) -> None:
    job = deployed(console, ours, runner)
    page = page_of(ours.viewer, job)
    for action in ("job.requested", "job.claimed", "job.started", "job.succeeded"):
        assert action in page
    document = json.loads(page_of(ours.viewer, job, "job-export"))
    assert document["job"]["number"] == job.number
    assert [attempt["outcome"] for attempt in document["attempts"]] == ["succeeded"]
    assert document["events"][0]["action"] == "job.requested"
    assert document["job"]["result"]["outputs"]["password"] == {"sensitive": True}
    assert "s3cret" not in json.dumps(document)


def started(ours: Tenant, runner: RunnerClient) -> Claim:
    ours.request()
    return runner.take_and_start()


def test_the_whole_log_is_searched_as_it_reads(console: Console, ours: Tenant, runner: RunnerClient) -> None:
    claim = started(ours, runner)
    runner.log(
        claim, 1, "one", 'a "quoted" path\\here', "\x1b[31mcol\x1b[0moured", "ÄRGER", "100%", "one more"
    )

    def search(text: str) -> list[int]:
        answer = console.person(ours, "viewer").get(
            f"/api/jobs/{claim.job_id}/logs/search", params={"q": text}
        )
        return list(answer.json()["data"])

    assert search("ONE") == [1, 6]
    assert search('"quoted" PATH\\h') == [2]
    assert search("coloured") == [3]
    assert search("ärger") == [4]
    assert search("%") == [5]
    assert search("31m") == [], "what a terminal obeys is not text"
    assert search("data") == [], "only the text is searched"


def test_a_search_tells_how_much_there_is_and_is_only_for_those_who_may_read(
    console: Console, ours: Tenant, theirs: Tenant, runner: RunnerClient
) -> None:
    claim = started(ours, runner)
    runner.log(claim, 1, *[f"line {n}" for n in range(1, 401)])
    path = f"/api/jobs/{claim.job_id}/logs/search"
    answer = console.person(ours, "viewer").get(path, params={"q": "line", "limit": 3}).json()
    assert answer == {"data": [1, 2, 3], "total": 400}
    assert console.person(theirs, "admin").get(path, params={"q": "line"}).status_code == 404
    assert console.anybody().get(path, params={"q": "line"}).status_code == 401
    assert console.person(ours, "viewer").get(path).status_code == 400


def test_events_are_the_lines_that_say_more_than_their_text(
    console: Console, ours: Tenant, runner: RunnerClient
) -> None:
    claim = started(ours, runner)
    phase = {"kind": "phase", "phase": "init", "event": "start"}
    lines = [line("one"), line("two", **phase), line("three"), line("four", **phase)]
    assert runner.log_lines(claim, 1, lines).status_code == 200
    path = f"/api/jobs/{claim.job_id}/logs/events"
    viewer = console.person(ours, "viewer")
    assert [event["seq"] for event in viewer.get(path, params={"before": 9}).json()["data"]] == [2, 4]
    (event,) = viewer.get(path, params={"before": 3}).json()["data"]
    assert (event["seq"], event["data"]) == (2, phase)
