"""The first steps of a job with a configuration: its working directory, its files and `init`."""

from __future__ import annotations

import json
from functools import partial
from typing import Any

from runner.attempt import Attempt, CommandResult
from runner.backends import backend_file, backend_type
from runner.clouds.registry import cloud_name, region_environment
from runner.git import fetch_files
from runner.outcome import StepFailed
from runner.protocol import BACKEND_FILE, VARIABLES_FILE, VERSION_FILE, LogLevel
from runner.terraform import commands
from runner.terraform.environment import job_environment
from runner.terraform.workdir import UnsafeFile

LOCK_FILE = ".terraform.lock.hcl"

#: Waits before another `init`: downloads fail for a moment more often than for good.
INIT_RETRY_SECONDS = (2.0, 5.0)


def make_workdir(attempt: Attempt) -> None:
    equipment, workdir = attempt.equipment, attempt.workdir
    workdir.make()
    workdir.record_attempt(job_id=attempt.claim.job_id, claim_id=attempt.claim.claim_id)
    config = workdir.scratch / "terraform.tfrc"
    config.write_text("disable_checkpoint = true\n")
    attempt.environ = job_environment(
        runner_environ=equipment.environ,
        pass_also=equipment.settings.pass_environment,
        job_environ=attempt.claim.environment,
        state=attempt.open_state(),
        workdir=workdir,
        terraform_config=equipment.settings.terraform_config or config,
        plugin_cache=equipment.data.plugin_cache,
        marker=attempt.marker,
        # As it was reviewed: the snapshot's, even if the Spec has another by now.
        region=region_environment(
            str(attempt.claim.snapshot.get("region") or ""), cloud=cloud_name(attempt.claim.identity)
        ),
    )


def write_configuration(attempt: Attempt) -> None:
    """Write the files of the snapshot, its variables, and the override file of the backend."""
    with attempt.phase("prepare", "Writing the configuration"):
        source = attempt.claim.snapshot.get("source", {})
        try:
            if source.get("kind") == "git":
                _write_repository(attempt, source)
            for name, text in _files(attempt).items():
                attempt.workdir.write(name, text)
        except UnsafeFile as error:
            raise StepFailed("configuration_refused", str(error), fatal=True) from error


def _write_repository(attempt: Attempt, source: dict[str, Any]) -> None:
    """Write the whole repository, since modules may lie beside the path in which Terraform runs."""
    attempt.log.write(f"Fetching {source['url']} at {source['commit'][:12]}")
    fetch = partial(fetch_files, url=source["url"], commit=source["commit"], token=attempt.claim.source_token)
    for name, text in attempt.stop.unless_stopped(fetch).items():
        attempt.workdir.write(name, text)
    attempt.workdir.enter(source.get("path", ""))


def _files(attempt: Attempt) -> dict[str, str]:
    claim = attempt.claim
    files = dict(claim.snapshot.get("files", {}))
    own: dict[str, str] = {VARIABLES_FILE: json.dumps(claim.variables)}
    if backend := backend_file(claim):
        own[BACKEND_FILE] = backend
    if version := claim.snapshot.get("terraform_version"):
        # A constraint of its own beside the author's: Terraform checks both, and explains itself.
        own[VERSION_FILE] = json.dumps({"terraform": {"required_version": version}})
    if reserved := sorted(own.keys() & files.keys()):
        raise UnsafeFile(f"The file name {reserved[0]!r} is not allowed: Slipway writes a file of that name.")
    reviewed = claim.plan or claim.retry
    if reviewed and reviewed.provider_lock:
        own[LOCK_FILE] = reviewed.provider_lock
    return files | own


def init(attempt: Attempt) -> None:
    with attempt.phase("init", "Initializing"):
        result = _run_init(attempt)
        for seconds in INIT_RETRY_SECONDS:
            if result.exit_code == 0 or result.failure("init").fatal:
                break
            attempt.log.write(f"init failed; trying again in {seconds:.0f} s", LogLevel.WARN)
            attempt.stop.wait(seconds)
            result = _run_init(attempt)
        if result.exit_code != 0:
            raise result.failure("init")
    _require_backend(attempt)


def _run_init(attempt: Attempt) -> CommandResult:
    arguments = commands.init_args(speaks_json=attempt.equipment.terraform.has_json_init)
    with attempt.equipment.data.plugin_cache_lock(while_waiting=attempt.stop.check):
        result = attempt.terraform(arguments)
    attempt.stop.check()
    return result


def _require_backend(attempt: Attempt) -> None:
    """Refuse an override file that sorts after ours: the state would vanish with this directory."""
    expected = backend_type(attempt.claim)
    if expected is None:
        return
    initialized = attempt.workdir.configuration / ".terraform" / "terraform.tfstate"
    backend = (
        json.loads(initialized.read_text()).get("backend", {}).get("type") if initialized.exists() else None
    )
    if backend != expected:
        raise StepFailed(
            "backend_replaced",
            f"The configuration moves its state to the backend {backend or 'local'!r}: "
            "remove the override file that does it.",
            fatal=True,
        )
