"""`slipway doctor` names what is wrong and the remedy."""

from __future__ import annotations

import socket
import subprocess
from pathlib import Path

from console.local.embedded_postgres import EmbeddedPostgres
from tests.console.up.conftest import Slipway


def lines(answer: subprocess.CompletedProcess[str]) -> dict[str, tuple[str, str]]:
    """Subject → level and text."""
    findings = {}
    for line in answer.stdout.splitlines():
        level, subject, text = line.split(None, 2)
        findings[subject] = (level, text)
    return findings


def test_a_healthy_machine_has_no_failures(slipway: Slipway) -> None:
    answer = slipway("doctor", "--port=0")
    findings = lines(answer)
    assert answer.returncode == 0, answer.stdout
    assert {"python", "database", "data", "disk", "port", "terraform", "clock"} <= set(findings)
    assert findings["database"][1].startswith("embedded postgres (PostgreSQL) 18")
    assert not any(level == "fail" for level, _ in findings.values())


def test_it_examines_and_changes_nothing(slipway: Slipway, reachable_tmp_path: Path) -> None:
    slipway("doctor", "--port=0")
    assert list(reachable_tmp_path.iterdir()) == []


def test_each_failure_has_its_remedy(slipway: Slipway, reachable_tmp_path: Path) -> None:
    root = reachable_tmp_path / "data"
    root.mkdir()
    (root / "thesis.tex").touch()
    with socket.create_server(("127.0.0.1", 0)) as other:
        answer = slipway(
            "doctor",
            f"--port={other.getsockname()[1]}",
            SLIPWAY_TERRAFORM="/nonexistent/terraform",
            DATABASE_URL="postgresql://nobody@127.0.0.1:1/nothing",
        )
    findings = lines(answer)
    assert answer.returncode == 1
    failed = {subject for subject, (level, _) in findings.items() if level == "fail"}
    assert failed == {"database", "data", "port", "terraform"}
    assert "unset it" in findings["database"][1]
    assert "--data-dir" in findings["data"][1]
    assert "--port" in findings["port"][1]
    assert "SLIPWAY_TERRAFORM" in findings["terraform"][1]


def test_it_names_the_database_of_the_url(slipway: Slipway, postgres: EmbeddedPostgres) -> None:
    postgres.start()
    findings = lines(slipway("doctor", "--port=0", DATABASE_URL=postgres.url("postgres")))
    assert findings["database"] == ("ok", "PostgreSQL 18.4 of DATABASE_URL")


def test_version_is_one_line(slipway: Slipway) -> None:
    assert slipway("version").stdout.startswith("slipway 0.")
