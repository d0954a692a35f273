"""What happens to specs: they are made and edited, and jobs leave their results on them."""

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
from specs.declared import declared_by
from specs.document import Blueprint, check_values, git_source, load_blueprint, new_document, source_and_files
from specs.git import checked_token, resolve
from specs.models import Revision, Spec
from specs.outputs import record_deploy, record_destroy
from specs.selectors import current_revision
from specs.snapshot import snapshot_hash
from specs.spec_settings import SETTINGS, apply_settings
from specs.variables import (
    CATEGORIES,
    Bundle,
    bundle_of,
    empty,
    keep_secret,
    sealed_as_declared,
    set_plain,
    set_secret,
    without,
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

#: Names that pages of their own have in the place of a spec's.
TAKEN_SLUGS = frozenset({"new"})


def check_document(document: dict[str, Any], *, may_lack_values: bool = False) -> None:
    """Refuse a configuration that does not parse, and variables that do not fit it."""
    check_values(document, declared=declared_by(document), may_lack_values=may_lack_values)


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
    """Make a spec with its first revision, or refuse it whole.

    `sensitive` are values that are to be sealed, by category and name; `bundle` has all others.
    """
    stored, files = source_and_files_of(organization, source)  # may ask a Git host: before the transaction
    document = new_document(stored, files=files, bundle=bundle or empty())
    spec = Spec(
        organization=organization,
        slug=slug or slug_of(name),
        source_kind=stored["kind"],
        blueprint=stored.get("name", ""),
        pool_id=pool_id,
    )
    if not spec.slug:
        raise BadInput("The name needs at least one letter or digit.", field="name")
    if spec.slug in TAKEN_SLUGS:
        raise BadInput(f"A Spec cannot be called {spec.slug!r}. Choose another name.", field="name")
    apply_settings(spec, {**(settings or {}), "name": name})
    _require_identity_allows(spec)
    with transaction.atomic():
        document = _checked(organization, document, sensitive=sensitive or {})
        return _insert(spec, document=document, author=author)


def slug_of(name: str) -> str:
    """The name in an address. One in other letters than Latin ones gets a short digest of itself."""
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
    """Make a spec from a catalogue entry, with the entry's own defaults where nothing is said."""
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
        bundle={**empty(), "variables": {**defaults, **(variables or {})}},
        settings={"description": entry.description},
    )


def change_source(
    *, spec: Spec, source: dict[str, Any], author: User, message: str, based_on: int | None = None
) -> Revision:
    """A new revision with other files; the variables stay. `based_on` is the revision that was edited."""
    before = current_revision(spec).document["source"]
    # May ask a Git host: before the lock.
    stored, files = source_and_files_of(spec.organization, source, before=before)
    with transaction.atomic():
        current = _lock(spec)
        _require_based_on(current, based_on)
        document = new_document(stored, files=files, bundle=bundle_of(current.document))
        document = _checked(spec.organization, document)
        _note_source(spec, stored)
        return save_revision(
            spec=spec, document=document, author=author, message=message or "Changed the source"
        )


def source_and_files_of(
    organization: Organization, wanted: dict[str, Any], *, before: dict[str, Any] | None = None
) -> tuple[dict[str, Any], dict[str, str]]:
    """What a source is stored as, and its files; a blueprint may be of the organization's own.

    `before` is the source that it follows: a token that is not given again stays, for the same address only.
    """
    if wanted.get("kind") == "git":
        return _git_source_and_files(organization, wanted, before or {})
    entry: Blueprint | None = None
    if wanted.get("kind") == "blueprint":
        entry = blueprint_of(organization, str(wanted.get("name", "")))
    return source_and_files(wanted, blueprint=entry)


def _git_source_and_files(
    organization: Organization, wanted: dict[str, Any], before: dict[str, Any]
) -> tuple[dict[str, Any], dict[str, str]]:
    # Nobody names a digest from outside: it could be of any secret, and the host is of their choosing.
    given = {key: value for key, value in wanted.items() if key != "credential"}
    token = checked_token(given.get("token"))
    credential = ""
    if "token" not in given and before.get("url") == git_source(given).url:
        credential = str(before.get("credential") or "")
    stored, files = source_and_files({**given, "token": token, "credential": credential})
    if token:
        credential = keep_secret(token, organization_id=organization.pk)
    return {**stored, **({"credential": credential} if credential else {})}, files


@transaction.atomic
def change_variable(
    *, spec: Spec, category: str, name: str, value: Any, sensitive: bool, author: User
) -> Revision:
    """A new revision with one variable set. A sensitive value can be replaced from then on, not read."""
    document = _lock(spec).document
    if sensitive:
        changed = _checked(spec.organization, document, sensitive={category: {name: value}})
    else:
        bundle = set_plain(bundle_of(document), category=category, name=name, value=value)
        changed = _checked(spec.organization, {**document, **bundle})
    return save_revision(spec=spec, document=changed, author=author, message=f"Set {name}")


