"""Create and edit Specs, and record the results of their jobs."""

import hashlib
from collections.abc import Mapping
from typing import Any

from django.db import IntegrityError, transaction
from django.utils.text import slugify

from console.accounts.models import Organization, User
from console.audit.actions import AuditAction
from console.audit.services import record
from console.errors import BadInput, Conflict, NotFound
from console.live import topics
from console.live.publish import publish_on_commit
from console.runners.models import Pool
from specs import hooks
from specs.catalogue import blueprint_of
from specs.configuration_cache import load_configuration
from specs.document import Blueprint, check_values, git_source, load_blueprint, new_document, source_and_files
from specs.git import normalize_token, resolve
from specs.models import Revision, Spec
from specs.outputs import record_deploy, record_destroy
from specs.selectors import current_revision
from specs.snapshot import snapshot_hash
from specs.spec_settings import SETTINGS, apply_settings
from specs.variables import (
    CATEGORIES,
    Bundle,
    bundle_of,
    empty_bundle,
    keep_secret,
    seal_declared_secrets,
    set_plain,
    set_secret,
    without_variable,
)

__all__ = [
    "SETTINGS",
    "change_settings",
    "change_source",
    "change_variable",
    "check_document",
    "create_spec",
    "create_spec_from_blueprint",
    "follow_git",
    "move_to_pool",
    "record_deploy",
    "record_destroy",
    "remove_variable",
    "restore_revision",
    "save_revision",
    "source_and_files_of",
]

#: Slugs that are addresses of other pages.
RESERVED_SLUGS = frozenset({"new"})


def check_document(document: dict[str, Any], *, may_lack_values: bool = False) -> None:
    """Refuse a configuration that does not parse, and variables that do not fit it."""
    check_values(document, declared=load_configuration(document), may_lack_values=may_lack_values)


def create_spec(
    *,
    organization: Organization,
    name: str,
    source: dict[str, Any],
    pool_id: Any,
    author: User,
    slug: str = "",
    bundle: Bundle | None = None,
    sensitive: Mapping[str, Mapping[str, Any]] | None = None,
    settings: dict[str, Any] | None = None,
) -> Spec:
    """Create a Spec with its first revision, or nothing at all.

    `sensitive` has the values to seal, by category and name; `bundle` has all others.
    """
    source_document, files = source_and_files_of(
        organization, source
    )  # may ask a Git host: before the transaction
    document = new_document(source_document, files=files, bundle=bundle or empty_bundle())
    spec = Spec(
        organization=organization,
        slug=slug or slug_of(name),
        source_kind=source_document["kind"],
        blueprint=source_document.get("name", ""),
        pool_id=pool_id,
    )
    if not spec.slug:
        raise BadInput("The name needs at least one letter or digit.", field="name")
    if spec.slug in RESERVED_SLUGS:
        raise BadInput(
            f"{spec.slug!r} is reserved and cannot be a Spec's slug. Choose another name.", field="name"
        )
    apply_settings(spec, {**(settings or {}), "name": name})
    _require_identity_allows(spec)
    with transaction.atomic():
        document = _validate_and_seal(organization, document, sensitive=sensitive or {})
        return _insert(spec, document=document, author=author)


def slug_of(name: str) -> str:
    """Return the name's slug. A name without Latin letters gets a short digest instead."""
    if slug := slugify(name)[:60].strip("-"):
        return slug
    letters = any(char.isalnum() for char in name)
    return f"spec-{hashlib.sha256(name.encode()).hexdigest()[:8]}" if letters else ""


def _insert(spec: Spec, *, document: dict[str, Any], author: User) -> Spec:
    try:
        with transaction.atomic():
            spec.save(force_insert=True)
    except IntegrityError as error:
        raise Conflict(
            f"{spec.organization.name} already has a Spec {spec.slug!r}. Choose another name.", field="name"
        ) from error
    source = document["source"]
    _add_revision(spec, document=document, author=author, message=_first_message(source))
    record(
        organization=spec.organization,
        actor=author,
        action=AuditAction.SPEC_CREATED,
        target=spec,
        source=source["kind"],
    )
    _announce(spec)
    return spec


def create_spec_from_blueprint(
    *,
    organization: Organization,
    name: str,
    slug: str,
    blueprint: str,
    pool_id: Any,
    author: User,
    variables: dict[str, Any] | None = None,
) -> Spec:
    """Create a Spec from a catalogue entry, with the entry's defaults for variables without a value."""
    entry = load_blueprint(blueprint)
    defaults = {
        key: variable.get("default") for key, variable in entry.variables.items() if "default" in variable
    }
    return create_spec(
        organization=organization,
        name=name,
        slug=slug,
        source={"kind": "blueprint", "name": blueprint},
        pool_id=pool_id,
        author=author,
        bundle={**empty_bundle(), "variables": {**defaults, **(variables or {})}},
        settings={"description": entry.description},
    )


def change_source(
    *, spec: Spec, source: dict[str, Any], author: User, message: str, based_on: int | None = None
) -> Revision:
    """Create a revision with other files and the same variables. `based_on` is the edited revision."""
    before = current_revision(spec).document["source"]
    # May ask a Git host: before the lock.
    source_document, files = source_and_files_of(spec.organization, source, before=before)
    with transaction.atomic():
        current = _lock(spec)
        _require_based_on(current, based_on)
        document = new_document(source_document, files=files, bundle=bundle_of(current.document))
        document = _validate_and_seal(spec.organization, document)
        _update_source_fields(spec, source_document)
        return save_revision(
            spec=spec, document=document, author=author, message=message or "Changed the source"
        )


def source_and_files_of(
    organization: Organization, requested_source: dict[str, Any], *, before: dict[str, Any] | None = None
) -> tuple[dict[str, Any], dict[str, str]]:
    """Return the stored form of a requested source, and its files.

    `before` is the source that it replaces: its token stays if none is given, for the same URL only.
    """
    if requested_source.get("kind") == "git":
        return _git_source_and_files(organization, requested_source, before or {})
    entry: Blueprint | None = None
    if requested_source.get("kind") == "blueprint":
        entry = blueprint_of(organization, str(requested_source.get("name", "")))
    return source_and_files(requested_source, blueprint=entry)


def _git_source_and_files(
    organization: Organization, requested_source: dict[str, Any], before: dict[str, Any]
) -> tuple[dict[str, Any], dict[str, str]]:
    # A digest from outside is ignored: it could name any secret, and the request chooses the host.
    source = {key: value for key, value in requested_source.items() if key != "credential"}
    token = normalize_token(source.get("token"))
    credential = ""
    if "token" not in source and before.get("url") == git_source(source).url:
        credential = str(before.get("credential") or "")
    source_document, files = source_and_files({**source, "token": token, "credential": credential})
    if token:
        credential = keep_secret(token, organization_id=organization.pk)
    return {**source_document, **({"credential": credential} if credential else {})}, files


@transaction.atomic
def change_variable(
    *, spec: Spec, category: str, name: str, value: Any, sensitive: bool, author: User
) -> Revision:
    """Create a revision with one variable set. A sensitive value can be replaced later, but not read."""
    document = _lock(spec).document
    if sensitive:
        revised_document = _validate_and_seal(
            spec.organization, document, sensitive={category: {name: value}}
        )
    else:
        bundle = set_plain(bundle_of(document), category=category, name=name, value=value)
        revised_document = _validate_and_seal(spec.organization, {**document, **bundle})
    return save_revision(spec=spec, document=revised_document, author=author, message=f"Set {name}")


@transaction.atomic
def remove_variable(*, spec: Spec, category: str, name: str, author: User) -> Revision:
    document = _lock(spec).document
    bundle = bundle_of(document)
    if category not in CATEGORIES or name not in {*bundle[category], *bundle["secrets"][category]}:
        raise NotFound(f"{spec.name} has no value of its own for {name!r}.")
    revised_document = {**document, **without_variable(bundle, category=category, name=name)}
    return save_revision(spec=spec, document=revised_document, author=author, message=f"Removed {name}")


@transaction.atomic
def restore_revision(*, spec: Spec, number: int, author: User) -> Revision:
    """Create a revision with the content of an older one. Nothing in between is lost."""
    _lock(spec)
    older = spec.revisions.filter(number=number).first()
    if older is None:
        raise NotFound(f"{spec.name} has no revision {number}.")
    _update_source_fields(spec, older.document["source"])
    return save_revision(
        spec=spec, document=older.document, author=author, message=f"Restored revision {number}"
    )


@transaction.atomic
def save_revision(*, spec: Spec, document: dict[str, Any], author: User, message: str) -> Revision:
    """Save a document as the next revision. An unchanged document returns the current revision."""
    current = _lock(spec)
    if snapshot_hash(current.document) == snapshot_hash(document):
        return current
    revision = _add_revision(
        spec, document=document, author=author, message=message, number=current.number + 1
    )
    record(
        organization=spec.organization,
        actor=author,
        action=AuditAction.SPEC_REVISED,
        target=spec,
        revision=revision.number,
    )
    _announce(spec)
    return revision


def follow_git(*, spec: Spec, author: User) -> Revision:
    """Return the newest revision; create one first if the Spec's ref points to another commit by now."""
    newest = current_revision(spec)
    source = newest.document["source"]
    if source["kind"] != "git":
        return newest
    commit = resolve(git_source(source))
    if commit == source["commit"]:
        return newest
    new_source = {**source, "commit": commit}
    load_configuration({**newest.document, "source": new_source})  # asks the Git host: before the lock
    return _move_to_commit(spec, before=source, new_source=new_source, author=author)


@transaction.atomic
def _move_to_commit(
    spec: Spec, *, before: dict[str, Any], new_source: dict[str, Any], author: User
) -> Revision:
    """Create the revision on top of anything saved in the meantime; a source changed meanwhile wins."""
    current = _lock(spec)
    if current.document["source"] != before:
        return current
    document = _validate_and_seal(spec.organization, {**current.document, "source": new_source})
    message = f"{new_source['ref']} is now {new_source['commit'][:12]}"
    return save_revision(spec=spec, document=document, author=author, message=message)


@transaction.atomic
def change_settings(
    *, spec: Spec, settings: dict[str, Any], changed_by: User, pool: Pool | None = None
) -> Spec:
    """Change settings and the pool together: an identity may allow only the combination."""
    changed_fields = apply_settings(spec, settings)
    if pool is not None and _move(spec, pool):
        changed_fields.append("pool")
    if changed_fields:
        _require_identity_allows(spec)
        spec.save(update_fields=changed_fields)
        _record_change(spec, changed_by, changed_fields)
    return spec


@transaction.atomic
def move_to_pool(*, spec: Spec, pool: Pool, moved_by: User) -> Spec:
    """Move the Spec to another pool. Jobs that are already queued stay in the old one."""
    if _move(spec, pool):
        _require_identity_allows(spec)
        spec.save(update_fields=["pool"])
        _record_change(spec, moved_by, ["pool"])
    return spec


def _move(spec: Spec, pool: Pool) -> bool:
    """Set the pool, and return true if it changed."""
    if pool.organization_id != spec.organization_id:
        raise NotFound(f"There is no pool {pool.name!r}.")
    moved = spec.pool_id != pool.pk
    spec.pool = pool
    return moved


def _require_identity_allows(spec: Spec) -> None:
    if spec.identity is not None:
        hooks.identities.require_usable(spec)


def _lock(spec: Spec) -> Revision:
    """Lock the Spec and return its newest revision, so that concurrent editors take turns."""
    Spec.objects.select_for_update().get(pk=spec.pk)
    return current_revision(spec)


def _require_based_on(current: Revision, based_on: int | None) -> None:
    if based_on is not None and based_on != current.number:
        raise Conflict(
            f"Revision {current.number} was saved by {current.author or 'Slipway'} in the meantime; yours "
            f"is based on {based_on}.  Review it, then make your change again.",
            revision=current.number,
        )


def _validate_and_seal(
    organization: Organization,
    document: dict[str, Any],
    *,
    sensitive: Mapping[str, Mapping[str, Any]] | None = None,
) -> dict[str, Any]:
    """Validate the document, and seal the given secrets and all variables declared as sensitive.

    A sealed value cannot be checked later, so all are checked while they are still plain.
    """
    secrets = [
        (category, name, value)
        for category, values in (sensitive or {}).items()
        for name, value in values.items()
    ]
    bundle = bundle_of(document)
    for category, name, value in secrets:
        bundle = set_plain(bundle, category=category, name=name, value=value)
    declared = load_configuration(document)
    check_values({**document, **bundle}, declared=declared, may_lack_values=True)
    for category, name, value in secrets:
        bundle = set_secret(
            bundle, category=category, name=name, value=value, organization_id=organization.pk
        )
    bundle = seal_declared_secrets(bundle, declared=declared, organization_id=organization.pk)
    return {**document, **bundle}


def _update_source_fields(spec: Spec, source: dict[str, Any]) -> None:
    spec.source_kind, spec.blueprint = source["kind"], source.get("name", "")
    spec.save(update_fields=["source_kind", "blueprint"])


def _add_revision(
    spec: Spec, *, document: dict[str, Any], author: User, message: str, number: int = 1
) -> Revision:
    return Revision.objects.create(
        spec=spec, number=number, author=author, message=message[:200], document=document
    )


def _first_message(source: dict[str, Any]) -> str:
    match source["kind"]:
        case "blueprint":
            return f"Created from blueprint {source['name']}"
        case "git":
            return f"Created from {source['url']} at {source['commit'][:12]}"
    return "Created from files"


def _record_change(spec: Spec, changed_by: User, fields: list[str]) -> None:
    record(
        organization=spec.organization,
        actor=changed_by,
        action=AuditAction.SPEC_CHANGED,
        target=spec,
        fields=fields,
    )
    _announce(spec)


def _announce(spec: Spec) -> None:
    publish_on_commit(topics.organization(spec.organization_id, "specs"))
