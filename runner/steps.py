"""The steps of each job type. A step does one thing, or raises `StepFailed` with a sentence for people."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from runner import plan_json, terraform
from runner.backends import LOCKED, backend_file, backend_type, console_state, lock_holder
from runner.client import ConsoleAway, PlanUpload, Refused, errored_state_path
from runner.connection_test import test_connection
from runner.cost import estimate_cost
from runner.environment import job_environment, region_environment
from runner.git import fetch_files
from runner.identity import assume_credentials
from runner.last_step import last_step_of
from runner.outcome import StepFailed
from runner.protocol import (
    BACKEND_FILE,
    ERRORED_STATE,
    VARIABLES_FILE,
    VERSION_FILE,
    Claim,
    JobType,
    LogLevel,
    PlanReference,
    RetriedPlan,
)
from runner.resources import fetch_resources
from runner.retry import beyond_review
from runner.stopping import Stopped
from runner.workdir import UnsafeFile

if TYPE_CHECKING:
    from runner.attempt import Attempt, CommandResult

Step = Callable[["Attempt"], None]

LOCK_FILE = ".terraform.lock.hcl"

#: Waits before another `init`: downloads fail for a moment more often than for good.
INIT_RETRY_SECONDS = (2.0, 5.0)
#: Time for the short commands that follow an apply, also when the job was meanwhile cancelled.
AFTER_APPLY_SECONDS = 20.0
#: A retry's report names at most so many changes that nobody has reviewed; its plan has them all.
MAX_TOLD = 50


def make_workdir(attempt: Attempt) -> None:
    equipment, workdir = attempt.equipment, attempt.workdir
    workdir.make()
    workdir.note(job_id=attempt.claim.job_id, claim_id=attempt.claim.claim_id)
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
        region=_region(attempt.claim),
    )


def _region(claim: Claim) -> dict[str, str]:
    """As it was reviewed: the snapshot's, whatever the Spec says by now."""
    identity = claim.identity
    cloud = (identity.settings.get("provider_hint") or identity.provider) if identity else ""
    return region_environment(str(claim.snapshot.get("region") or ""), cloud=str(cloud))


def write_configuration(attempt: Attempt) -> None:
    """Files from the snapshot, variables, and what makes Terraform keep its state in the console."""
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
    """The whole repository, since modules may lie beside the path; Terraform then runs in the path."""
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
    if wanted := claim.snapshot.get("terraform_version"):
        # A constraint of its own beside the author's: Terraform checks both, and explains itself.
        own[VERSION_FILE] = json.dumps({"terraform": {"required_version": wanted}})
    if taken := sorted(own.keys() & files.keys()):
        raise UnsafeFile(f"The file name {taken[0]!r} is not allowed: Slipway writes a file of that name.")
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
    _require_chosen_backend(attempt)


def _run_init(attempt: Attempt) -> CommandResult:
    arguments = terraform.init_args(speaks_json=attempt.equipment.terraform.has_json_init)
    with attempt.equipment.data.plugin_cache_lock(while_waiting=attempt.stop.check):
        result = attempt.terraform(arguments)
    attempt.stop.check()
    return result


def _require_chosen_backend(attempt: Attempt) -> None:
    """An override file that sorts after ours would win, and the state would vanish with this directory."""
    wanted = backend_type(attempt.claim)
    if wanted is None:
        return
    chosen = attempt.workdir.configuration / ".terraform" / "terraform.tfstate"
    backend = json.loads(chosen.read_text()).get("backend", {}).get("type") if chosen.exists() else None
    if backend != wanted:
        raise StepFailed(
            "backend_replaced",
            f"The configuration moves its state to the backend {backend or 'local'!r}: "
            "remove the override file that does it.",
            fatal=True,
        )


def read_state(attempt: Attempt) -> None:
    """Learn which state this is, and which of its outputs must not be shown."""
    pulled = console_state(attempt.environ)
    if pulled is None:
        pulled = attempt.document(terraform.state_pull_args())
    state: dict[str, Any] = json.loads(pulled) if pulled.strip() else {}
    attempt.state_lineage = str(state.get("lineage", ""))
    attempt.state_serial = int(state.get("serial", 0))
    outputs = state.get("outputs") or {}
    attempt.redactor.add(*(output.get("value") for output in outputs.values() if output.get("sensitive")))


