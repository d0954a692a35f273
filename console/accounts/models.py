"""People, the organizations they belong to, and the tokens they use the API with."""

from django.contrib.auth.models import AbstractUser
from django.db import models
from django.db.models import Q
from django.utils.crypto import salted_hmac

from console.accounts.rights import ROLES, Right, rights_of, role_choices
from console.ids import new_id


class User(AbstractUser):
    """A person who signs in."""

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    # Changed to end every session of this person at once, as a new password does.
    session_salt = models.CharField(max_length=32, default="", blank=True)

    #: The memberships that this sign-in may use: a session all of them, a token the one of its organization.
    #: Set by `accounts.authentication` alone. A user without it was not signed in, and no door opens.
    usable_memberships: Q | None = None

    def _get_session_auth_hash(self, secret: str | None = None) -> str:
        """Return the hash that each session carries; Django compares it at every request."""
        return salted_hmac(
            "console.accounts.session", self.password + self.session_salt, secret=secret, algorithm="sha256"
        ).hexdigest()


class Organization(models.Model):
    """The tenant: people, specs, runners and everything they do."""

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    name = models.CharField(max_length=100)
    slug = models.SlugField(max_length=60, unique=True)
    created_at = models.DateTimeField(auto_now_add=True)
    # Counted up in the transaction that queues a job: no gaps, and no other tenant's volume shows.
    last_job_number = models.PositiveBigIntegerField(default=0)
    draining_since = models.DateTimeField(null=True, blank=True)
    # The first-run guide: somebody has no cloud to connect, and somebody has seen enough of it.
    cloud_skipped_at = models.DateTimeField(null=True, blank=True)
    guide_closed_at = models.DateTimeField(null=True, blank=True)
    members = models.ManyToManyField(User, through="Membership", related_name="organizations")

    def __str__(self) -> str:
        return self.name


class Membership(models.Model):
    """One person's role in one organization."""

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    user = models.ForeignKey(User, on_delete=models.CASCADE, related_name="memberships")
    organization = models.ForeignKey(Organization, on_delete=models.CASCADE, related_name="memberships")
    role = models.CharField(max_length=20, choices=role_choices)
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["user", "organization"], name="membership_once_per_organization"),
            models.CheckConstraint(condition=Q(role__in=list(ROLES)), name="membership_role_known"),
        ]

    def may(self, right: Right) -> bool:
        """Answer for doors and pages alike."""
        return right in rights_of(self.role)


class Installation(models.Model):
    """The one row of settings that hold for every organization here."""

    id = models.SmallIntegerField(primary_key=True, default=1, editable=False)
    draining_since = models.DateTimeField(null=True, blank=True)

    class Meta:
        constraints = [models.CheckConstraint(condition=Q(id=1), name="installation_is_one_row")]


class ApiToken(models.Model):
    """A person's key for programs: shown once, kept as a hash, one organization each."""

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    user = models.ForeignKey(User, on_delete=models.CASCADE, related_name="api_tokens")
    organization = models.ForeignKey(Organization, on_delete=models.CASCADE, related_name="api_tokens")
    name = models.CharField(max_length=100)
    token_sha256 = models.CharField(max_length=64, unique=True)
    created_at = models.DateTimeField(auto_now_add=True)
    expires_at = models.DateTimeField(null=True, blank=True)
    last_used_at = models.DateTimeField(null=True, blank=True)
    revoked_at = models.DateTimeField(null=True, blank=True)


class Invitation(models.Model):
    """A link by which one person joins one organization: shown once, kept as a hash, good for a while."""

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    organization = models.ForeignKey(Organization, on_delete=models.CASCADE, related_name="invitations")
    role = models.CharField(max_length=20, choices=role_choices)
    # For whom it is meant, in the words of whoever made it.
    note = models.CharField(max_length=100, blank=True)
    token_sha256 = models.CharField(max_length=64, unique=True)
    invited_by = models.ForeignKey(User, null=True, on_delete=models.SET_NULL, related_name="+")
    created_at = models.DateTimeField(auto_now_add=True)
    expires_at = models.DateTimeField()
    used_at = models.DateTimeField(null=True, blank=True)
    used_by = models.ForeignKey(User, null=True, on_delete=models.SET_NULL, related_name="+")
    revoked_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        constraints = [
            models.CheckConstraint(condition=Q(role__in=list(ROLES)), name="invitation_role_known"),
        ]


class SavedFilter(models.Model):
    """The query of a list that a person comes back to."""

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    user = models.ForeignKey(User, on_delete=models.CASCADE, related_name="saved_filters")
    organization = models.ForeignKey(Organization, on_delete=models.CASCADE, related_name="+")
    page = models.CharField(max_length=20)
    name = models.CharField(max_length=60)
    query = models.CharField(max_length=500)

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["user", "organization", "page", "name"], name="saved_filter_name_once"
            )
        ]
