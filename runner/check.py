"""`slipway-runner check`: tries everything that a runner needs, and reports each problem."""

from __future__ import annotations

import shutil
import socket
import ssl
import subprocess
import tempfile
import time
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Protocol, TypeVar
from urllib.parse import urlsplit
from urllib.request import getproxies, proxy_bypass

from runner.client import ConsoleClient, ConsoleError
from runner.config import Settings, SettingsError
from runner.protocol import HelloAnswer, RunnerFacts
from runner.runner_credential import read_credential
from runner.terraform.binary import TerraformBinary, TerraformMissing, find_terraform
from runner.terraform.workdir import DataDirectory

#: Room for providers and plans; the AWS provider alone takes more than half of it.
MIN_FREE_BYTES = 1024 * 1024 * 1024
#: Leases do not need equal clocks, but TLS and cloud credentials do.
MAX_CLOCK_DIFFERENCE_SECONDS = 60.0
#: A certificate is reported before it ends.
CERTIFICATE_DAYS = 14
_CONNECT_SECONDS = 10.0

#: The remedy for a certificate, by OpenSSL's number for the problem.
_REMEDIES = {
    9: "it is of the future; set this machine's clock",
    10: "renew it at the console, or set this machine's clock",
    62: "use the name that it was made for with --console",
}

T = TypeVar("T")


class FactsOf(Protocol):
    def __call__(self, terraform: TerraformBinary, settings: Settings) -> RunnerFacts: ...


class _Problem(Exception):
    """A problem that a check has found."""


def check(settings: Settings, *, facts_of: FactsOf) -> int:
    """Print one line per check; exit code 1 if something is wrong."""
    checks = _Checks()
    terraform = checks.run(_check_terraform, "Terraform")
    checks.run(lambda: _check_disk(settings), "data directory")
    reached = checks.run(lambda: _check_connection(settings), "console")
    encrypted = checks.run(lambda: _check_tls(settings), "TLS") if reached else None
    if terraform and encrypted:
        facts = facts_of(terraform[0], settings)
        answer = checks.run(lambda: _check_credential(settings, facts), "credential")
        if answer:
            checks.run(lambda: _check_clock(answer[0]), "clock")
    for what in checks.not_tried:
        _print(f"-      {what}: cannot be tried before the rest is right.")
    return 1 if checks.problems else 0


class _Checks:
    def __init__(self) -> None:
        self.problems = 0
        self.not_tried = ["Terraform", "data directory", "console", "TLS", "credential", "clock"]

    def run(self, check: Callable[[], tuple[T, str]], what: str) -> tuple[T, str] | None:
        self.not_tried.remove(what)
        try:
            result = check()
        except (_Problem, TerraformMissing, SettingsError, ConsoleError) as error:
            self.problems += 1
            _print(f"wrong  {what}: {error}")
            return None
        _print(f"ok     {what}: {result[1]}")
        return result


def _print(line: str) -> None:
    print(line)  # noqa: T201 - this is what the command is for


def _check_terraform() -> tuple[TerraformBinary, str]:
    terraform = find_terraform()
    return terraform, f"{terraform.product} {terraform.version}, {terraform.path} (from {terraform.origin})"


def _check_disk(settings: Settings) -> tuple[None, str]:
    data = DataDirectory(settings.data_dir)
    data.prepare()
    free = shutil.disk_usage(settings.data_dir).free
    if free < MIN_FREE_BYTES:
        raise _Problem(
            f"{settings.data_dir} has only {free // 1024 // 1024} MiB free: make room for providers."
        )
    _require_programs_run(data.plugin_cache)
    return None, f"{settings.data_dir}, {free // 1024 // 1024 // 1024} GiB free"


def _require_programs_run(directory: Path) -> None:
    """Run a script here, as providers are: a file system that is mounted `noexec` refuses."""
    script = _write_script(directory)
    try:
        subprocess.run([script], check=True, env={}, timeout=10)
    except (OSError, subprocess.SubprocessError) as error:
        raise _Problem(
            f"programs in {directory} cannot be run ({error}), so providers cannot: mount it without noexec."
        ) from error
    finally:
        script.unlink()


def _write_script(directory: Path) -> Path:
    try:
        with tempfile.NamedTemporaryFile("w", dir=directory, delete=False) as script:
            script.write("#!/bin/sh\n")
    except OSError as error:
        raise _Problem(f"nothing can be written in {directory}: {error.strerror}.") from error
    Path(script.name).chmod(0o700)
    return Path(script.name)


def _check_connection(settings: Settings) -> tuple[None, str]:
    """Connect to the console's address, except through a proxy, which is the client's business."""
    host, port = _host_and_port(settings)
    if _goes_through_proxy(settings):
        return None, f"{settings.console_url}, through a proxy"
    began = time.monotonic()
    try:
        socket.create_connection((host, port), timeout=_CONNECT_SECONDS).close()
    except socket.gaierror as error:
        raise _Problem(
            f"the name {host} is not known here ({error.strerror}): check --console and DNS."
        ) from error
    except OSError as error:
        raise _Problem(
            f"nothing answers at {host}, port {port} ({error}): check --console, the route and the firewall."
        ) from error
    return None, f"{settings.console_url} answers after {(time.monotonic() - began) * 1000:.0f} ms"


def _check_tls(settings: Settings) -> tuple[None, str]:
    if settings.console_url.startswith("http:"):
        if settings.sends_in_clear:
            raise _Problem(
                f"{settings.console_url} is not encrypted: others may read credentials. Use https."
            )
        return None, "not needed on this machine's own addresses"
    if _goes_through_proxy(settings):
        return None, "checked with the credential"
    host, port = _host_and_port(settings)
    context = ssl.create_default_context(cafile=settings.ca_file)
    try:
        with (
            socket.create_connection((host, port), timeout=_CONNECT_SECONDS) as plain,
            context.wrap_socket(plain, server_hostname=host) as encrypted,
        ):
            return None, f"{encrypted.version()}, {_validity(encrypted)}"
    except ssl.SSLCertVerificationError as error:
        remedy = _REMEDIES.get(error.verify_code, "give its authority with --ca-file")
        raise _Problem(
            f"the certificate of {host} is not trusted ({error.verify_message}): {remedy}."
        ) from error
    except OSError as error:
        raise _Problem(f"no encrypted connection to {host}, port {port}: {error}.") from error


def _validity(encrypted: ssl.SSLSocket) -> str:
    certificate = encrypted.getpeercert() or {}
    ends_at = datetime.fromtimestamp(ssl.cert_time_to_seconds(str(certificate["notAfter"])), UTC)
    days = (ends_at - datetime.now(UTC)).days
    if days < CERTIFICATE_DAYS:
        raise _Problem(f"the console's certificate ends in {days} days, on {ends_at:%Y-%m-%d}: renew it.")
    return f"a certificate until {ends_at:%Y-%m-%d}"


def _host_and_port(settings: Settings) -> tuple[str, int]:
    parts = urlsplit(settings.console_url)
    return parts.hostname or "", parts.port or (443 if parts.scheme == "https" else 80)


def _goes_through_proxy(settings: Settings) -> bool:
    parts = urlsplit(settings.console_url)
    return parts.scheme in getproxies() and not proxy_bypass(parts.hostname or "")


def _check_credential(settings: Settings, facts: RunnerFacts) -> tuple[HelloAnswer, str]:
    credential = settings.credential or read_credential(settings.credential_file)
    if not credential:
        raise _Problem(
            f"none in {settings.credential_file}: start the runner once with a registration token."
        )
    client = ConsoleClient(console_url=settings.console_url, credential=credential, ca_file=settings.ca_file)
    try:
        answer = client.hello(facts, give_up=lambda: True)
    finally:
        client.close()
    pools = ", ".join(facts.pools or answer.pools)
    return answer, f"the console knows this runner as {answer.name} of {answer.organization}, pools: {pools}"


def _check_clock(answer: HelloAnswer) -> tuple[None, str]:
    theirs = datetime.fromisoformat(answer.server_time)
    difference = abs((datetime.now(UTC) - theirs).total_seconds())
    if difference > MAX_CLOCK_DIFFERENCE_SECONDS:
        raise _Problem(f"{difference:.0f} s away from the console's: set up time synchronisation.")
    return None, f"{difference:.1f} s away from the console's"
