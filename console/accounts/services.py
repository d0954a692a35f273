"""Services for people and organizations."""

import secrets
from datetime import timedelta

from django.contrib.auth.password_validation import validate_password
from django.core.exceptions import ValidationError
from django.db import transaction
from django.utils import timezone

from console.accounts.models import (
    ApiToken,
    Installation,
    Membership,
    Organization,
    SavedFilter,
    User,
)
from console.accounts.rights import FOUNDER
from console.accounts.tokens import digest, new_token
from console.audit.actions import AuditAction
from console.audit.services import record
from console.errors import BadInput
from console.live import topics
from console.live.publish import publish_on_commit

#: 18 random bytes: beyond guessing, and still short enough to type once.
PASSWORD_BYTES = 18
#: A longer list of filters would need a search of its own.
MAX_SAVED_FILTERS = 20


@transaction.atomic
def create_organization(*, name: str, slug: str, admin: User) -> Organization:
    organization = Organization.objects.create(name=name, slug=slug)
    Membership.objects.create(user=admin, organization=organization, role=FOUNDER)
    record(
        organization=organization, actor=admin, action=AuditAction.ORGANIZATION_CREATED, target=organization
    )
    return organization


def reset_password(*, user: User) -> str:
    """Give the person a new generated password, and return it to be shown once."""
    password = secrets.token_urlsafe(PASSWORD_BYTES)
    user.set_password(password)
    user.save(update_fields=["password"])
    return password


def change_password(*, user: User, current: str, new: str) -> None:
    """Every other session of the person ends with the old password."""
    if not user.check_password(current):
        raise BadInput("That is not your current password. Nothing was changed.", field="current")
    try:
        validate_password(new, user)
    except ValidationError as error:
        raise BadInput(" ".join(error.messages), field="new") from error
    user.set_password(new)
    user.save(update_fields=["password"])


def end_all_sessions(*, user: User) -> None:
    """Sign the person out everywhere: what each session carries no longer fits."""
    user.session_salt = secrets.token_hex(16)
    user.save(update_fields=["session_salt"])


def rename_organization(*, organization: Organization, name: str, renamed_by: User) -> None:
    name = name.strip()
    if not name or len(name) > 100:
        raise BadInput("name: give the organization a name of at most 100 characters.", field="name")
    with transaction.atomic():
        before = organization.name
        organization.name = name
        organization.save(update_fields=["name"])
        record(
            organization=organization,
            actor=renamed_by,
            action=AuditAction.ORGANIZATION_RENAMED,
            target=organization,
            before=before,
            name=name,
        )


def save_filter(*, user: User, organization: Organization, page: str, name: str, query: str) -> SavedFilter:
    """Save a list's query under a name, or replace the query of that name."""
    name, query = name.strip()[:60], query[:500]
    if not name:
        raise BadInput("Enter a filter name.", field="name")
    filters = SavedFilter.objects.filter(user=user, organization=organization, page=page)
    if filters.exclude(name=name).count() >= MAX_SAVED_FILTERS:
        raise BadInput(f"You have {MAX_SAVED_FILTERS} saved filters here. Delete one first.", field="name")
    return filters.update_or_create(
        user=user, organization=organization, page=page, name=name, defaults={"query": query}
    )[0]


@transaction.atomic
def set_organization_drain(*, organization: Organization, draining: bool, requested_by: User) -> None:
    """Pause or resume new jobs of the organization. Running jobs finish."""
    since = timezone.now() if draining else None
    Organization.objects.filter(pk=organization.pk).update(draining_since=since)
    action = AuditAction.ORGANIZATION_DRAIN_STARTED if draining else AuditAction.ORGANIZATION_DRAIN_ENDED
    record(organization=organization, actor=requested_by, action=action, target=organization)
    publish_on_commit(
        topics.organization(organization.pk, "jobs"),
        *(topics.pool(pool_id) for pool_id in organization.pools.values_list("pk", flat=True)),
    )


def set_installation_drain(*, draining: bool) -> None:
    """Drain every organization of the installation, or stop draining."""
    Installation.objects.update_or_create(
        pk=1, defaults={"draining_since": timezone.now() if draining else None}
    )


@transaction.atomic
def create_api_token(
    *, user: User, organization: Organization, name: str, valid_for: timedelta | None = None
) -> tuple[ApiToken, str]:
    """Create a token for programs. Its text is returned once and never stored."""
    text = new_token("slu")
    token = ApiToken.objects.create(
        user=user,
        organization=organization,
        name=name,
        token_sha256=digest(text),
        expires_at=timezone.now() + valid_for if valid_for else None,
    )
    record(
        organization=organization, actor=user, action=AuditAction.API_TOKEN_CREATED, target=token, name=name
    )
    return token, text


@transaction.atomic
def revoke_api_token(*, token: ApiToken, revoked_by: User) -> None:
    """The first time counts: a repeat changes nothing and is not recorded again."""
    if ApiToken.objects.filter(pk=token.pk, revoked_at=None).update(revoked_at=timezone.now()):
        record(
            organization=token.organization,
            actor=revoked_by,
            action=AuditAction.API_TOKEN_REVOKED,
            target=token,
            name=token.name,
        )
