"""The runner's settings: command line first, then the environment, then defaults."""

from __future__ import annotations

import argparse
import dataclasses
import os
import resource
import socket
import ssl
from collections.abc import Iterable, Mapping
from pathlib import Path
from urllib.parse import urlsplit

#: The time for a cancelled Terraform to finish the requests that it has in flight. The lease is renewed
#: meanwhile, so this can be generous: killing an apply loses track of half-made resources.
DEFAULT_STOP_GRACE_SECONDS = 60.0


#: Identity tokens are renewed when half of their time is over, and at the latest after this.
DEFAULT_RENEW_SECONDS = 3600.0


class SettingsError(Exception):
    """A setting is missing or wrong; the message says which and what to do."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    console_url: str
    data_dir: Path
    credential_file: Path
    credential: str | None
    token: str | None
    name: str
    pools: tuple[str, ...]
    slots: int
    once: bool
    ca_file: Path | None
    terraform_config: Path | None
    pass_environment: tuple[str, ...]
    stop_grace_seconds: float
    limits: Mapping[int, int]
    renew_seconds: float = DEFAULT_RENEW_SECONDS

    @property
    def sends_in_clear(self) -> bool:
        parts = urlsplit(self.console_url)
        return parts.scheme == "http" and parts.hostname not in ("localhost", "127.0.0.1", "::1")


def load_settings(options: argparse.Namespace, environ: Mapping[str, str]) -> Settings:
    data_dir = options.data_dir or _data_dir(environ)
    credential_file = options.credential_file or _path(environ, "SLIPWAY_RUNNER_CREDENTIAL_FILE")
    return Settings(
        console_url=_console_url(options.console or environ.get("SLIPWAY_CONSOLE")),
        data_dir=data_dir.absolute(),
        credential_file=(credential_file or data_dir / "credential").absolute(),
        # A file named on the command line is meant; the environment may be left over.
        credential=None if options.credential_file else _credential_of(environ),
        # By the environment only: a command line is for everybody to read.
        token=environ.get("SLIPWAY_REGISTRATION_TOKEN", "").strip() or None,
        name=options.name or environ.get("SLIPWAY_RUNNER_NAME") or socket.gethostname(),
        pools=_names(",".join(options.pool) or environ.get("SLIPWAY_RUNNER_POOLS") or ""),
        slots=_slots(options.slots),
        once=options.once,
        ca_file=_certificate_file(options.ca_file or _path(environ, "SLIPWAY_CA_FILE")),
        terraform_config=_require_file(
            options.terraform_config or _path(environ, "SLIPWAY_RUNNER_TERRAFORM_CONFIG")
        ),
        pass_environment=_names(options.pass_env or environ.get("SLIPWAY_RUNNER_PASS_ENV") or ""),
        stop_grace_seconds=_seconds(environ, "SLIPWAY_RUNNER_STOP_GRACE", 0, DEFAULT_STOP_GRACE_SECONDS),
        limits=_limits(_names(",".join(options.limit) or environ.get("SLIPWAY_RUNNER_LIMITS") or "")),
        renew_seconds=_seconds(environ, "SLIPWAY_RUNNER_RENEW_SECONDS", 1, DEFAULT_RENEW_SECONDS),
    )


def is_credential(text: str) -> bool:
    """Return whether this is one word that a header can carry: an error would show any other text."""
    return bool(text) and all("!" <= char <= "~" for char in text)


def _credential_of(environ: Mapping[str, str]) -> str | None:
    text = environ.get("SLIPWAY_RUNNER_CREDENTIAL", "").strip()
    if text and not is_credential(text):
        raise SettingsError("SLIPWAY_RUNNER_CREDENTIAL does not hold a credential: give it as it was shown.")
    return text or None


def _console_url(text: str | None) -> str:
    if not text:
        raise SettingsError("No console given: pass --console URL or set SLIPWAY_CONSOLE.")
    parts = urlsplit(text)
    if parts.scheme not in ("http", "https") or not parts.hostname or not _is_printable_address(text):
        raise SettingsError(
            f"{text!r} is not a console address: give one such as https://slipway.example.com."
        )
    if parts.username or parts.password:
        raise SettingsError("The console address must not hold a password: a runner has its own credential.")
    return text.rstrip("/")


def _is_printable_address(text: str) -> bool:
    try:
        return text.isprintable() and " " not in text and urlsplit(text).port != 0
    except ValueError:  # a port that is not a number
        return False


def _data_dir(environ: Mapping[str, str]) -> Path:
    if own := environ.get("SLIPWAY_RUNNER_DATA_DIR"):
        return Path(own)
    if shared := environ.get("SLIPWAY_DATA_DIR"):
        return Path(shared) / "runner"
    if os.geteuid() == 0:
        return Path("/var/lib/slipway/runner")
    home = environ.get("XDG_DATA_HOME") or str(Path.home() / ".local" / "share")
    return Path(home) / "slipway" / "runner"


def _path(environ: Mapping[str, str], name: str) -> Path | None:
    return Path(environ[name]) if environ.get(name) else None


def _require_file(path: Path | None) -> Path | None:
    if path and not path.is_file():
        raise SettingsError(f"There is no file {path}.")
    return path.absolute() if path else None


def _certificate_file(path: Path | None) -> Path | None:
    file = _require_file(path)
    if file:
        try:
            ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT).load_verify_locations(file)
        except OSError as error:  # also what OpenSSL says of the text
            raise SettingsError(f"{file} holds no certificates in PEM form that can be read.") from error
    return file


def _slots(slots: int) -> int:
    if not 1 <= slots <= 64:
        raise SettingsError(f"--slots {slots} is out of range: give 1 to 64.")
    return slots


def _limits(texts: Iterable[str]) -> dict[int, int]:
    """Return the limits by number; none may exceed the runner's own."""
    return dict(map(_limit, texts))


def _limit(text: str) -> tuple[int, int]:
    name, _, value = text.partition("=")
    number = getattr(resource, f"RLIMIT_{name.upper()}", None)
    if number is None or not value.isdecimal():
        raise SettingsError(
            f"--limit {text} cannot be read: give a name and a number, such as nproc=2048 or nofile=65536."
        )
    # Core dumps are forbidden in any case.
    most = 0 if number == resource.RLIMIT_CORE else resource.getrlimit(number)[1]
    if most != resource.RLIM_INFINITY and int(value) > most:
        raise SettingsError(f"--limit {text} exceeds the limit of this runner itself, which is {most}.")
    return number, int(value)


def _names(text: str) -> tuple[str, ...]:
    return tuple(name.strip() for name in text.split(",") if name.strip())


def _seconds(environ: Mapping[str, str], name: str, least: float, default: float) -> float:
    text = environ.get(name)
    try:
        seconds = float(text) if text else default
    except ValueError:
        seconds = -1.0
    if not least <= seconds <= 3600:
        raise SettingsError(f"{name}={text} is out of range: give seconds, {least:.0f} to 3600.")
    return seconds
