"""Cost: what the runner's Infracost says, how to enable it, and nothing invented.

Infracost itself is not to be had here. The suite puts a program of its own on the runner's path that takes
Infracost's arguments and answers in its JSON; that the real one does so too is its documentation's word.
"""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from console.plans.models import Plan
from runner.cost import NoEstimate, find_infracost, infracost_args, read_estimate
from tests.chaos.runner.conftest import StartRunner
from tests.console.plans.review import Person, fresh_plan
from tests.console_app import Console
from tests.people import Tenant, fresh
from tests.plans_made import a_plan
from tests.runner.installation import messages, new_project

FILES = {
    "main.tf": """
        variable "token" {
          default   = "tok-s3cret"
          sensitive = true
        }
        resource "terraform_data" "server" { input = var.token }
    """
}
KEY = "ico-test-key-1234"

#: Checks what it was given, then answers as Infracost 0.10 does.
PROGRAM = """#!{python}
import json, os, sys
command, flag, plan, *rest = sys.argv[1:]
assert (command, flag, rest) == ("breakdown", "--path", ["--format", "json", "--no-color"]), sys.argv
assert os.environ["INFRACOST_API_KEY"] == "{key}"
assert {name for name in os.environ if name.startswith(("TF_", "SLIPWAY_"))} <= {"SLIPWAY_ATTEMPT"}
text = open(plan).read()
assert json.loads(text)["resource_changes"] and "tok-s3cret" not in text
{rest}
"""
ANSWER = """print(json.dumps({"version": "0.2", "currency": "USD", "projects": [], "totalMonthlyCost": "51.4",
    "pastTotalMonthlyCost": "10.15", "diffTotalMonthlyCost": "41.25", "totalHourlyCost": None}))"""


def installed(folder: Path, rest: str = ANSWER) -> str:
    program = folder / "infracost"
    text = PROGRAM.replace("{python}", sys.executable).replace("{key}", KEY).replace("{rest}", rest)
    program.write_text(text)
    program.chmod(0o755)
    return str(program)


def test_a_plan_shows_the_monthly_delta_that_infracost_says(
    start_runner: StartRunner, console: Console, ours: Tenant, tmp_path: Path
) -> None:
    start_runner(SLIPWAY_INFRACOST=installed(tmp_path), INFRACOST_API_KEY=KEY)
    plan = new_project(ours, FILES).plan()
    cost = console.person(ours, "viewer").get(f"/api/plans/{plan.pk}").json()["cost"]
    assert cost == {
        "currency": "USD",
        "monthly_before": "10.15",
        "monthly_after": "51.40",
        "monthly_delta": "41.25",
    }
    page = Person(ours.operator).sees(fresh_plan(plan))
    assert "+41.25 USD" in page
    assert "10.15 → 51.40" in page


def test_an_estimate_that_fails_does_not_fail_the_plan_and_is_told(
    start_runner: StartRunner, ours: Tenant, tmp_path: Path
) -> None:
    refused = f'sys.exit("No price list for {KEY}")'
    start_runner(SLIPWAY_INFRACOST=installed(tmp_path, refused), INFRACOST_API_KEY=KEY)
    plan = new_project(ours, FILES).plan()
    assert "Infracost ended with exit code 1" in Person(ours.operator).sees(fresh_plan(plan))
    log = "\n".join(messages(plan.job))
    assert "No price list for ***" in log
    assert KEY not in log


def test_without_infracost_the_page_says_how_to_enable_it_and_shows_no_figure(
    console: Console, ours: Tenant
) -> None:
    plan = a_plan(console, ours)
    page = Person(ours.operator).sees(plan)
    assert "INFRACOST_API_KEY" in page
    assert "a month" not in page
    assert console.person(ours, "viewer").get(f"/api/plans/{plan.pk}").json()["cost"] is None


@pytest.mark.parametrize("reported", [{"monthly_delta": "much"}, {}, "41", {"monthly_before": "NaN"}])
def test_a_report_that_makes_no_sense_shows_no_figure(
    console: Console, ours: Tenant, reported: object
) -> None:
    plan = a_plan(console, ours)
    job = fresh(plan.job)
    job.result = {"cost": reported}
    job.save(update_fields=["result"])
    assert "a month" not in Person(ours.operator).sees(Plan.objects.get(pk=plan.pk))


def test_infracost_is_looked_for_where_the_operator_says(tmp_path: Path) -> None:
    program = installed(tmp_path)
    on_path = {"PATH": str(tmp_path)}
    assert find_infracost({"SLIPWAY_INFRACOST": "/opt/infracost"}) == "/opt/infracost"
    assert find_infracost(on_path | {"INFRACOST_API_KEY": KEY}) == program
    assert find_infracost(on_path) is None
    assert infracost_args("infracost", plan=Path("plan.json")) == [
        "infracost", "breakdown", "--path", "plan.json", "--format", "json", "--no-color",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("answer", "delta"),
    [
        ('{"totalMonthlyCost": "5", "pastTotalMonthlyCost": "7", "diffTotalMonthlyCost": "-2"}', "-2"),
        ('{"totalMonthlyCost": "5", "pastTotalMonthlyCost": null, "diffTotalMonthlyCost": null}', "5"),
        ('{"totalMonthlyCost": null}', "0"),
    ],
)
def test_reading_infracosts_answer(answer: str, delta: str) -> None:
    assert read_estimate(answer)["monthly_delta"] == delta


@pytest.mark.parametrize(
    "answer", ["", "[]", '{"totalMonthlyCost": "free"}', '{"totalMonthlyCost": "Infinity"}']
)
def test_an_answer_that_cannot_be_read_is_no_estimate(answer: str) -> None:
    with pytest.raises(NoEstimate):
        read_estimate(answer)