def plan(attempt: Attempt) -> None:
    if attempt.claim.snapshot.get("destroy") is True:
        return plan_destroy(attempt)
    with attempt.phase("plan", "Planning"):
        # Asked for by the console after an interrupted apply.
        _plan(attempt, destroy=False, refresh_only=bool(attempt.claim.snapshot.get("refresh_only")))


def plan_destroy(attempt: Attempt) -> None:
    with attempt.phase("plan", "Planning to destroy"):
        _plan(attempt, destroy=True)


def _plan(attempt: Attempt, *, destroy: bool, refresh_only: bool = False) -> None:
    result = attempt.terraform(
        terraform.plan_args(
            out=attempt.plan_file,
            # Named once more: a file such as team.auto.tfvars comes after ours and would win over it.
            variables=VARIABLES_FILE,
            destroy=destroy,
            refresh_only=refresh_only,
        )
    )
    attempt.stop.check()
    if result.exit_code not in (0, 2):  # 2: there is something to change
        raise _failure(attempt, result, "plan")


def _failure(attempt: Attempt, result: CommandResult, phase: str) -> StepFailed:
    """Terraform prints only the id of a lock that is in the way; people want to know whose it is."""
    if any(error.summary == LOCKED for error in result.errors) and (holder := lock_holder(attempt.environ)):
        return StepFailed(
            "state_locked", f"The state is locked by {holder}. Wait for it, or unlock the state."
        )
    return result.failure(phase)


def upload_plan(attempt: Attempt) -> None:
    with attempt.phase("upload", "Uploading the plan"):
        document = json.loads(attempt.document(terraform.show_args(plan=attempt.plan_file)))
        attempt.redactor.add(*plan_json.sensitive_values(document))
        attempt.result["summary"] = plan_json.summarize(document)
        if drifted := plan_json.count_drift(document):
            attempt.result["drift"] = drifted
        plan_json.mask(document, sensitive_variables=attempt.claim.sensitive_variables)
        uploaded = attempt.client.upload_plan(
            attempt.claim.job_id,
            attempt.claim.claim_id,
            _upload(attempt, document),
            give_up=attempt.stop.requested,
        )
        attempt.result["plan_id"] = uploaded.plan_id


def _upload(attempt: Attempt, document: dict[str, Any]) -> PlanUpload:
    shown = attempt.workdir.scratch / "plan.json"
    shown.write_text(json.dumps(attempt.redactor.mask_all(document), separators=(",", ":")))
    lock = attempt.workdir.configuration / LOCK_FILE
    lock.touch()  # without providers there is none
    fingerprint = {
        "state_lineage": attempt.state_lineage,
        "state_serial": attempt.state_serial,
        "terraform_version": attempt.equipment.terraform.label,
        "provider_lock_sha256": hashlib.sha256(lock.read_bytes()).hexdigest(),
    }
    return PlanUpload(plan=attempt.plan_file, shown=shown, lock=lock, fingerprint=json.dumps(fingerprint))


def go_on_or_ask(attempt: Attempt) -> None:
    """Apply what was just planned when all of it was reviewed before; else leave it as a plan to review."""
    reviewed = _retried_plan(attempt)
    document = json.loads(attempt.document(terraform.show_args(plan=attempt.plan_file)))
    beyond = beyond_review(document, reviewed.changes)
    told = {"plan_number": reviewed.plan_number, "beyond": beyond[:MAX_TOLD]}
    attempt.result["retry"] = {"decision": "review" if beyond else "went_on", **told}
    if beyond:
        upload_plan(attempt)
        raise _review_needed(reviewed.plan_number, beyond)
    attempt.log.write(f"What is left is a part of plan {reviewed.plan_number}, which was reviewed: going on")
    apply(attempt)
    if attempt.claim.type == JobType.DEPLOY:
        report_outputs(attempt)


def _retried_plan(attempt: Attempt) -> RetriedPlan:
    assert attempt.claim.retry is not None, "these steps are for retries"
    return attempt.claim.retry


def _review_needed(plan_number: int, beyond: list[str]) -> StepFailed:
    more = f" and {len(beyond) - 3} more" if len(beyond) > 3 else ""
    return StepFailed(
        "review_needed",
        f"Nothing was applied: what is left goes beyond plan {plan_number}, which was reviewed "
        f"({', '.join(beyond[:3])}{more}). Review the new plan, then apply it.",
        fatal=True,
    )


