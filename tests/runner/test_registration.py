"""Registration of a runner, and its errors without a credential."""

from __future__ import annotations

import os
import ssl
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

from runner import __version__
from runner.terraform.binary import find_terraform
from tests.runner.conftest import ROOT, StartRunner
from tests.runner.fake_console import CREDENTIAL, TOKEN, FakeConsole
from tests.runner.processes import ON_A_SMALL_DISK
from tests.waiting import wait_until


def test_a_token_becomes_a_credential_that_only_its_owner_can_read(
    console: FakeConsole, start_runner: StartRunner
) -> None:
    environ = {"SLIPWAY_RUNNER_CREDENTIAL": "", "SLIPWAY_REGISTRATION_TOKEN": TOKEN}
    runner = start_runner("--name", "build-7", "--slots", "2", **environ)
    wait_until(lambda: console.claim_keys, what="the first claim")
    credential = runner.data_dir / "credential"
    assert credential.read_text().strip() == CREDENTIAL
    assert credential.stat().st_mode & 0o777 == 0o600
    (registration,) = console.registrations
    assert registration.name == "build-7"
    assert registration.facts.version == __version__
    assert registration.facts.slots == 2
    assert registration.facts.terraform_version == find_terraform().label
    assert registration.facts.platform.startswith("linux/")
    assert registration.facts.types == [
        "CONNECTION_TEST", "FETCH_RESOURCES", "PLAN", "DEPLOY", "DESTROY",
    ]  # fmt: skip


def test_a_kept_credential_needs_no_token(
    console: FakeConsole, start_runner: StartRunner, tmp_path: Path
) -> None:
    file = tmp_path / "kept"
    file.write_text(CREDENTIAL + "\n")
    start_runner(
        "--credential-file", str(file), SLIPWAY_RUNNER_CREDENTIAL="", SLIPWAY_REGISTRATION_TOKEN="old"
    )
    wait_until(lambda: console.claim_keys, what="the first claim")
    assert not console.registrations


@pytest.mark.parametrize(
    ("environ", "message"),
    [
        ({"SLIPWAY_RUNNER_CREDENTIAL": "slr_revoked"}, "refused this runner's credential"),
        ({"SLIPWAY_RUNNER_CREDENTIAL": "", "SLIPWAY_REGISTRATION_TOKEN": "slt_used"}, "Create a new one"),
        ({"SLIPWAY_RUNNER_CREDENTIAL": ""}, "create a token in the console"),
        ({"SLIPWAY_TERRAFORM": "/nowhere/terraform"}, "Install terraform or tofu"),
        ({"SLIPWAY_RUNNER_STOP_GRACE": "soon"}, "SLIPWAY_RUNNER_STOP_GRACE"),
        ({"SLIPWAY_RUNNER_CREDENTIAL": "slr_ü"}, "SLIPWAY_RUNNER_CREDENTIAL does not hold a credential"),
        ({"SLIPWAY_RUNNER_CREDENTIAL": "slr_one\nslr_two"}, "SLIPWAY_RUNNER_CREDENTIAL does not hold"),
    ],
)
def test_a_runner_that_cannot_start_says_why_in_one_line(
    start_runner: StartRunner, environ: dict[str, str], message: str
) -> None:
    runner = start_runner(**environ)
    assert runner.wait() == 2
    assert message in runner.log
    assert len(runner.log.splitlines()) == 1
    assert "slr_" not in runner.log


def test_a_credential_may_come_with_the_newline_of_its_file(
    console: FakeConsole, start_runner: StartRunner
) -> None:
    start_runner(SLIPWAY_RUNNER_CREDENTIAL=CREDENTIAL + "\n")
    wait_until(lambda: console.claim_keys, what="the first claim")


def test_a_token_is_not_spent_on_a_credential_that_cannot_be_kept(
    console: FakeConsole, start_runner: StartRunner
) -> None:
    environ = {"SLIPWAY_RUNNER_CREDENTIAL": "", "SLIPWAY_REGISTRATION_TOKEN": TOKEN}
    runner = start_runner("--credential-file", "/proc/self/credential", **environ)
    assert runner.wait() == 2
    assert "The credential cannot be stored in /proc/self/credential" in runner.log
    assert console.tokens == {TOKEN}


