"""Each list of the API is answered as the published document describes it: an object with `data` in it."""

from __future__ import annotations

import re
from typing import Any

import pytest
import yaml
from jsonschema import Draft202012Validator, ValidationError  # type: ignore[import-untyped]

from console.jobs.models import Job
from specs.outputs import record_deploy
from specs.services import change_variable
from specs.variable_sets import save_variable_set
from specs.variables import empty_bundle, set_plain
from tests.console_app import Console, Http
from tests.people import Tenant

Document = dict[str, Any]

#: Every list that there was when this was written. A list of a new endpoint joins automatically.
KNOWN = {
    "/api/jobs",
    "/api/jobs/{job_id}/attempts",
    "/api/jobs/{job_id}/events",
    "/api/jobs/{job_id}/logs",
    "/api/jobs/{job_id}/errored-states",
    "/api/specs",
    "/api/specs/{spec_id}/variables",
    "/api/specs/{spec_id}/revisions",
    "/api/specs/{spec_id}/outputs",
    "/api/organizations/{slug}/variable-sets",
    "/api/organizations/{slug}/blueprints",
    "/api/organizations/{slug}/runners",
    "/api/organizations/{slug}/queue",
}


@pytest.fixture
def api(console: Console, ours: Tenant) -> Http:
    return console.person(ours, "admin")


@pytest.fixture
def published(api: Http) -> Document:
    document: Document = yaml.safe_load(api.get("/api/openapi").text)
    return document


@pytest.fixture
def job(console: Console, ours: Tenant) -> Job:
    """An organization in which every list has something: a job with a log, outputs, variables, a set."""
    change_variable(
        spec=ours.spec, category="environment", name="KEY", value="x", sensitive=True, author=ours.operator
    )
    bundle = set_plain(empty_bundle(), category="variables", name="delay", value=3)
    save_variable_set(organization=ours.organization, name="all", bundle=bundle, saved_by=ours.admin)
    outputs = {"size": {"value": [1], "type": "number"}, "key": {"sensitive": True, "type": "string"}}
    record_deploy(spec=ours.spec, outputs=outputs)
    job = ours.request()
    runner = console.new_runner(ours)
    claim = runner.take_and_start()
    runner.log(claim, 1, "one line")
    runner.put(
        f"/api/jobs/{claim.job_id}/errored-state?claim_id={claim.claim_id}",
        content=b'{"version": 4, "serial": 1, "lineage": "l"}',
        headers={"Content-Type": "application/octet-stream"},
    )
    runner.fail(claim, fatal=True)
    return job


def lists_in(document: Document) -> dict[str, Document]:
    """The schemas of what GETs answer with, where that has a list as `data`."""
    lists = {}
    for path, operations in document["paths"].items():
        answers = operations.get("get", {}).get("responses", {})
        schema = answers.get("200", {}).get("content", {}).get("application/json", {}).get("schema")
        properties = _resolved(document, schema or {}).get("properties", {})
        if properties.get("data", {}).get("type") == "array":
            lists[path] = schema
    return lists


def test_no_list_is_described_as_a_bare_array(published: Document) -> None:
    assert lists_in(published).keys() >= KNOWN
    for path, operations in published["paths"].items():
        for operation in operations.values():
            for answer in operation["responses"].values():
                for content in answer.get("content", {}).values():
                    assert content["schema"].get("type") != "array", path


def test_each_list_is_answered_as_it_is_described(
    api: Http, ours: Tenant, published: Document, job: Job
) -> None:
    values = {"job_id": job.pk, "spec_id": ours.spec.pk, "slug": ours.organization.slug}
    filled, wrong = 0, []
    for path, schema in lists_in(published).items():
        needed = set(re.findall(r"{(\w+)}", path))
        if not needed <= values.keys():
            assert path not in KNOWN
            continue
        answer = api.get(path.format(**values), params={"organization": ours.organization.slug})
        assert answer.status_code == 200, (path, answer.text)
        validator = Draft202012Validator({**schema, "components": published["components"]})
        errors = [f"{error.json_path}: {error.message}" for error in validator.iter_errors(answer.json())]
        wrong += [f"{path} {error}" for error in errors]
        with pytest.raises(ValidationError):
            validator.validate(answer.json()["data"])
        filled += bool(answer.json()["data"])
    assert not wrong, wrong
    assert filled >= len(KNOWN), "an empty list shows nothing of its items"


def _resolved(document: Document, schema: Document) -> Document:
    if "$ref" not in schema:
        return schema
    name = schema["$ref"].rpartition("/")[2]
    resolved: Document = document["components"]["schemas"][name]
    return resolved
