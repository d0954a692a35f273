"""A full disk, a secret in pieces, a drain: with a real console, what its people and its database see."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from django.db import connection

from console.runners.models import Runner
from console.runners.services import set_runner_drain
from specs.services import change_variable
from tests.chaos.runner.conftest import StartRunner
from tests.people import Tenant, fresh
from tests.runner.installation import messages, new_project, wait_for_end, wait_for_line
from tests.runner.processes import ON_A_SMALL_DISK, fill
from tests.sample_cloud.mirror import servers
from tests.sample_cloud.service import Cloud
from tests.waiting import wait_until

SECRET = "correct-horse-battery"

#: Prints the secret so that Terraform makes two lines of it, in two writes of one line, and whole. Its parts
#: stand nowhere in the configuration.
IN_PIECES = {
    "main.tf": """
variable "password" { sensitive = true }
resource "terraform_data" "printing" {
  provisioner "local-exec" {
    command     = file("print.sh")
    # Terraform shows nothing at all of what a sensitive value is handed to.
    environment = { PASSWORD = nonsensitive(var.password) }
  }
}
""",
    "print.sh": """
printf 'first: %s' "${PASSWORD%horse*}"; sleep 1; echo "${PASSWORD#correct-}"
printf 'then: %s' "${PASSWORD%ect*}"; echo "${PASSWORD#corr}!"
echo "$PASSWORD"
""",
}


def test_a_disk_that_fills_up_in_the_middle_of_an_apply_costs_neither_state_nor_lines(
    start_runner: StartRunner, ours: Tenant, cloud: Cloud, tmp_path: Path
) -> None:
    cloud.latency["second"] = 3
    project = new_project(ours, servers(cloud.url, "first", "second", "third", chained=True))
    (tmp_path / "runner").mkdir()
    runner = start_runner(through=[*ON_A_SMALL_DISK, str(tmp_path / "runner")])
    job = project.deploy()
    cloud.wait_for("create", "second")
    disk = Path(f"/proc/{runner.process.pid}/root{tmp_path / 'runner'}")
    fill(disk)
    ended = wait_for_end(job)
    assert ended.status == "SUCCESS", messages(job)
    assert project.resources() == ["first", "second", "third"] == cloud.done("create")
    assert not project.is_locked()
    assert not any("are missing here" in message for message in messages(job))
    plan = ours.request(spec=project.spec)
    wait_for_line(plan, "The runner's disk is full")
    (disk / "filling").unlink()
    assert wait_for_end(plan).status == "SUCCESS", "the retry had room"


def test_a_secret_in_pieces_reaches_no_log_no_plan_and_no_column(
    start_runner: StartRunner, ours: Tenant
) -> None:
    project = new_project(ours, IN_PIECES)
    change_variable(
        spec=project.spec, category="variables", name="password", value=SECRET, sensitive=True,
        author=ours.operator,
    )  # fmt: skip
    start_runner()
    job = wait_for_end(project.deploy())
    assert job.status == "SUCCESS", messages(job)
    printed = [text.partition("(local-exec): ")[2] for text in messages(job) if "(local-exec): " in text]
    assert [text for text in printed if not text.startswith("Executing")] == [
        "first: ***", "***", "then: ***!", "***",
    ]  # fmt: skip
    assert not tables_with(SECRET)
    assert not tables_with("horse-battery")


def tables_with(text: str) -> list[str]:
    """Search any column of any row, as text or as bytes."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT tablename FROM pg_tables WHERE schemaname = current_schema()")
        tables = [name for (name,) in cursor.fetchall()]
        patterns = [f"%{text}%", f"%{text.encode().hex()}%"]
        return [table for table in tables if _has(cursor, table, patterns)]


def _has(cursor: Any, table: str, patterns: list[str]) -> bool:
    cursor.execute(f'SELECT EXISTS (SELECT FROM "{table}" AS row WHERE row::text LIKE ANY(%s))', [patterns])
    return bool(cursor.fetchone()[0])


def test_a_drained_runner_finishes_its_apply_waits_and_goes_on(
    start_runner: StartRunner, ours: Tenant, cloud: Cloud
) -> None:
    cloud.latency["second"] = 3
    project = new_project(ours, servers(cloud.url, "first", "second", chained=True))
    runner = start_runner()
    job = project.deploy()
    cloud.wait_for("create", "second")
    drain(ours, True)
    waiting = ours.request(spec=new_project(ours, servers(cloud.url, "other"), name="other").spec)
    wait_until(lambda: "The console drains" in runner.log, what="the heartbeat that says so")
    assert wait_for_end(job).status == "SUCCESS", messages(job)
    assert cloud.done("create") == ["first", "second"]
    wait_until(lambda: not Runner.objects.get().claims.exists(), what="free slots")
    assert fresh(waiting).status == "QUEUED"
    assert runner.process.poll() is None
    drain(ours, False)
    assert wait_for_end(waiting).status == "SUCCESS", messages(waiting)


def drain(ours: Tenant, draining: bool) -> None:
    set_runner_drain(runner=Runner.objects.get(), draining=draining, requested_by=ours.admin)
