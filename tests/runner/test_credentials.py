"""A runner's credential is replaced while it works, wherever it came from."""

from __future__ import annotations

import os
import time
from pathlib import Path

from runner.protocol import JobType
from tests.runner.conftest import StartRunner
from tests.runner.fake_console import CREDENTIAL, FakeConsole
from tests.runner.test_registration import run_command
from tests.waiting import wait_until

EMPTY = {"main.tf": ""}


def write_old_credential(tmp_path: Path, *, days_old: int = 0) -> Path:
    """Write the credential file of a runner that registered some time ago."""
    file = tmp_path / "data" / "credential"
    file.parent.mkdir()
    file.write_text(CREDENTIAL)
    written_at = time.time() - days_old * 24 * 3600
    os.utime(file, (written_at, written_at))
    return file


def test_rotating_a_write_old_credential_does_not_stop_the_runner(
    console: FakeConsole, start_runner: StartRunner, tmp_path: Path
) -> None:
    file = write_old_credential(tmp_path)
    start_runner(SLIPWAY_RUNNER_CREDENTIAL="")
    wait_until(lambda: console.claim_keys, what="the first claim")
    answer = run_command("rotate", "--console", console.url, "--data-dir", str(file.parent))
    assert answer.returncode == 0, answer.stderr
    assert file.read_text().strip() == "slr_rotated-1"
    assert file.stat().st_mode & 0o777 == 0o600
    assert [facts.slots for facts in console.facts] == [1, 0], "the command knows nothing of the runner's"
    console.credentials.remove(CREDENTIAL)  # its time is over
    assert console.enqueue(JobType.PLAN, EMPTY).wait_for_end().status == "SUCCESS"


def test_an_old_credential_is_replaced_by_itself(
    console: FakeConsole, start_runner: StartRunner, tmp_path: Path
) -> None:
    file = write_old_credential(tmp_path, days_old=31)
    runner = start_runner("--slots", "2", SLIPWAY_RUNNER_CREDENTIAL="")
    wait_until(lambda: "replaced by a new one" in runner.log, what="the replacement")
    assert file.read_text().strip() == "slr_rotated-1"
    console.credentials.remove(CREDENTIAL)
    assert console.enqueue(JobType.PLAN, EMPTY).wait_for_end().status == "SUCCESS"
    assert len(console.credentials) == 1


def test_a_credential_that_somebody_gave_is_printed_for_them_to_keep(
    console: FakeConsole, tmp_path: Path
) -> None:
    answer = run_command(
        "rotate", "--console", console.url, "--data-dir", str(tmp_path), SLIPWAY_RUNNER_CREDENTIAL=CREDENTIAL
    )
    assert answer.stdout == "slr_rotated-1\n"
    assert not (tmp_path / "credential").exists()


def test_a_mounted_secret_that_changed_is_read_again(
    console: FakeConsole, start_runner: StartRunner, tmp_path: Path
) -> None:
    mounted = tmp_path / "secret"
    mounted.write_text(CREDENTIAL)
    start_runner("--credential-file", str(mounted), SLIPWAY_RUNNER_CREDENTIAL="")
    wait_until(lambda: console.claim_keys, what="the first claim")
    mounted.write_text("slr_of-the-secret-store")
    console.credentials = {"slr_of-the-secret-store"}
    assert console.enqueue(JobType.PLAN, EMPTY).wait_for_end().status == "SUCCESS"


def test_a_runner_asks_for_the_pools_it_was_given_only(
    console: FakeConsole, start_runner: StartRunner
) -> None:
    start_runner("--pool", "production", "--pool", "staging")
    wait_until(lambda: console.pools_asked_for, what="the first claim")
    assert console.pools_asked_for[0] == ["production", "staging"]
    assert console.facts[0].pools == ["production", "staging"]
