"""Jobs with cloud identities: their Specs and configurations, and their logs and results."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import jwt

from console.identities.models import CloudIdentity
from console.jobs.log.selectors import log_lines
from console.jobs.models import Job
from console.state.backends import choose_backend
from tests.people import Tenant, fresh
from tests.runner.clouds.fake_clouds import FakeCloud
from tests.runner.installation import Project
from tests.waiting import wait_until


def use_identity(
    project: Project, identity: CloudIdentity, *, keep_in: dict[str, Any] | None = None, kind: str = "s3"
) -> None:
    """The Spec acts as the identity, and keeps its state where the identity leads."""
    project.spec.identity = identity
    project.spec.save(update_fields=["identity"])
    if keep_in is not None:
        choose_backend(
            organization=project.tenant.organization,
            spec=project.spec,
            kind=kind,
            settings=keep_in,
            environment=None,
            chosen_by=project.tenant.admin,
        )


def waiting_files(folder: Path) -> dict[str, str]:
    """An apply that is in the middle until the file `go` is there, and then has more to save.

    The file `begun` says that it is, and what it can see of its environment.
    """
    begin = f"env > {folder}/seen; mv {folder}/seen {folder}/begun"
    command = f"{begin}; while [ ! -e {folder}/go ]; do sleep 0.05; done"
    return {
        "main.tf": f"""
            resource "terraform_data" "before" {{}}
            resource "terraform_data" "slow" {{
              depends_on = [terraform_data.before]
              provisioner "local-exec" {{ command = "{command}" }}
            }}
            resource "terraform_data" "after" {{ depends_on = [terraform_data.slow] }}
        """
    }


def expire_old_credentials(fake: FakeCloud, token_file: Path) -> None:
    """End in the cloud what was obtained until now: the console's tokens, sessions, access tokens.

    Only a job whose runner has put a newer token into its file can go on.
    """
    moment = int(time.time()) + 1
    wait_until(lambda: issued_at(token_file.read_text()) >= moment, seconds=30, what="a newer token")
    fake.configure(over_before=moment)


def issued_at(token: str) -> int:
    return int(jwt.decode(token, options={"verify_signature": False})["iat"])


def subject_of(tenant: Tenant, action: str) -> str:
    """A pattern for jobs of our Specs."""
    return f"organization:{tenant.organization.slug}@{tenant.organization.pk}:spec:*:action:{action}"


def identity_subject(tenant: Tenant) -> str:
    """A pattern for tests and fetches of our identities."""
    return f"organization:{tenant.organization.slug}@{tenant.organization.pk}:identity:*:action:test"


def lines(job: Job) -> list[dict[str, Any]]:
    return [line for _, line in log_lines(fresh(job), after=0, limit=100_000)]


def everything_reported(job: Job) -> str:
    """The log and the report of a job."""
    ended = fresh(job)
    return json.dumps([lines(ended), ended.result, ended.error_message])


def kid_of(token: str) -> str:
    return str(jwt.get_unverified_header(token)["kid"])


def always() -> bool:
    return True


def result_of(job: Job) -> dict[str, Any]:
    return dict(fresh(job).result or {})


def outcomes_of(job: Job) -> dict[str, str]:
    """Return the outcome of each check of a CONNECTION_TEST, with its detail unless it passed."""
    outcomes = {}
    for check in result_of(job).get("checks", ()):
        passed = check["outcome"] == "pass"
        outcomes[check["code"]] = "pass" if passed else f"{check['outcome']}: {check['detail']}"
    return outcomes
