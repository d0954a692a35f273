"""Telling open pages, and runners that wait for work, that a job changed."""

from uuid import UUID

from console.live import topics
from console.live.publish import publish_on_commit


def announce(*, job_id: UUID, organization_id: UUID, queued_in: UUID | None = None) -> None:
    """Publish the change of a job on commit; of a job that was queued, also to its pool's runners."""
    publish_on_commit(topics.job(job_id), topics.organization(organization_id, "jobs"))
    if queued_in is not None:
        publish_on_commit(topics.pool(queued_in))
