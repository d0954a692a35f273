"""The demo from a blueprint, from files and from Git: planned, applied and destroyed by real programs."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest

from console.jobs.models import Job
from console.jobs.services import request_destroy, request_plan
from console.plans.inventory import addresses_in_state
from console.plans.models import Plan
from console.plans.services import request_deploy
from specs.document import load_blueprint
from specs.models import Component, Output, Spec
from specs.outputs import reveal_output
from specs.services import create_spec
from specs.variables import empty_bundle
from tests.git_host import Repository
from tests.people import Tenant
from tests.runner.installation import Installation, messages, wait_for_end
from tests.specs.editing import Browser, everything_stored

#: Small and without waits: what is shown here is the way, not the size.
VALUES = {"delay": 0, "zones": ["a"], "services": {"checkout": 1}}


@pytest.fixture
def installation(ours: Tenant, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Installation]:
    monkeypatch.setenv("SLIPWAY_GIT_ALLOWED_HOSTS", "127.0.0.1")
    running = Installation(tmp_path)
    running.start()
    yield running
    running.stop()


def sources(repository: Repository) -> dict[str, dict[str, Any]]:
    files = load_blueprint("demo").files
    repository.commit({f"platform/demo/{name}": text for name, text in files.items()})
    return {
        "blueprint": {"kind": "blueprint", "name": "demo"},
        # Terraform would take this file's values over any that come in an earlier one.
        "inline": {"kind": "inline", "files": {**files, "team.auto.tfvars": "services = { intruder = 9 }\n"}},
        "git": {"kind": "git", "url": repository.url, "ref": "main", "path": "platform/demo"},
    }


@pytest.mark.timeout(240)
def test_the_demo_runs_from_each_source(
    ours: Tenant, installation: Installation, repository: Repository, start_runner: Callable[..., Any]
) -> None:
    start_runner("--slots", "3")
    specs = [new_spec(ours, kind, source) for kind, source in sources(repository).items()]
    plans = [
        plan_of(job)
        for job in all_done(request_plan(spec=item, requested_by=ours.operator) for item in specs)
    ]
    assert all(plan.summary["add"] > 5 for plan in plans)
    assert len({plan.summary["add"] for plan in plans}) == 1, "the Spec's own variables win everywhere"
    all_done(request_deploy(plan=plan, requested_by=ours.operator) for plan in plans)
    for spec in specs:
        has_its_outputs(ours, spec)
    all_done(request_destroy(spec=item, confirmation=item.name, requested_by=ours.operator) for item in specs)
    assert not Output.objects.filter(gone_at=None).exists()
    assert not Component.objects.filter(gone_at=None).exists()


def new_spec(tenant: Tenant, name: str, source: dict[str, Any]) -> Spec:
    return create_spec(
        organization=tenant.organization,
        name=name,
        source=source,
        pool_id=tenant.pool.pk,
        author=tenant.operator,
        bundle={**empty_bundle(), "variables": VALUES},
    )


def plan_of(job: Job) -> Plan:
    return Plan.objects.select_related("spec__organization", "job").get(job=job)


def has_its_outputs(tenant: Tenant, spec: Spec) -> None:
    outputs = {item.name: item for item in spec.outputs.all()}
    assert outputs["cluster_endpoint"].value == "https://harbour.cluster.example"
    assert {item.kind: item.gone_at for item in spec.components.all()} == {"cluster": None, "database": None}
    password = reveal_output(spec=spec, name="database_password", revealed_to=tenant.operator)
    assert len(password) == 64
    assert password not in everything_stored()
    assert not any(password in page for page in state_pages(tenant, spec))
    jobs = Job.objects.filter(spec=spec)
    assert all(password not in message for job in jobs for message in messages(job))


def state_pages(tenant: Tenant, spec: Spec) -> Iterator[str]:
    """The newest state in the browser, with the attributes of everything in it."""
    browser = Browser(tenant, tenant.viewer)
    serial = spec.state_versions.latest("serial").serial
    yield browser.reads(f"specs/{spec.slug}/state/{serial}/")
    addresses = addresses_in_state(spec)
    assert addresses
    for address in addresses:
        yield browser.reads(f"specs/{spec.slug}/state/{serial}/resource", address=address)


def all_done(jobs: Iterable[Job]) -> list[Job]:
    """The jobs, asked for at once, after each has succeeded."""
    finished = [wait_for_end(job, seconds=90) for job in list(jobs)]
    assert [job.status for job in finished] == ["SUCCESS"] * len(finished), list(map(messages, finished))
    return finished
