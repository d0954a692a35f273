"""Changes of cloud identities by admins, and the results that jobs keep on them."""

import secrets
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

from django.db import IntegrityError, transaction
from django.db.models import Model, ProtectedError
from django.db.models.functions import Now
from django.utils.text import slugify

from console.accounts.models import Organization, User
from console.audit.actions import AuditAction
from console.audit.services import record
from console.errors import BadInput, ConfirmationMismatch, Conflict, IdentityInUse
from console.identities.clouds import cloud_of
from console.identities.models import ANY, CloudIdentity
from console.identities.snapshot import outcome_digest
from console.jobs.models import Job
from console.live import topics
from console.live.publish import publish_on_commit
from console.runners.models import Pool
from specs.models import Spec

#: Slugs of other pages below /identities/.
RESERVED_SLUGS = frozenset({"connect", "options"})
MAX_ALLOWED = 500


@dataclass(frozen=True, slots=True, kw_only=True)
class Allowed:
    """The Specs (slugs), environments and pools that may use an identity; or `*`."""

    specs: list[str] = field(default_factory=lambda: [ANY])
    environments: list[str] = field(default_factory=lambda: [ANY])
    pools: list[str] = field(default_factory=lambda: [ANY])


@transaction.atomic
def create_identity(
    *,
    organization: Organization,
    name: str,
    provider: str,
    settings: dict[str, Any],
    created_by: User | None,
    slug: str = "",
    allowed: Allowed | None = None,
) -> CloudIdentity:
    """Create an identity, or refuse it by field. Its external id is made here and never chosen by anybody."""
    cloud = cloud_of(provider)
    identity = CloudIdentity(
        organization=organization,
        name=_checked_name(name),
        slug=slug or slugify(name)[:60],
        provider=provider,
        settings=cloud.check_settings(settings),
        external_id=new_external_id() if cloud.has_external_id else None,
        created_by=created_by,
        **_allowed_columns(organization, allowed or Allowed()),
    )
    _require_usable_slug(identity.slug)
    try:
        with transaction.atomic():
            identity.save(force_insert=True)
    except IntegrityError as error:
        raise Conflict(
            f"{organization.name} already has an identity {identity.slug!r}. Choose another name.",
            field="name",
        ) from error
    _record(identity, created_by, AuditAction.IDENTITY_CREATED, provider=provider, account=identity.account)
    return identity


@transaction.atomic
def change_identity(
    *,
    identity: CloudIdentity,
    changed_by: User,
    name: str | None = None,
    settings: dict[str, Any] | None = None,
    allowed: Allowed | None = None,
) -> CloudIdentity:
    """Change what is given, all of it or nothing. A test of the settings before is dropped."""
    identities = CloudIdentity.objects.select_for_update(of=("self",)).select_related("organization")
    current = identities.get(pk=identity.pk)
    before, account, digest = _audited_values(current), current.account, outcome_digest(current)
    if name is not None:
        current.name = _checked_name(name)
    if settings is not None:
        current.settings = _changed_settings(current, settings)
    if allowed is not None:
        for column, value in _allowed_columns(current.organization, allowed).items():
            setattr(current, column, value)
    changes = {key: value for key, value in _audited_values(current).items() if before[key] != value}
    if not changes:
        return current
    if outcome_digest(current) != digest:
        current.tested_at, current.test_passed, current.last_test = None, None, {}
    if current.account != account:
        current.lists.all().delete()  # they are another account's
        current.fetched_at, current.last_fetch = None, {}
    current.save()
    _record(
        current,
        changed_by,
        AuditAction.IDENTITY_CHANGED,
        changed=changes,
        before={key: before[key] for key in changes},
    )
    return current


def delete_identity(*, identity: CloudIdentity, deleted_by: User, confirmation: str | None = None) -> None:
    """Delete an identity that no Spec uses. Its role or application in the cloud stays.

    A page asks for the name; for a program, the id is enough.
    """
    if confirmation is not None and confirmation != identity.name:
        raise ConfirmationMismatch(f"Name doesn't match {identity.name!r}. Nothing was changed.")
    users = list(Spec.objects.filter(identity=identity).order_by("name").values_list("name", flat=True)[:5])
    if users:
        raise IdentityInUse(
            f"{identity.name} is used by {', '.join(users)}. Choose another identity for them first."
        )
    try:
        with transaction.atomic():
            _record(
                identity,
                deleted_by,
                AuditAction.IDENTITY_DELETED,
                name=identity.name,
                provider=identity.provider,
            )
            _detach_jobs(identity)
            identity.delete()
    except ProtectedError as error:
        raise IdentityInUse(f"{identity.name} has just been used. Try again.") from error


def new_external_id() -> str:
    """Return 128 random bits, in letters that clouds take."""
    return f"slipway-{secrets.token_hex(16)}"


def announce(identity: CloudIdentity) -> None:
    publish_on_commit(topics.organization(identity.organization_id, "identities"))