def test_a_disk_without_room_from_the_start_is_told_in_one_line(console: FakeConsole, tmp_path: Path) -> None:
    start = [sys.executable, "-m", "runner.main", "start", "--console", console.url]
    no_files = [part.replace("size=2m", "nr_inodes=4") for part in ON_A_SMALL_DISK]
    answer = run([*no_files, str(tmp_path), *start, "--data-dir", str(tmp_path)])
    assert answer.returncode == 2
    assert "No space left on device" in answer.stderr
    assert len(answer.stderr.splitlines()) == 1


@pytest.mark.parametrize("url", ["", "console.example.com", "ftp://console", "https://me:secret@console"])
def test_an_address_that_is_none_is_refused(url: str) -> None:
    answer = run_command("start", "--console", url)
    assert answer.returncode == 2
    assert "console" in answer.stderr
    assert "secret" not in answer.stderr
    assert "Traceback" not in answer.stderr


@pytest.mark.parametrize(
    ("limit", "error"),
    [
        ("nproc", "cannot be read: give a name and a number"),
        ("nproc=many", "cannot be read"),
        ("sleep=8", "cannot be read"),
        ("core=1", "exceeds the limit of this runner itself, which is 0"),
    ],
)
def test_a_limit_that_cannot_be_set_is_refused(limit: str, error: str) -> None:
    answer = run_command("check", "--console", "https://localhost:1", SLIPWAY_RUNNER_LIMITS=limit)
    assert answer.returncode == 2
    assert f"--limit {limit} " in answer.stderr
    assert error in answer.stderr


def test_check_says_what_is_right(console: FakeConsole, tmp_path: Path) -> None:
    (tmp_path / "credential").write_text(CREDENTIAL)
    answer = run_command("check", "--console", console.url, "--data-dir", str(tmp_path))
    assert answer.returncode == 0, answer.stdout
    assert [line.split(":")[0] for line in answer.stdout.splitlines()] == [
        "ok     Terraform", "ok     data directory", "ok     console", "ok     TLS", "ok     credential",
        "ok     clock",
    ]  # fmt: skip


def test_check_says_what_is_wrong_and_what_it_could_not_try(console: FakeConsole, tmp_path: Path) -> None:
    (tmp_path / "credential").write_text("slr_revoked")
    answer = run_command("check", "--console", console.url, "--data-dir", str(tmp_path))
    assert answer.returncode == 1
    assert "wrong  credential: This runner was revoked" in answer.stdout
    assert "-      clock: cannot be tried" in answer.stdout


def test_check_says_that_the_clock_is_wrong(console: FakeConsole, tmp_path: Path) -> None:
    (tmp_path / "credential").write_text(CREDENTIAL)
    console.clock_ahead = timedelta(hours=1)
    answer = run_command("check", "--console", console.url, "--data-dir", str(tmp_path))
    assert answer.returncode == 1
    assert "wrong  clock: 3" in answer.stdout
    assert "time synchronisation" in answer.stdout


def test_check_says_that_terraform_and_the_data_directory_are_wrong(
    console: FakeConsole, tmp_path: Path
) -> None:
    occupied = tmp_path / "occupied"
    occupied.touch()
    answer = run_command(
        "check", "--console", console.url, "--data-dir", str(occupied), SLIPWAY_TERRAFORM="/nowhere/terraform"
    )
    assert answer.returncode == 1
    assert "wrong  Terraform: /nowhere/terraform (from SLIPWAY_TERRAFORM) does not run" in answer.stdout
    assert "wrong  data directory" in answer.stdout
    assert "-      credential: cannot be tried" in answer.stdout


def test_check_takes_a_program_that_prints_nonsense_for_no_terraform(
    console: FakeConsole, tmp_path: Path
) -> None:
    nonsense = tmp_path / "terraform"
    nonsense.write_text("#!/bin/sh\nprintf '\\377\\376'\n")
    nonsense.chmod(0o700)
    answer = run_command(
        "check", "--console", console.url, "--data-dir", str(tmp_path), SLIPWAY_TERRAFORM=str(nonsense)
    )
    assert answer.returncode == 1
    assert f"wrong  Terraform: {nonsense} (from SLIPWAY_TERRAFORM) is not Terraform" in answer.stdout


