"""Members of an organization: inviting, joining, changing a role, leaving."""

from datetime import datetime, timedelta

from django.contrib.auth.password_validation import validate_password
from django.core.exceptions import ValidationError
from django.db import IntegrityError, transaction
from django.db.models import Q, QuerySet
from django.utils import timezone

from console.accounts.models import ApiToken, Invitation, Membership, Organization, User
from console.accounts.rights import ROLES, Right, rights_of, roles_with
from console.accounts.tokens import digest, new_token
from console.audit.actions import AuditAction
from console.audit.services import record
from console.errors import BadInput, Conflict, NotFound

INVITATION_LIFETIME = timedelta(days=7)


def members_of(organization: Organization) -> list[Membership]:
    memberships = organization.memberships.select_related("user")
    return list(memberships.order_by("user__username"))


def open_invitations(organization: Organization) -> list[Invitation]:
    return list(_only_open(organization.invitations.select_related("invited_by")).order_by("-created_at"))


def invitation_by(text: str) -> Invitation:
    """Return the invitation of a link. A used, expired or withdrawn one is not found."""
    invitations = _only_open(Invitation.objects.select_related("organization", "invited_by"))
    invitation = invitations.filter(token_sha256=digest(text)).first()
    if invitation is None:
        raise NotFound("This invitation was used, withdrawn or has expired. Ask for a new one.")
    return invitation


@transaction.atomic
def invite(*, organization: Organization, role: str, note: str, invited_by: User) -> tuple[Invitation, str]:
    """Create a link for one person. Its text is returned once and never stored."""
    text = new_token("sli")
    invitation = Invitation.objects.create(
        organization=organization,
        role=require_known_role(role),
        note=note.strip()[:100],
        token_sha256=digest(text),
        invited_by=invited_by,
        expires_at=timezone.now() + INVITATION_LIFETIME,
    )
    record(
        organization=organization,
        actor=invited_by,
        action=AuditAction.INVITATION_CREATED,
        target=invitation,
        role=role,
        note=invitation.note,
    )
    return invitation, text


@transaction.atomic
def withdraw_invitation(*, invitation: Invitation, withdrawn_by: User) -> None:
    if _only_open(Invitation.objects.filter(pk=invitation.pk)).update(revoked_at=timezone.now()):
        record(
            organization=invitation.organization,
            actor=withdrawn_by,
            action=AuditAction.INVITATION_WITHDRAWN,
            target=invitation,
        )


@transaction.atomic
def accept_invitation(*, invitation: Invitation, user: User) -> Membership:
    """Join by an invitation. Compare-and-set: a link is used once, also when two people open it at once."""
    if Membership.objects.filter(user=user, organization=invitation.organization).exists():
        raise Conflict(
            f"{user.get_username()} belongs to {invitation.organization.name} already. "
            "The invitation can still be used by another person."
        )
    used = _only_open(Invitation.objects.filter(pk=invitation.pk)).update(
        used_at=timezone.now(), used_by=user
    )
    if not used:
        raise NotFound("This invitation was used, withdrawn or has expired. Ask for a new one.")
    membership = Membership.objects.create(
        user=user, organization=invitation.organization, role=invitation.role
    )
    record(
        organization=invitation.organization,
        actor=user,
        action=AuditAction.MEMBER_JOINED,
        target=user,
        name=user.get_username(),
        role=invitation.role,
    )
    return membership


@transaction.atomic
def join_as_new_person(*, invitation: Invitation, username: str, password: str) -> User:
    """An account for somebody who has none yet, and the membership they were invited to."""
    user = User(username=username.strip())
    try:
        user.full_clean(exclude=["password"])
        validate_password(password, user)
    except ValidationError as error:
        raise BadInput(" ".join(error.messages), field="username") from error
    user.set_password(password)
    try:
        with transaction.atomic():
            user.save(force_insert=True)
    except IntegrityError as error:
        raise BadInput("This name is taken. Choose another.", field="username") from error
    accept_invitation(invitation=invitation, user=user)
    return user


@transaction.atomic
def change_role(*, membership: Membership, role: str, changed_by: User) -> None:
    role = require_known_role(role)
    _lock(membership.organization)
    current = _reload(membership)
    if current.role == role:
        return
    if Right.MANAGE_PEOPLE not in rights_of(role):
        _require_another_admin(current)
    before, current.role = current.role, role
    current.save(update_fields=["role"])
    record(
        organization=membership.organization,
        actor=changed_by,
        action=AuditAction.MEMBER_ROLE_CHANGED,
        target=current.user,
        name=current.user.get_username(),
        before=before,
        role=role,
    )


@transaction.atomic
def remove_member(*, membership: Membership, removed_by: User) -> None:
    """Remove a member, and revoke their API tokens for the organization."""
    _lock(membership.organization)
    current = _reload(membership)
    _require_another_admin(current)
    tokens = ApiToken.objects.filter(
        user=current.user, organization=membership.organization, revoked_at=None
    ).update(revoked_at=timezone.now())
    record(
        organization=membership.organization,
        actor=removed_by,
        action=AuditAction.MEMBER_REMOVED,
        target=current.user,
        name=current.user.get_username(),
        role=current.role,
        tokens_revoked=tokens,
    )
    current.delete()


def require_known_role(role: str) -> str:
    if role not in ROLES:
        raise BadInput(f"role: expected {', '.join(ROLES)}", field="role")
    return role


def _only_open(invitations: "QuerySet[Invitation]") -> "QuerySet[Invitation]":
    now: datetime = timezone.now()
    return invitations.filter(Q(expires_at__gt=now), used_at=None, revoked_at=None)


def _lock(organization: Organization) -> None:
    """Serialize changes of roles: the second of two admins sees what the first has changed."""
    Organization.objects.select_for_update(no_key=True).get(pk=organization.pk)


def _reload(membership: Membership) -> Membership:
    current = Membership.objects.select_related("user").filter(pk=membership.pk).first()
    if current is None:
        raise NotFound("This person is no longer a member.")
    return current


def _require_another_admin(membership: Membership) -> None:
    if not membership.may(Right.MANAGE_PEOPLE):
        return
    admins = Membership.objects.filter(
        organization_id=membership.organization_id,
        role__in=roles_with(Right.MANAGE_PEOPLE),
        user__is_active=True,
    ).exclude(pk=membership.pk)
    if not admins.exists():
        raise Conflict(
            f"{membership.user.get_username()} is the only admin of {membership.organization.name}. "
            "Make another member an admin first."
        )