def download_plan(attempt: Attempt) -> None:
    reviewed = _reviewed_plan(attempt)
    with attempt.phase("download", "Fetching the reviewed plan"):
        sha256 = attempt.client.download_plan(
            attempt.claim.job_id, attempt.claim.claim_id, attempt.plan_file, give_up=attempt.stop.requested
        )
        if sha256 != reviewed.file_sha256:
            raise _stale("the plan file is not the one that was reviewed")


def check_plan(attempt: Attempt) -> None:
    """What was reviewed is what is applied: the last look, right before the apply."""
    reviewed = _reviewed_plan(attempt)
    if attempt.claim.snapshot_hash != reviewed.snapshot_hash:
        raise _stale("the configuration changed since")
    _check_tools(attempt, reviewed)
    read_state(attempt)
    if attempt.state_lineage != reviewed.state_lineage:
        raise _stale("the state was replaced by another one since")
    if attempt.state_serial != reviewed.state_serial:
        raise _stale(
            f"the state changed since, from serial {reviewed.state_serial} to {attempt.state_serial}"
        )


def _check_tools(attempt: Attempt, reviewed: PlanReference) -> None:
    """Terraform takes a plan of its own version only, and would say so after the lock was taken."""
    ours = attempt.equipment.terraform.label
    if reviewed.terraform_version not in ("", ours):
        raise _stale(f"it was made with Terraform {reviewed.terraform_version}, and this runner has {ours}")
    lock_sha256 = hashlib.sha256(reviewed.provider_lock.encode()).hexdigest()
    if reviewed.provider_lock_sha256 not in ("", lock_sha256):
        raise _stale("the provider lock is not the one that was reviewed")


def _reviewed_plan(attempt: Attempt) -> PlanReference:
    if attempt.claim.plan is None:
        raise StepFailed("plan_missing", "This DEPLOY names no plan. Plan again, then apply.", fatal=True)
    return attempt.claim.plan


def _stale(why: str) -> StepFailed:
    return StepFailed("plan_stale", f"The plan is stale: {why}. Plan again, then apply.", fatal=True)


def apply(attempt: Attempt) -> None:
    with attempt.phase("apply", "Applying"):
        result = _apply(attempt)
    reason = attempt.stop.reason
    # From here on the truth is what Terraform did: a cancel that comes now comes too late.
    attempt.stop.shield(AFTER_APPLY_SECONDS)
    attempt.result["summary"] = {
        "add": result.summary.get("add", 0),
        "change": result.summary.get("change", 0),
        "destroy": result.summary.get("remove", 0),
    }
    _save_errored_state(attempt)
    if result.exit_code != 0:
        attempt.stop.unshield()
        if reason:
            attempt.stop.check()
        raise _failure(attempt, result, "apply")
    attempt.has_applied = True


def _apply(attempt: Attempt) -> CommandResult:
    arguments = terraform.apply_args(plan=attempt.plan_file)
    last = last_step_of(attempt.claim.snapshot) if attempt.claim.type == JobType.DEPLOY else None
    if last is None:
        return attempt.terraform(arguments)
    try:
        return attempt.terraform(arguments, around=last.around)
    finally:
        for event in last.close():
            attempt.log.write(event.message, event.level, event.data)


def _save_errored_state(attempt: Attempt) -> None:
    """Terraform writes this file when it could not save the state: it must not get lost."""
    errored = attempt.workdir.configuration / ERRORED_STATE
    if not _is_whole(errored):
        return _keep_what_was_on_its_way(attempt, errored)
    try:
        attempt.document(terraform.state_push_args(file=errored))
    except Exception as error:
        attempt.log.write(
            f"Terraform could not save the state, and neither could the runner ({error}). "
            f"{_put_aside(attempt, errored, errored.read_bytes())}",
            LogLevel.ERROR,
        )
    else:
        errored.unlink()
        attempt.log.write(
            "Terraform could not save the state at first; the runner has pushed it.", LogLevel.WARN
        )


def _is_whole(errored: Path) -> bool:
    """On a full disk Terraform leaves an empty file."""
    try:
        json.loads(errored.read_bytes())
    except (OSError, ValueError):
        return False
    return True