def test_check_says_that_a_disk_is_too_small_for_providers(console: FakeConsole, tmp_path: Path) -> None:
    check = [sys.executable, "-m", "runner.main", "check", "--console", console.url]
    answer = run([*ON_A_SMALL_DISK, str(tmp_path), *check, "--data-dir", str(tmp_path)])
    assert answer.returncode == 1
    assert f"wrong  data directory: {tmp_path} has only 2 MiB free" in answer.stdout


def test_an_authority_that_is_no_certificate_is_refused_in_one_line(tmp_path: Path) -> None:
    garbage = tmp_path / "authority.pem"
    garbage.write_text("not a certificate")
    answer = run_command("check", "--console", "https://localhost:1", "--ca-file", str(garbage))
    assert (answer.returncode, len(answer.stderr.splitlines())) == (2, 1)
    assert f"{garbage} holds no certificates" in answer.stderr


def test_the_command_knows_its_version() -> None:
    assert run_command("--version").stdout == f"slipway-runner {__version__}\n"


def test_check_says_that_there_is_no_console(tmp_path: Path) -> None:
    answer = run_command("check", "--console", "http://127.0.0.1:1", "--data-dir", str(tmp_path))
    assert answer.returncode == 1
    assert "wrong  console: nothing answers at 127.0.0.1, port 1" in answer.stdout
    answer = run_command("check", "--console", "https://nowhere.invalid", "--data-dir", str(tmp_path))
    assert "wrong  console: the name nowhere.invalid is not known here" in answer.stdout


def test_check_says_that_a_certificate_is_not_trusted(tmp_path: Path) -> None:
    with encrypted_server(tmp_path) as (url, authority):
        data = ("--data-dir", str(tmp_path / "data"))
        distrusted = run_command("check", "--console", url, *data)
        assert "wrong  TLS: the certificate of localhost is not trusted" in distrusted.stdout
        assert "--ca-file" in distrusted.stdout
        trusted = run_command("check", "--console", url, "--ca-file", str(authority), *data)
        assert "ok     TLS: TLSv1" in trusted.stdout
        assert "wrong  credential: none in" in trusted.stdout


def test_check_says_that_a_certificate_has_ended(tmp_path: Path) -> None:
    with encrypted_server(tmp_path, ended=timedelta(hours=1)) as (url, authority):
        answer = run_command(
            "check", "--console", url, "--ca-file", str(authority), "--data-dir", str(tmp_path / "data")
        )
    assert "wrong  TLS: the certificate of localhost is not trusted (certificate has exp" in answer.stdout
    assert "renew it" in answer.stdout


@contextmanager
def encrypted_server(folder: Path, *, ended: timedelta = timedelta(days=-90)) -> Iterator[tuple[str, Path]]:
    """Something that answers with a certificate of its own making, and says nothing more."""
    certificate, key = self_signed(folder, ends_at=datetime.now(UTC) - ended)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    server = HTTPServer(("127.0.0.1", 0), BaseHTTPRequestHandler)
    server.socket = context.wrap_socket(server.socket, server_side=True, do_handshake_on_connect=False)
    threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
    try:
        yield f"https://localhost:{server.server_address[1]}", certificate
    finally:
        server.shutdown()
        server.server_close()


def self_signed(folder: Path, *, ends_at: datetime) -> tuple[Path, Path]:
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "localhost")])
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(ends_at - timedelta(days=91))
        .not_valid_after(ends_at)
        .add_extension(x509.SubjectAlternativeName([x509.DNSName("localhost")]), critical=False)
        .sign(key, hashes.SHA256())
    )
    files = folder / "certificate.pem", folder / "key.pem"
    files[0].write_bytes(certificate.public_bytes(serialization.Encoding.PEM))
    files[1].write_bytes(
        key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        )
    )
    return files


def run_command(*arguments: str, **environ: str) -> subprocess.CompletedProcess[str]:
    return run([sys.executable, "-m", "runner.main", *arguments], **environ)


def run(command: list[str], **environ: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command,
        cwd=ROOT, env=dict(os.environ) | environ, capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip
