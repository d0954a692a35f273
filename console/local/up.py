"""Everything on one machine: database, migrations, console, janitor, one runner. `slipway up` runs it."""

from __future__ import annotations

import contextlib
import http.client
import ipaddress
import logging
import os
import shlex
import socket
import sys
import sysconfig
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from console.local.data_directory import DataDirectory, data_directory_path, open_data_directory
from console.local.embedded_postgres import EmbeddedPostgres
from console.local.installation import (
    Installation,
    log_to,
    migrate,
    own_connections,
    require_database,
    set_up_django,
)
from console.local.refusal import Refused
from console.local.supervisor import Service, Signals, Supervisor, set_aside_large_logs
from runner import __version__
from runner.terraform.binary import TerraformBinary, TerraformMissing, find_terraform

if TYPE_CHECKING:
    from console.local.first_run import FirstRun

logger = logging.getLogger(__name__)

# The console answers after one to three seconds; a cold disk may need ten times that.
CONSOLE_START_SECONDS = 60

# A runner interrupts Terraform and reports before it ends; its own grace is shorter than this.
RUNNER_STOP_SECONDS = 20
CHILD_STOP_SECONDS = 10


# --- Address --------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Address:
    host: str
    port: int

    @property
    def reachable_host(self) -> str:
        """Return the host to connect to from this machine: 0.0.0.0 and :: are for listening only."""
        with contextlib.suppress(ValueError):
            if ipaddress.ip_address(self.host).is_unspecified:
                return "::1" if ":" in self.host else "127.0.0.1"
        return self.host

    @property
    def url(self) -> str:
        host = self.reachable_host
        return f"http://[{host}]:{self.port}" if ":" in host else f"http://{host}:{self.port}"

    @property
    def is_loopback(self) -> bool:
        try:
            return ipaddress.ip_address(self.host).is_loopback
        except ValueError:
            return self.host == "localhost"


def free_address(host: str, port: int) -> Address:
    """Refuse a port that is in use. Port 0 asks the system for a free one."""
    try:
        family, _, _, _, where = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        with socket.socket(family) as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind(where)
            return Address(host, probe.getsockname()[1])
    except PermissionError:
        raise Refused(f"Port {port} needs root. Choose one above 1023 with --port.") from None
    except socket.gaierror:
        raise Refused(f"The host {host!r} is unknown here. Choose another with --host.") from None
    except OSError as error:
        raise Refused(
            f"Port {port} of {host} cannot be used: {(error.strerror or str(error)).lower()}. "
            "Stop what uses it, or choose another with --port."
        ) from None


# --- Output --------------------------------------- ------------------------------------------------


@dataclass(frozen=True)
class Terminal:
    """The terminal's messages, which up.log repeats with times."""

    log_file: Path

    def say(self, text: str = "") -> None:
        with contextlib.suppress(OSError):  # The terminal may be gone; stopping goes on.
            print(text, flush=True)  # noqa: T201
        self.note(text)

    def say_only_here(self, text: str) -> None:
        """Print a secret, which must not be in a file."""
        with contextlib.suppress(OSError):
            print(text, flush=True)  # noqa: T201

    def note(self, text: str) -> None:
        if text.strip():
            with self.log_file.open("a") as log:
                log.write(f"{datetime.now(UTC).isoformat(timespec='milliseconds')} {text.strip()}\n")


# --- The whole ------------------------------------------------------------------------------------


def up(*, host: str, port: int, data_dir: str | None) -> int:
    """Run until a signal to stop. Checks everything before anything starts."""
    base = dict(os.environ)
    root = data_directory_path(data_dir, base)
    DataDirectory(root).refuse_if_held()
    address = free_address(host, port)
    terraform = _require_terraform()
    if base.get("DATABASE_URL"):
        require_database(base["DATABASE_URL"])
    data = open_data_directory(root)
    signals = Signals()
    signals.catch()
    with data.hold(address=address.url):
        set_aside_large_logs(data.log)
        terminal = Terminal(data.log / "up.log")
        log_to(terminal.log_file)
        installation = Installation(data=data, secrets=data.secrets(), base_environment=base)
        everything = Everything(installation, address, terraform, signals, terminal)
        try:
            everything.run()
        except Refused:
            raise
        except Exception as error:
            logger.exception("slipway up failed")
            raise Refused(
                f"The start failed: {str(error).splitlines()[0] if str(error) else type(error).__name__}. "
                f"See {terminal.log_file}."
            ) from error
        finally:
            everything.stop()
    return 0


def _require_terraform() -> TerraformBinary:
    try:
        return find_terraform()
    except TerraformMissing as error:
        raise Refused(str(error)) from None


@dataclass
class Everything:
    """All processes of one installation, from the database to the runner."""

    installation: Installation
    address: Address
    terraform: TerraformBinary
    signals: Signals
    terminal: Terminal
    postgres: EmbeddedPostgres | None = None
    supervisor: Supervisor = field(init=False)

    def __post_init__(self) -> None:
        self.supervisor = Supervisor(signals=self.signals, say=self.terminal.say)
        self._registration_token: str | None = None

    @property
    def data(self) -> DataDirectory:
        return self.installation.data

    def run(self) -> None:
        say = self.terminal.say
        say(f"Slipway {__version__}")
        say(f"  Data       {self.data.root}")
        say(f"  Terraform  {self.terraform.version} ({self.terraform.origin})")
        database_url = self._start_database()
        environment = self._console_environment(database_url)
        first_run = self._prepare(environment)
        self._start_console(environment)
        if not self._wait_for_console():
            return
        self._start_janitor(environment)
        self._start_runner()
        self._greet(first_run)
        self.supervisor.run(also_watch=self._watch_database)

    def stop(self) -> None:
        if self.supervisor.services or self.postgres is not None:
            self.terminal.say("\nStopping …")
        self.supervisor.stop()
        if self.postgres is not None:
            self.postgres.stop()
        self.terminal.say(f"Stopped. Your data is in {self.data.root}")

    # --- Database ---

    def _start_database(self) -> str:
        external = self.installation.external_database_url
        if external is not None:
            self.terminal.say("  Database   DATABASE_URL")
            return external
        self.terminal.say("  Database   embedded PostgreSQL")
        self.postgres = self.installation.embedded_postgres()
        self.postgres.start()
        self.postgres.ensure_database()
        return self.postgres.url()

    def _watch_database(self) -> None:
        if self.postgres is None or self.postgres.is_running:
            return
        self.terminal.say(f"The database ended and is being restarted; see {self.postgres.log_file}")
        try:
            self.postgres.restart()
        except Refused as refusal:
            self.terminal.note(str(refusal))  # The next turn tries again.

    def _prepare(self, environment: Mapping[str, str]) -> FirstRun:
        set_up_django(environment, log_file=self.terminal.log_file)
        from console.local.first_run import prepare

        with own_connections():
            migrate(database_url=environment["DATABASE_URL"])
            first_run = prepare(need_runner_token=not self.data.runner_credential.exists())
        self._registration_token = first_run.registration_token
        return first_run

    # --- Console, janitor, runner ---

    def _console_environment(self, database_url: str) -> dict[str, str]:
        environment = self.installation.console_environment(database_url=database_url)
        public_url = environment.setdefault("SLIPWAY_PUBLIC_URL", self.address.url)
        if public_url.startswith("http://"):  # A browser keeps secure cookies to itself there.
            environment.setdefault("SLIPWAY_INSECURE_COOKIES", "1")
        return environment

    def _service(
        self, name: str, command: list[str], environment: Mapping[str, str], stop_seconds: float
    ) -> Service:
        return Service(
            name=name,
            command=command,
            environment=lambda: environment,
            log_file=self.data.log / f"{name}.log",
            stop_seconds=stop_seconds,
        )

    def _start_console(self, environment: Mapping[str, str]) -> None:
        listen = ["--host", self.address.host, "--port", str(self.address.port)]
        command = [sys.executable, "-P", "-m", "console.local.serve", *listen]
        self.supervisor.start(self._service("console", command, environment, CHILD_STOP_SECONDS))

    def _start_janitor(self, environment: Mapping[str, str]) -> None:
        command = [sys.executable, "-P", "-m", "django", "janitor"]
        self.supervisor.start(self._service("janitor", command, environment, CHILD_STOP_SECONDS))

    def _start_runner(self) -> None:
        command = [
            *_script("slipway-runner"),
            "start",
            f"--console={self.address.url}",
            "--name=local",
            f"--credential-file={self.data.runner_credential}",
            f"--data-dir={self.data.runner}",
        ]
        service = self._service("runner", command, {}, RUNNER_STOP_SECONDS)
        service.environment = self._runner_environment
        self.supervisor.start(service)

    def _runner_environment(self) -> dict[str, str]:
        environment = self.installation.runner_environment()
        if not self.data.runner_credential.exists():
            environment["SLIPWAY_REGISTRATION_TOKEN"] = self._take_registration_token()
        return environment

    def _take_registration_token(self) -> str:
        """Return an unused token: a runner that ended before it stored its credential needs another."""
        token, self._registration_token = self._registration_token, None
        if token is not None:
            return token
        from console.local.first_run import new_runner_token

        try:
            with own_connections():
                return new_runner_token() or ""
        except Exception:
            logger.exception("no registration token could be made")
            return ""  # The runner says that it has none, and the next restart tries again.

    def _wait_for_console(self) -> bool:
        """Return false if a person stopped `slipway up` in the meantime."""
        console = self.supervisor.services[0]
        deadline = time.monotonic() + CONSOLE_START_SECONDS
        while time.monotonic() < deadline and not self.signals.stop_requests:
            if not console.is_running:
                raise Refused(
                    f"The console ended during its start ({console.exit_text}). See {console.log_file}."
                )
            if self._console_answers():
                return True
            self.signals.wait(0.1)
        if self.signals.stop_requests:
            return False
        raise Refused(f"The console did not answer within {CONSOLE_START_SECONDS} s. See {console.log_file}.")

    def _console_answers(self) -> bool:
        connection = http.client.HTTPConnection(self.address.reachable_host, self.address.port, timeout=2)
        try:
            connection.request("GET", "/healthz")
            status = connection.getresponse().status
        except (OSError, http.client.HTTPException):
            return False
        finally:
            connection.close()
        if status >= http.HTTPStatus.INTERNAL_SERVER_ERROR:  # It runs but is broken: waiting does not help.
            raise Refused(
                f"The console answers with error {status}. See {self.supervisor.services[0].log_file}."
            )
        return status == http.HTTPStatus.OK

    # --- The greeting ---

    def _greet(self, first_run: FirstRun) -> None:
        say = self.terminal.say
        say()
        say("Slipway is running.")
        say()
        say(f"  Open       {self.address.url}")
        self._say_sign_in(first_run)
        say(f"  Log        {self.data.log}")
        say()
        if not self.address.is_loopback:
            say("  Anyone on your network can reach it without encryption: put TLS in front of it.")
            say()
        say("Ctrl-C stops everything and keeps the data.")

    def _say_sign_in(self, first_run: FirstRun) -> None:
        reset = _reset_command(self.installation)
        if first_run.admin_password is None:
            self.terminal.say(
                f"  Sign in    {first_run.admin_username}, with the password from the first start"
            )
            self.terminal.say(f"             (a new one: {reset})")
        else:
            self.terminal.say_only_here(
                f"  Sign in    {first_run.admin_username}  {first_run.admin_password}\n"
                f"             (no longer shown once you have signed in; a new one: {reset})"
            )


def _script(name: str) -> list[str]:
    """Return a command of this installation, even when its folder is not on the PATH."""
    return [str(Path(sysconfig.get_path("scripts")) / name)]


def _reset_command(installation: Installation) -> str:
    program = Path(_script("slipway")[0])
    with contextlib.suppress(ValueError):
        program = program.relative_to(Path.cwd())
    command = [str(program), "reset-password"]
    if installation.data.root != data_directory_path(None, installation.base_environment):
        command.append(f"--data-dir={installation.data.root}")
    return shlex.join(command)


# --- A new password -------------------------------------------------------------------------------


def reset_password(*, username: str, data_dir: str | None) -> str:
    """Give a person a new password, whether Slipway is running or not, and return it."""
    root = data_directory_path(data_dir, os.environ)
    if not DataDirectory(root).marker.exists():
        raise Refused(f"There is no Slipway in {root}. Start one with `slipway up`, or pass --data-dir.")
    data = open_data_directory(root)
    installation = Installation(data=data, secrets=data.secrets(), base_environment=dict(os.environ))
    with _database(installation) as url:
        set_up_django(installation.console_environment(database_url=url), log_file=data.log / "up.log")
        with own_connections():
            return _give_new_password(username)


@contextlib.contextmanager
def _database(installation: Installation) -> Iterator[str]:
    if installation.external_database_url is not None:
        require_database(installation.external_database_url)
        yield installation.external_database_url
        return
    postgres = installation.embedded_postgres()
    if installation.data.is_held():
        yield postgres.url()
        return
    with installation.data.hold(address="reset-password"), postgres:
        postgres.ensure_database()
        yield postgres.url()


def _give_new_password(username: str) -> str:
    from django.db import OperationalError, ProgrammingError

    from console.accounts import services
    from console.accounts.models import User

    try:
        user = User.objects.filter(username=username).first()
    except (OperationalError, ProgrammingError):
        raise Refused("The database has no users yet. Start Slipway once with `slipway up`.") from None
    if user is None:
        raise Refused(f"There is no user {username!r}. Choose one with --username.")
    return services.reset_password(user=user)
