"""The results of a deploy on its Spec: outputs, components, and no secret anywhere else."""

from __future__ import annotations

from typing import Any

from console.audit.models import AuditEvent
from console.jobs.models import Job
from console.plans.services import request_deploy
from specs.models import Spec
from tests.console_app import Console
from tests.people import Tenant
from tests.plans_made import a_plan
from tests.specs.editing import Browser, address, everything_stored, refusal

SECRET = "correct-horse-battery-staple"


def output(value: Any, **more: Any) -> dict[str, Any]:
    return {"type": "string", "sensitive": False, "value": value, **more}


OUTPUTS = {
    "cluster_endpoint": output("https://harbour.cluster.example"),
    "argocd_url": output("https://argocd.harbour.example"),
    "database_endpoint": output("harbour.database.example:5432"),
    "dns_zone_name": output("harbour.example"),
    "database_password": {"type": "string", "sensitive": True},
}


def deploy(console: Console, tenant: Tenant, spec: Spec, outputs: dict[str, Any], **report: Any) -> Job:
    """A DEPLOY that reports these outputs over the wire."""
    plan = a_plan(console, tenant, spec=spec)
    job = request_deploy(plan=plan, requested_by=tenant.operator, confirmation=spec.name)
    runner = console.new_runner(tenant, f"applier-{job.number}")
    claim = runner.take_and_start()
    result = {"summary": {"add": 1, "change": 0, "destroy": 0}, "outputs": outputs}
    answer = runner.succeed(claim, result=result, **report)
    assert answer.status_code == 200, answer.text
    again = runner.succeed(claim, result=result, **report)
    assert (again.status_code, again.json()) == (200, {"status": "SUCCESS"})
    return Job.objects.get(pk=job.pk)


def test_outputs_are_kept_and_known_ones_fill_the_components(console: Console, ours: Tenant) -> None:
    deploy(console, ours, ours.spec, OUTPUTS, sensitive_outputs={"database_password": SECRET})
    api = console.person(ours, "viewer")
    components = api.get(address(ours.spec)).json()["components"]
    assert components == {
        "cluster": "https://harbour.cluster.example",
        "argocd": "https://argocd.harbour.example",
        "database": "harbour.database.example:5432",
        "dns_zone": "harbour.example",
    }
    output_rows = {entry["name"]: entry for entry in api.get(address(ours.spec, "/outputs")).json()["data"]}
    assert output_rows["argocd_url"]["value"] == "https://argocd.harbour.example"
    assert (output_rows["database_password"]["sensitive"], output_rows["database_password"]["value"]) == (
        True,
        None,
    )
    page = Browser(ours, ours.viewer).reads("specs/network/")
    assert "Argo CD" in page
    assert 'href="https://argocd.harbour.example"' in page
    assert "DNS zone" in page


def test_a_sensitive_output_is_nowhere_but_sealed(console: Console, ours: Tenant) -> None:
    """Also when a runner sends it where it does not belong."""
    careless = {"database_password": {"type": "string", "sensitive": True, "value": SECRET}}
    job = deploy(
        console, ours, ours.spec, OUTPUTS | careless, sensitive_outputs={"database_password": SECRET}
    )
    assert job.result is not None
    assert job.result["outputs"]["database_password"] == {"type": "string", "sensitive": True}
    api, browser = console.person(ours, "admin"), Browser(ours, ours.admin)
    for path in (
        address(ours.spec), address(ours.spec, "/outputs"), f"/api/jobs/{job.pk}",
        f"/api/jobs/{job.pk}/events", f"/api/jobs/{job.pk}/attempts", f"/api/jobs/{job.pk}/logs",
    ):  # fmt: skip
        answer = api.get(path)
        assert answer.status_code == 200, path
        assert SECRET not in answer.text, path
    for path in ("specs/network/", f"jobs/{job.number}/", f"jobs/{job.number}/header"):
        assert SECRET not in browser.reads(path), path
    assert SECRET not in everything_stored()


