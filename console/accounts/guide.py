"""The first-run guide of an organization: what its people have skipped or closed."""

from django.db.models import Q
from django.utils import timezone

from console.accounts.models import Organization


def skip_cloud(*, organization: Organization, skip: bool) -> None:
    """Skip the step that connects a cloud, or undo skipping it."""
    Organization.objects.filter(pk=organization.pk).update(cloud_skipped_at=timezone.now() if skip else None)


def close_guide(*, organization: Organization) -> None:
    Organization.objects.filter(Q(guide_closed_at=None), pk=organization.pk).update(
        guide_closed_at=timezone.now()
    )