def _keep_what_was_on_its_way(attempt: Attempt, errored: Path) -> None:
    """Terraform was killed while it saved, or could not write. Its lock may be left, so nothing is pushed."""
    state = attempt.equipment.relay.unsaved(attempt.marker)
    if state is not None:
        told = f"Terraform could save the state nowhere. {_put_aside(attempt, errored, state)}"
        attempt.log.write(told, LogLevel.ERROR)
    elif errored.exists():
        errored.unlink()
        attempt.log.write(
            "Terraform could save the state nowhere: its last changes are lost.", LogLevel.ERROR
        )


def _put_aside(attempt: Attempt, errored: Path, state: bytes) -> str:
    """Keep the state with the job, or on this machine until the console takes it; says what to do with it."""
    claim, path = attempt.claim, errored_state_path(attempt.claim.job_id, attempt.claim.claim_id)
    older = "Until then plans start from an older state."
    try:
        attempt.client.upload_errored_state(
            claim.job_id, claim.claim_id, state, give_up=attempt.stop.requested
        )
    except (Refused, ConsoleAway) as error:
        return (
            f"The console did not take it either ({error}). {_rescue(attempt, errored, state, path)} {older}"
        )
    errored.unlink(missing_ok=True)
    return (
        f"It is kept with this job: download it from {attempt.equipment.settings.console_url}{path}, and "
        f"push it with `terraform state push errored.tfstate` first of all. {older}"
    )


def _rescue(attempt: Attempt, errored: Path, state: bytes, path: str) -> str:
    name, claim = attempt.equipment.name, attempt.claim
    try:
        if not _is_whole(errored):
            errored.write_bytes(state)
        kept = attempt.equipment.data.rescue(errored, job_id=claim.job_id, claim_id=claim.claim_id)
    except OSError as error:
        errored.unlink(missing_ok=True)
        return f"Runner {name} cannot keep it ({error.strerror}): its last changes are lost."
    return (
        f"Runner {name} keeps it as {kept}, and uploads it to {path} when it can. Push it with "
        "`terraform state push` first."
    )


def report_outputs(attempt: Attempt) -> None:
    """The outputs for the report. The apply has happened: failing here must not hide that."""
    try:
        outputs = json.loads(attempt.document(terraform.output_args()))
    except (StepFailed, Stopped, ValueError) as error:
        attempt.log.write(f"The outputs cannot be read: {error}", LogLevel.WARN)
        outputs = {}
    secret = {name: output.get("value") for name, output in outputs.items() if output.get("sensitive")}
    attempt.redactor.add(*secret.values())
    attempt.sensitive_outputs = secret
    attempt.result["outputs"] = {name: _shown(output) for name, output in outputs.items()}


def _shown(output: dict[str, Any]) -> dict[str, Any]:
    shown = {"type": output.get("type"), "sensitive": bool(output.get("sensitive"))}
    return shown if shown["sensitive"] else shown | {"value": output.get("value")}


_BEGIN: tuple[Step, ...] = (make_workdir, write_configuration, assume_credentials, init)
_APPLY_REVIEWED: tuple[Step, ...] = (*_BEGIN, download_plan, check_plan, apply)

#: What each job type does, in order. Between two steps the attempt may be stopped.
STEPS: dict[JobType, tuple[Step, ...]] = {
    JobType.CONNECTION_TEST: (make_workdir, test_connection),
    JobType.FETCH_RESOURCES: (make_workdir, fetch_resources),
    JobType.PLAN: (*_BEGIN, read_state, plan, upload_plan, estimate_cost),
    JobType.DEPLOY: (*_APPLY_REVIEWED, report_outputs),
    JobType.DESTROY: (*_BEGIN, read_state, plan_destroy, apply),
}
#: A destroy that was reviewed, as a protected Spec's has to be.
DESTROY_REVIEWED: tuple[Step, ...] = _APPLY_REVIEWED
#: Going on with a DEPLOY or DESTROY that ended part-way.
RETRY: dict[JobType, tuple[Step, ...]] = {
    JobType.DEPLOY: (*_BEGIN, read_state, plan, go_on_or_ask),
    JobType.DESTROY: (*_BEGIN, read_state, plan_destroy, go_on_or_ask),
}


def steps_of(claim: Claim) -> tuple[Step, ...]:
    """By the job's type, and by whether there is a reviewed plan to apply or to go on with."""
    type = JobType(claim.type)
    if claim.retry is not None and type in RETRY:
        return RETRY[type]
    if claim.plan is not None and type == JobType.DESTROY:
        return DESTROY_REVIEWED
    return STEPS[type]