@transaction.atomic
def remove_variable(*, spec: Spec, category: str, name: str, author: User) -> Revision:
    document = _lock(spec).document
    bundle = bundle_of(document)
    if category not in CATEGORIES or name not in {*bundle[category], *bundle["secrets"][category]}:
        raise NotFound(f"{spec.name} gives no value to {name!r} itself.")
    changed = {**document, **without(bundle, category=category, name=name)}
    return save_revision(spec=spec, document=changed, author=author, message=f"Removed {name}")


@transaction.atomic
def restore_revision(*, spec: Spec, number: int, author: User) -> Revision:
    """A new revision that is as an older one was; nothing in between is lost."""
    _lock(spec)
    older = spec.revisions.filter(number=number).first()
    if older is None:
        raise NotFound(f"{spec.name} has no revision {number}.")
    _note_source(spec, older.document["source"])
    return save_revision(
        spec=spec, document=older.document, author=author, message=f"Restored revision {number}"
    )


@transaction.atomic
def save_revision(*, spec: Spec, document: dict[str, Any], author: User, message: str) -> Revision:
    """Number and keep a document. Saving what is there already keeps the revision that is there."""
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
    """The newest revision: one of the commit that the spec's ref is at now, if it has moved."""
    newest = current_revision(spec)
    source = newest.document["source"]
    if source["kind"] != "git":
        return newest
    commit = resolve(git_source(source))
    if commit == source["commit"]:
        return newest
    moved = {**source, "commit": commit}
    declared_by({**newest.document, "source": moved})  # asks the Git host: before the lock
    return _move_to_commit(spec, before=source, moved=moved, author=author)


@transaction.atomic
def _move_to_commit(spec: Spec, *, before: dict[str, Any], moved: dict[str, Any], author: User) -> Revision:
    """What others saved while the Git host was asked stays; where they chose another source, theirs is it."""
    current = _lock(spec)
    if current.document["source"] != before:
        return current
    document = _checked(spec.organization, {**current.document, "source": moved})
    message = f"{moved['ref']} is now {moved['commit'][:12]}"
    return save_revision(spec=spec, document=document, author=author, message=message)


@transaction.atomic
def change_settings(
    *, spec: Spec, settings: dict[str, Any], changed_by: User, pool: Pool | None = None
) -> Spec:
    """Change settings, and the pool with them: an identity may allow the new ones only together."""
    changed = apply_settings(spec, settings)
    if pool is not None and _move(spec, pool):
        changed.append("pool")
    if changed:
        _require_identity_allows(spec)
        spec.save(update_fields=changed)
        _note_change(spec, changed_by, changed)
    return spec


@transaction.atomic
def move_to_pool(*, spec: Spec, pool: Pool, moved_by: User) -> Spec:
    """Later jobs are for the runners of that pool; what is queued already stays where it is."""
    if _move(spec, pool):
        _require_identity_allows(spec)
        spec.save(update_fields=["pool"])
        _note_change(spec, moved_by, ["pool"])
    return spec


def _move(spec: Spec, pool: Pool) -> bool:
    """Whether the spec is in another pool now than before."""
    if pool.organization_id != spec.organization_id:
        raise NotFound(f"There is no pool {pool.name!r}.")
    moved = spec.pool_id != pool.pk
    spec.pool = pool
    return moved


def _require_identity_allows(spec: Spec) -> None:
    if spec.identity is not None:
        hooks.identities.require_usable(spec)


def _lock(spec: Spec) -> Revision:
    """Two editors get two numbers, one after the other, and the second sees what the first has saved."""
    Spec.objects.select_for_update().get(pk=spec.pk)
    return current_revision(spec)


def _require_based_on(current: Revision, based_on: int | None) -> None:
    if based_on is not None and based_on != current.number:
        raise Conflict(
            f"Revision {current.number} was saved by {current.author or 'Slipway'} meanwhile; yours began "
            f"from {based_on}. Look at it, and make your change again.",
            revision=current.number,
        )


def _checked(
    organization: Organization,
    document: dict[str, Any],
    *,
    sensitive: Mapping[str, Mapping[str, Any]] | None = None,
) -> dict[str, Any]:
    """The document, found to be good, with everything sealed that is to be, or is declared as sensitive.

    A sealed value can never be checked again, so all of them are checked while they are still plain.
    """
    secrets = [
        (category, name, value)
        for category, named in (sensitive or {}).items()
        for name, value in named.items()
    ]
    bundle = bundle_of(document)
    for category, name, value in secrets:
        bundle = set_plain(bundle, category=category, name=name, value=value)
    declared = declared_by(document)
    check_values({**document, **bundle}, declared=declared, may_lack_values=True)
    for category, name, value in secrets:
        bundle = set_secret(
            bundle, category=category, name=name, value=value, organization_id=organization.pk
        )
    bundle = sealed_as_declared(bundle, declared=declared, organization_id=organization.pk)
    return {**document, **bundle}


def _note_source(spec: Spec, source: dict[str, Any]) -> None:
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
            return f"Made from blueprint {source['name']}"
        case "git":
            return f"Made from {source['url']} at {source['commit'][:12]}"
    return "Made from files"


def _note_change(spec: Spec, changed_by: User, fields: list[str]) -> None:
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
