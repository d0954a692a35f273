"""The steps of each job type. A step does one thing, or raises `StepFailed` with a sentence for people."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from typing import Any

from runner.attempt import Attempt, CommandResult
from runner.backends import LOCKED, console_state, lock_holder
from runner.client import PlanUpload
from runner.connection_test import test_connection
from runner.cost import estimate_cost
from runner.fetch_resources import fetch_resources
from runner.identity import assume_credentials
from runner.last_step import last_step_of
from runner.outcome import StepFailed
from runner.preparation import LOCK_FILE, init, make_workdir, write_configuration
from runner.protocol import VARIABLES_FILE, Claim, JobType, LogLevel, PlanReference, RetriedPlan
from runner.retry import beyond_review
from runner.stopping import Stopped
from runner.terraform import commands, plan_masking
from runner.terraform.plan_actions import count_drift, summarize
from runner.unsaved_state import save_errored_state

Step = Callable[[Attempt], None]

#: Time for the short commands that follow an apply, also when the job was meanwhile cancelled.
AFTER_APPLY_SECONDS = 20.0
#: The most unreviewed changes that a retry's report names; its plan has them all.
MAX_REPORTED = 50


def read_state(attempt: Attempt) -> None:
    """Read the identity of the state, and mask its sensitive outputs."""
    document = console_state(attempt.environ)
    if document is None:
        document = attempt.document(commands.state_pull_args())
    state: dict[str, Any] = json.loads(document) if document.strip() else {}
    attempt.state_lineage = str(state.get("lineage", ""))
    attempt.state_serial = int(state.get("serial", 0))
    outputs = state.get("outputs") or {}
    attempt.redactor.add(*(output.get("value") for output in outputs.values() if output.get("sensitive")))


def plan(attempt: Attempt) -> None:
    if attempt.claim.snapshot.get("destroy") is True:
        return plan_destroy(attempt)
    with attempt.phase("plan", "Planning"):
        # The console requests this after an interrupted apply.
        _plan(attempt, destroy=False, refresh_only=bool(attempt.claim.snapshot.get("refresh_only")))


def plan_destroy(attempt: Attempt) -> None:
    with attempt.phase("plan", "Planning to destroy"):
        _plan(attempt, destroy=True)


def _plan(attempt: Attempt, *, destroy: bool, refresh_only: bool = False) -> None:
    result = attempt.terraform(
        commands.plan_args(
            out=attempt.plan_file,
            # Passed again: a file such as team.auto.tfvars is read after ours and would override it.
            variables=VARIABLES_FILE,
            destroy=destroy,
            refresh_only=refresh_only,
        )
    )
    attempt.stop.check()
    if result.exit_code not in (0, 2):  # 2: there is something to change
        raise _failure(attempt, result, "plan")


def _failure(attempt: Attempt, result: CommandResult, phase: str) -> StepFailed:
    """Describe the error; of a lock, Terraform prints only the id, and people need the holder."""
    if any(error.summary == LOCKED for error in result.errors) and (holder := lock_holder(attempt.environ)):
        return StepFailed(
            "state_locked", f"The state is locked by {holder}. Wait for it, or unlock the state."
        )
    return result.failure(phase)


def upload_plan(attempt: Attempt) -> None:
    with attempt.phase("upload", "Uploading the plan"):
        document = json.loads(attempt.document(commands.show_args(plan=attempt.plan_file)))
        attempt.redactor.add(*plan_masking.sensitive_values(document))
        attempt.result["summary"] = summarize(document)
        if drifted := count_drift(document):
            attempt.result["drift"] = drifted
        plan_masking.mask(document, sensitive_variables=attempt.claim.sensitive_variables)
        uploaded = attempt.client.upload_plan(
            attempt.claim.job_id,
            attempt.claim.claim_id,
            _upload(attempt, document),
            give_up=attempt.stop.requested,
        )
        attempt.result["plan_id"] = uploaded.plan_id


def _upload(attempt: Attempt, document: dict[str, Any]) -> PlanUpload:
    masked_json = attempt.workdir.scratch / "plan.json"
    masked_json.write_text(json.dumps(attempt.redactor.mask_all(document), separators=(",", ":")))
    lock = attempt.workdir.configuration / LOCK_FILE
    lock.touch()  # without providers there is none
    fingerprint = {
        "state_lineage": attempt.state_lineage,
        "state_serial": attempt.state_serial,
        "terraform_version": attempt.equipment.terraform.label,
        "provider_lock_sha256": hashlib.sha256(lock.read_bytes()).hexdigest(),
    }
    return PlanUpload(
        plan=attempt.plan_file, masked_json=masked_json, lock=lock, fingerprint=json.dumps(fingerprint)
    )


def apply_or_ask(attempt: Attempt) -> None:
    """Apply the new plan if all of it was reviewed before; else upload it for review."""
    reviewed = _retried_plan(attempt)
    document = json.loads(attempt.document(commands.show_args(plan=attempt.plan_file)))
    beyond = beyond_review(document, reviewed.changes)
    details = {"plan_number": reviewed.plan_number, "beyond": beyond[:MAX_REPORTED]}
    attempt.result["retry"] = {"decision": "review" if beyond else "went_on", **details}
    if beyond:
        upload_plan(attempt)
        raise _review_needed(reviewed.plan_number, beyond)
    attempt.log.write(f"The remaining changes were reviewed with plan {reviewed.plan_number}: applying them")
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
        f"Nothing was applied: the remaining changes go beyond the reviewed plan {plan_number} "
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
    """Refuse a plan that no longer fits, right before the apply: what was reviewed is what is applied."""
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
    """Compare versions now: Terraform refuses a plan of another version only once it has the lock."""
    ours = attempt.equipment.terraform.label
    if reviewed.terraform_version not in ("", ours):
        raise _stale(f"Terraform {reviewed.terraform_version} made it, and this runner has {ours}")
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
    # From here on the outcome is what Terraform did: a cancel now comes too late.
    attempt.stop.shield(AFTER_APPLY_SECONDS)
    attempt.result["summary"] = {
        "add": result.summary.get("add", 0),
        "change": result.summary.get("change", 0),
        "destroy": result.summary.get("remove", 0),
    }
    save_errored_state(attempt)
    if result.exit_code != 0:
        attempt.stop.unshield()
        if reason:
            attempt.stop.check()
        raise _failure(attempt, result, "apply")
    attempt.has_applied = True


def _apply(attempt: Attempt) -> CommandResult:
    arguments = commands.apply_args(plan=attempt.plan_file)
    last = last_step_of(attempt.claim.snapshot) if attempt.claim.type == JobType.DEPLOY else None
    if last is None:
        return attempt.terraform(arguments)
    try:
        return attempt.terraform(arguments, around=last.around)
    finally:
        for event in last.close():
            attempt.log.write(event.message, event.level, event.data)


def report_outputs(attempt: Attempt) -> None:
    """Add the outputs to the report. An error here must not hide that the apply has happened."""
    try:
        outputs = json.loads(attempt.document(commands.output_args()))
    except (StepFailed, Stopped, ValueError) as error:
        attempt.log.write(f"The outputs cannot be read: {error}", LogLevel.WARN)
        outputs = {}
    secret = {name: output.get("value") for name, output in outputs.items() if output.get("sensitive")}
    attempt.redactor.add(*secret.values())
    attempt.sensitive_outputs = secret
    attempt.result["outputs"] = {name: _describe_output(output) for name, output in outputs.items()}


def _describe_output(output: dict[str, Any]) -> dict[str, Any]:
    description = {"type": output.get("type"), "sensitive": bool(output.get("sensitive"))}
    return description if description["sensitive"] else description | {"value": output.get("value")}


_BEGIN: tuple[Step, ...] = (make_workdir, write_configuration, assume_credentials, init)
_APPLY_REVIEWED: tuple[Step, ...] = (*_BEGIN, download_plan, check_plan, apply)

#: The steps of each job type, in order. Between two steps the attempt may be stopped.
STEPS: dict[JobType, tuple[Step, ...]] = {
    JobType.CONNECTION_TEST: (make_workdir, test_connection),
    JobType.FETCH_RESOURCES: (make_workdir, fetch_resources),
    JobType.PLAN: (*_BEGIN, read_state, plan, upload_plan, estimate_cost),
    JobType.DEPLOY: (*_APPLY_REVIEWED, report_outputs),
    JobType.DESTROY: (*_BEGIN, read_state, plan_destroy, apply),
}
#: A destroy that was reviewed, as a protected Spec's has to be.
DESTROY_REVIEWED: tuple[Step, ...] = _APPLY_REVIEWED
#: The steps of a retry, after a DEPLOY or DESTROY that ended part-way.
RETRY: dict[JobType, tuple[Step, ...]] = {
    JobType.DEPLOY: (*_BEGIN, read_state, plan, apply_or_ask),
    JobType.DESTROY: (*_BEGIN, read_state, plan_destroy, apply_or_ask),
}


def steps_of(claim: Claim) -> tuple[Step, ...]:
    """Return the steps of a job: some types have others for a reviewed plan, or for a retry."""
    type = JobType(claim.type)
    if claim.retry is not None and type in RETRY:
        return RETRY[type]
    if claim.plan is not None and type == JobType.DESTROY:
        return DESTROY_REVIEWED
    return STEPS[type]