def test_an_operator_can_reveal_it_and_that_is_on_record(
    console: Console, ours: Tenant, theirs: Tenant
) -> None:
    deploy(console, ours, ours.spec, OUTPUTS, sensitive_outputs={"database_password": SECRET})
    path = address(ours.spec, "/outputs/database_password/reveal")
    answer = console.person(ours, "operator").post(path)
    assert answer.json() == {"name": "database_password", "value": SECRET}
    assert answer.headers["cache-control"] == "no-store"
    assert console.person(ours, "viewer").post(path).status_code == 403
    assert console.person(theirs, "admin").post(path).status_code == 404
    fragment = Browser(ours, ours.operator).post("specs/network/outputs/database_password/reveal")
    assert SECRET in fragment.content.decode()
    assert "no-store" in fragment["Cache-Control"]
    assert (
        Browser(ours, ours.viewer).post("specs/network/outputs/database_password/reveal").status_code == 403
    )
    assert (
        Browser(ours, ours.operator).get("specs/network/outputs/database_password/reveal").status_code == 400
    )
    events = AuditEvent.objects.filter(action="output.revealed")
    assert [(entry.actor_name, entry.data) for entry in events] == [
        ("ours-operator", {"output": "database_password"}),
        ("ours-operator", {"output": "database_password"}),
    ]
    assert SECRET not in everything_stored()


def test_what_a_runner_did_not_send_cannot_be_revealed(console: Console, ours: Tenant) -> None:
    deploy(console, ours, ours.spec, OUTPUTS)
    api = console.person(ours, "operator")
    answer = api.post(address(ours.spec, "/outputs/database_password/reveal"))
    assert (answer.status_code, "Deploy again" in refusal(answer)[2]) == (404, True)
    assert api.post(address(ours.spec, "/outputs/nothing/reveal")).status_code == 404


def test_what_a_later_deploy_no_longer_reports_is_gone(console: Console, ours: Tenant) -> None:
    deploy(console, ours, ours.spec, OUTPUTS)
    deploy(
        console,
        ours,
        ours.spec,
        {"cluster_endpoint": output("https://other.example"), "argocd_url": output(None)},
    )
    api = console.person(ours, "viewer")
    assert api.get(address(ours.spec)).json()["components"] == {"cluster": "https://other.example"}
    assert {entry["name"] for entry in api.get(address(ours.spec, "/outputs")).json()["data"]} == {
        "cluster_endpoint",
        "argocd_url",
    }
    assert "gone" in Browser(ours, ours.viewer).reads("specs/network/")


def test_after_a_destroy_everything_is_marked_gone(console: Console, ours: Tenant) -> None:
    deploy(console, ours, ours.spec, OUTPUTS, sensitive_outputs={"database_password": SECRET})
    body = {"spec": str(ours.spec.pk), "type": "DESTROY", "confirmation": "network"}
    api = console.person(ours, "operator")
    assert api.post("/api/jobs", json=body).status_code == 202
    runner = console.new_runner(ours, "destroyer")
    assert runner.succeed(runner.take_and_start(), result={"summary": {"destroy": 5}}).status_code == 200
    spec = api.get(address(ours.spec)).json()
    assert (spec["components"], spec["destroyed_at"] is not None) == ({}, True)
    for entry in api.get(address(ours.spec, "/outputs")).json()["data"]:
        assert (entry["value"], entry["gone_at"] is not None) == (None, True)
    assert ours.spec.outputs.exclude(sealed_value=None).count() == 0
    assert api.post(address(ours.spec, "/outputs/database_password/reveal")).status_code == 404
    page = Browser(ours, ours.viewer).reads("specs/network/")
    assert "harbour.cluster.example" not in page
    assert "gone" in page


def test_outputs_that_make_no_sense_do_not_stop_the_deploy(console: Console, ours: Tenant) -> None:
    """The apply has happened: whatever the runner says of outputs, that must be recorded."""
    strange: dict[str, Any] = {"a" * 300: output(1), "plain": "text", "list": output([1, {"a": None}])}
    assert deploy(console, ours, ours.spec, strange).status == "SUCCESS"
    names = set(ours.spec.outputs.values_list("name", flat=True))
    assert names == {"a" * 200, "list"}
