"""Plans as people meet them: documents of Terraform's, states, revisions, and the pages of a person."""

from __future__ import annotations

import html
import json
from typing import Any

from django.test import Client
from django.urls import reverse

from console.accounts.models import User
from console.jobs.models import Job
from console.jobs.services import request_plan
from console.plans.models import Plan
from console.state.services import import_state
from specs.models import Revision, Spec
from specs.selectors import current_revision
from tests.console_app import Console
from tests.page_source import source_of
from tests.people import Tenant

#: What Django's test client returns has no public name.
Answer = Any

LINEAGE = "3f9f2c1e-lineage"


def resource(address: str, *actions: str, **more: Any) -> dict[str, Any]:
    """One of a plan's `resource_changes`, as Terraform writes them."""
    type, name = address.split(".")[-2:]
    change: dict[str, Any] = {"actions": list(actions), "before": None, "after": None, "after_unknown": {}}
    change |= {"before_sensitive": False, "after_sensitive": {}} | more.pop("change", {})
    return {"address": address, "mode": "managed", "type": type, "name": name, "change": change, **more}


def document(*resources: dict[str, Any], **more: Any) -> bytes:
    return json.dumps({"resource_changes": list(resources), **more}).encode()


def mostly_kept(*lost: dict[str, Any], kept: int) -> bytes:
    """A plan that loses some resources, and leaves so many as they are."""
    return document(*lost, *(resource(f"terraform_data.kept{index}", "no-op") for index in range(kept)))


def state(*names: str, serial: int = 1, lineage: str = LINEAGE, **attributes: Any) -> bytes:
    resources = [
        {"mode": "managed", "type": "terraform_data", "name": name, "instances": [{"attributes": attributes}]}
        for name in names
    ]
    return json.dumps(
        {"version": 4, "serial": serial, "lineage": lineage, "outputs": {}, "resources": resources}
    ).encode()


def write_state(tenant: Tenant, spec: Spec, *names: str, **options: Any) -> None:
    """Somebody's state of this spec, taken over from elsewhere."""
    import_state(spec=spec, body=state(*names, **options), imported_by=tenant.admin)


def revise(spec: Spec, **parts: Any) -> Revision:
    """A new revision in which these parts of the document are others."""
    newest = current_revision(spec)
    return Revision.objects.create(
        spec=spec, number=newest.number + 1, message="changed", document={**newest.document, **parts}
    )


def protect(spec: Spec, *, approvals: int = 1) -> Spec:
    spec.protected, spec.required_approvals = True, approvals
    spec.save(update_fields=["protected", "required_approvals"])
    return spec


def set_guard(spec: Spec, *, share: float | None = None, types: list[str] | None = None) -> Spec:
    spec.destroy_guard = {"share": share, "types": types or []}
    spec.save(update_fields=["destroy_guard"])
    return spec


def a_destroy_plan(console: Console, tenant: Tenant, spec: Spec, *addresses: str) -> Plan:
    """A plan of the spec's destroy, made through the wire."""
    job = request_plan(spec=spec, requested_by=tenant.operator, destroy=True)
    return plan_made_by(
        console, tenant, job, json=document(*(resource(address, "delete") for address in addresses))
    )


def plan_made_by(console: Console, tenant: Tenant, job: Job, **upload: Any) -> Plan:
    """The plan that a runner makes of this job."""
    runner = console.new_runner(tenant, f"planner-{job.number}")
    claim = runner.take_and_start()
    assert claim.job_id == str(job.pk)
    answer = runner.upload_plan(claim, **upload)
    assert answer.status_code == 201, answer.text
    assert runner.succeed(claim, result={"plan_id": answer.json()["plan_id"]}).status_code == 200
    return fresh_plan(Plan.objects.get(job=job))


def fresh_plan(plan: Plan) -> Plan:
    """The plan as the database has it now."""
    related = ("organization", "spec__organization", "job__requested_by", "spent_by")
    return Plan.objects.select_related(*related).get(pk=plan.pk)


class Person:
    """Somebody with a browser, as far as that is forms and answers."""

    def __init__(self, user: User) -> None:
        self._client = Client(headers={"HX-Request": "true"})
        self._client.force_login(user, backend="django.contrib.auth.backends.ModelBackend")

    def sees(self, plan: Plan) -> str:
        return self.reads("plan", plan.spec, plan.number)

    def reads(self, page: str, spec: Spec, *more: Any) -> str:
        answer = self._client.get(address(page, spec, *more))
        assert answer.status_code == 200, answer.content
        return source_of(answer)

    def reads_list(self, spec: Spec) -> str:
        answer = self._client.get(reverse("specs", args=[spec.organization.slug]))
        assert answer.status_code == 200, answer.content
        return source_of(answer)

    def presses(self, form: str, spec: Spec, *more: Any, **fields: str) -> Answer:
        return self._client.post(address(form, spec, *more), fields)

    def reads_job(self, job: Job) -> str:
        answer = self._client.get(reverse("job", args=[job.organization.slug, job.number]))
        assert answer.status_code == 200, answer.content
        return source_of(answer)

    def reads_part(self, page: str, job: Job) -> str:
        answer = self._client.get(reverse(page, args=[job.organization.slug, job.number]))
        assert answer.status_code == 200, answer.content
        return source_of(answer)

    def status_of(self, page: str, job: Job) -> int:
        return int(self._client.get(reverse(page, args=[job.organization.slug, job.number])).status_code)

    def presses_job(self, form: str, job: Job) -> Answer:
        return self._client.post(reverse(form, args=[job.organization.slug, job.number]))

    def applies(self, plan: Plan, **fields: str) -> Answer:
        return self.presses("plan-apply", plan.spec, plan.number, **fields)

    def approves(self, plan: Plan) -> Answer:
        return self.presses("plan-approve", plan.spec, plan.number)


def address(page: str, spec: Spec, *more: Any) -> str:
    return reverse(page, args=[spec.organization.slug, spec.slug, *more])


def refusal_in(answer: Answer) -> str:
    """The sentence beside the button."""
    text = source_of(answer)
    assert 'class="refusal"' in text, text
    return html.unescape(text)