def record_test(
    *, identity_id: UUID, passed: bool, result: dict[str, Any], job: Model, job_number: int
) -> None:
    """Keep the checks of a CONNECTION_TEST as the runner reported them: masked already."""
    checks = [_line(check) for check in _list(result.get("checks")) if isinstance(check, dict)]
    principal = result.get("principal")
    session_seconds = result.get("session_seconds")
    test = {
        "job": str(job.pk),
        "job_number": job_number,
        "checks": checks,
        "principal": _texts(principal) if isinstance(principal, dict) else {},
        "session_seconds": session_seconds if isinstance(session_seconds, int) else None,
        "error": str(result.get("error") or ""),
    }
    CloudIdentity.objects.filter(pk=identity_id).update(tested_at=Now(), test_passed=passed, last_test=test)


def record_fetch(*, identity_id: UUID, complete: bool, error: str, job: Model, job_number: int) -> None:
    """Keep how a FETCH_RESOURCES ended; its resources came before, part by part."""
    scan = {"job": str(job.pk), "job_number": job_number, "complete": complete, "error": error[:2_000]}
    CloudIdentity.objects.filter(pk=identity_id).update(fetched_at=Now(), last_fetch=scan)


def _line(check: dict[str, Any]) -> dict[str, str]:
    line = {
        key: str(check.get(key) or "")[:2_000] for key in ("code", "title", "outcome", "detail", "remedy")
    }
    return line | {"outcome": line["outcome"] if line["outcome"] in ("pass", "fail") else "unknown"}


def _texts(values: dict[str, Any]) -> dict[str, str]:
    return {str(name)[:60]: str(value)[:500] for name, value in list(values.items())[:20]}


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def _checked_name(name: Any) -> str:
    if not isinstance(name, str) or not 0 < len(name.strip()) <= 100 or not name.isprintable():
        raise BadInput("name: enter 1 to 100 printable characters.", field="name")
    return name.strip()


def _require_usable_slug(slug: str) -> None:
    if not slug or slug in RESERVED_SLUGS:
        raise BadInput(f"name: {slug!r} cannot be used in a URL. Use letters or digits.", field="name")


def _changed_settings(identity: CloudIdentity, changes: Any) -> dict[str, Any]:
    if not isinstance(changes, dict):
        raise BadInput("settings: expected an object", field="settings")
    return identity.cloud.check_settings(identity.cloud.merge_settings(identity.settings, changes))


def _allowed_columns(organization: Organization, allowed: Allowed) -> dict[str, list[str]]:
    return {
        "allowed_specs": _ids(Spec, organization, "slug", allowed.specs, field="specs"),
        "allowed_environments": _names(allowed.environments, field="environments"),
        "allowed_pools": _ids(Pool, organization, "name", allowed.pools, field="pools"),
    }


def _ids(
    model: type[Spec] | type[Pool], organization: Organization, key: str, names: Any, *, field: str
) -> list[str]:
    checked = _names(names, field=field)
    if checked == [ANY]:
        return checked
    ids = dict(
        model._default_manager.filter(organization=organization, **{f"{key}__in": checked}).values_list(
            key, "pk"
        )
    )
    if missing := [name for name in checked if name not in ids]:
        what = "Spec" if model is Spec else "pool"
        raise BadInput(
            f"{field}: {organization.name} has no {what} {missing[0][:60]!r}. Choose one that it has, or *.",
            field=f"allowed.{field}",
        )
    return sorted(str(ids[name]) for name in checked)


def _names(names: Any, *, field: str) -> list[str]:
    if not isinstance(names, list) or len(names) > MAX_ALLOWED:
        raise BadInput(
            f'{field}: expected a list of at most {MAX_ALLOWED} names, or ["*"]', field=f"allowed.{field}"
        )
    for name in names:
        if not isinstance(name, str) or not (name == ANY or (name and slugify(name) == name.lower())):
            raise BadInput(f"{field}: {str(name)[:60]!r} is not a name.", field=f"allowed.{field}")
    return [ANY] if ANY in names else sorted(set(names))


def _audited_values(identity: CloudIdentity) -> dict[str, Any]:
    """Return the values that the audit records when an identity changes. None of them is secret."""
    return {
        "name": identity.name,
        "settings": identity.settings,
        "allowed_specs": identity.allowed_specs,
        "allowed_environments": identity.allowed_environments,
        "allowed_pools": identity.allowed_pools,
    }


def _detach_jobs(identity: CloudIdentity) -> None:
    """Detach its tests and scans, which stay in the history of jobs."""
    jobs = Job.objects.filter(identity=identity)
    if jobs.filter(finished_at__isnull=True).exists():
        raise IdentityInUse(f"A job of {identity.name} is running. Wait for it, or cancel it, then delete.")
    jobs.update(identity=None)


def _record(identity: CloudIdentity, actor: User | None, action: AuditAction, **data: Any) -> None:
    record(organization=identity.organization, actor=actor, action=action, target=identity, **data)
    announce(identity)
