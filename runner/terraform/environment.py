"""The environment of a job's Terraform: built from nothing, with only what the job needs."""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from runner.outcome import StepFailed
from runner.protocol import StateAccess
from runner.terraform.watchdog import MARKER_VARIABLE
from runner.terraform.workdir import Workdir

#: Names in the runner's environment that a job may see: paths of programs, proxies and trust.
PASSED = (
    "PATH", "LANG", "LC_ALL", "LC_CTYPE", "TZ",
    "HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "ALL_PROXY",
    "http_proxy", "https_proxy", "no_proxy", "all_proxy",
    "SSL_CERT_FILE", "SSL_CERT_DIR",
)  # fmt: skip

#: Never passed, whatever the operator allows: they are credentials for the console, not the cloud.
_OWN_SECRETS = ("SLIPWAY_*",)

#: Names that a Spec's environment must not set: they would change the program, the place of the state, or
#: what the runner relies on.
_RESERVED = re.compile(
    r"PATH|HOME|TMPDIR|LD_.*|PYTHON.*|SLIPWAY_.*|CHECKPOINT_DISABLE|"
    r"TF_(HTTP_.*|CLI_.*|DATA_DIR|INPUT|IN_AUTOMATION|PLUGIN_CACHE.*|WORKSPACE|REATTACH_PROVIDERS)"
)
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")

#: Names whose values are secrets even if nobody declared them so.
_SECRET_NAME = re.compile(r"SECRET|TOKEN|PASSW|CREDENTIAL|PRIVATE|API_?KEY|ACCESS_?KEY", re.IGNORECASE)


def job_environment(
    *,
    runner_environ: Mapping[str, str],
    pass_also: Iterable[str],
    job_environ: Mapping[str, str],
    state: StateAccess | None,
    workdir: Workdir,
    terraform_config: Path,
    plugin_cache: Path,
    marker: str,
    region: Mapping[str, str],
) -> dict[str, str]:
    environ = {"LANG": "C.UTF-8", **_select(runner_environ, (*PASSED, *pass_also)), **region}
    environ.update(_require_allowed(job_environ))
    environ.update(
        HOME=str(workdir.home),
        TMPDIR=str(workdir.temporary),
        TF_IN_AUTOMATION="1",
        TF_INPUT="0",
        TF_CLI_CONFIG_FILE=str(terraform_config),
        TF_PLUGIN_CACHE_DIR=str(plugin_cache),
        CHECKPOINT_DISABLE="1",
        GIT_TERMINAL_PROMPT="0",
    )
    environ[MARKER_VARIABLE] = marker
    environ.update(_state_environment(state) if state else {})
    return environ


def matches(name: str, patterns: Iterable[str]) -> bool:
    """Return whether a variable's name is one of these, of which some may have wildcards."""
    return any(fnmatch.fnmatchcase(name, pattern) for pattern in patterns)


def secret_values(environ: Mapping[str, str], sensitive_names: Iterable[str]) -> Iterator[str]:
    """Return the secret values of a job's environment."""
    names = set(sensitive_names)
    for name, value in environ.items():
        if name in names or name.removeprefix("TF_VAR_") in names or _SECRET_NAME.search(name):
            yield value


def _select(environ: Mapping[str, str], patterns: Iterable[str]) -> dict[str, str]:
    allowed = tuple(patterns)
    return {
        name: value
        for name, value in environ.items()
        if matches(name, allowed) and not matches(name, _OWN_SECRETS)
    }


def _require_allowed(environ: Mapping[str, str]) -> Mapping[str, str]:
    for name, value in environ.items():
        if not _NAME.fullmatch(name) or _RESERVED.fullmatch(name) or "\0" in value:
            raise StepFailed(
                "environment_refused",
                f"The environment variable {name!r} cannot be set by a Spec. Remove it, then plan again.",
                fatal=True,
            )
    return environ


def _state_environment(state: StateAccess) -> dict[str, str]:
    """Configure the backend by the environment only: a file would end up in the plan file."""
    return {
        "TF_HTTP_ADDRESS": state.address,
        "TF_HTTP_LOCK_ADDRESS": state.lock_address,
        "TF_HTTP_UNLOCK_ADDRESS": state.lock_address,
        "TF_HTTP_LOCK_METHOD": "POST",
        "TF_HTTP_UNLOCK_METHOD": "DELETE",
        # The relay is the one to be patient: it knows the lease.
        "TF_HTTP_RETRY_MAX": "0",
        "TF_HTTP_USERNAME": state.username,
        "TF_HTTP_PASSWORD": state.password,
    }
