"""The topics that can be listened to. A topic says that something changed, not the change itself."""

from uuid import UUID


def job(job_id: UUID) -> str:
    """The job's row, or its log."""
    return f"job:{job_id}"


def organization(organization_id: UUID, list_name: str) -> str:
    """A list of the organization's: `jobs`, `runners`, `specs` or `identities`."""
    return f"organization:{organization_id}:{list_name}"


def pool(pool_id: UUID) -> str:
    """The pool may have work: held claim requests try again."""
    return f"pool:{pool_id}"
