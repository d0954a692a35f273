"""The catalogue: the built-in blueprints, and those that an organization adds from Git."""

import re
from typing import Any

import yaml
from django.db import IntegrityError, transaction
from django.utils.text import slugify

from console.accounts.models import Organization, User
from console.audit.actions import AuditAction
from console.audit.services import record
from console.errors import BadInput, Conflict, NotFound
from specs.configuration import read_configuration
from specs.document import (
    Blueprint,
    blueprints,
    git_files,
    git_source,
    is_built_in,
    load_blueprint,
)
from specs.git import normalize_token, resolve
from specs.json_limits import MAX_DEPTH, check_storable
from specs.models import OwnBlueprint
from specs.variables import keep_secret

META_FILE = "blueprint.yaml"
#: A last step's phase name, the phases that every job has, and the resource addresses of a last step.
PHASE = re.compile(r"^[a-z][a-z0-9-]{0,19}$")
PHASES = frozenset(
    {"prepare", "init", "download", "plan", "apply", "upload", "cost", "queued", "claimed", "done"}
)
ADDRESS = re.compile(r"^[A-Za-z_][\w.\[\]\"-]{0,199}$")
MAX_ADDRESSES = 20
MAX_META_CHARS = 64 * 1024
#: The files of a blueprint's folder that become files of the Spec.
KEPT_ENDINGS = (".tf", ".tf.json", ".tftpl", ".tpl", ".json", ".yaml", ".yml", ".sh", ".tfvars")


def catalogue_of(organization: Organization) -> list[Blueprint]:
    own = OwnBlueprint.objects.filter(organization=organization).order_by("name")
    return [*map(as_blueprint, own), *blueprints()]


def blueprint_of(organization: Organization, name: str) -> Blueprint:
    """Return the organization's own blueprint of that name, else the built-in one."""
    own = OwnBlueprint.objects.filter(organization=organization, name=name).first()
    return as_blueprint(own) if own else load_blueprint(name)


@transaction.atomic
def add_blueprint(
    *,
    organization: Organization,
    name: str,
    url: str,
    added_by: User,
    ref: str = "main",
    path: str = "",
    token: str = "",
) -> OwnBlueprint:
    """Read a folder of a Git repository into the organization's catalogue."""
    if slugify(name) != name or not 0 < len(name) <= 60:
        raise BadInput("The name has letters, digits and hyphens only.", field="name")
    if is_built_in(name):
        raise Conflict(f"{name} is a built-in blueprint. Choose another name.", field="name")
    blueprint = OwnBlueprint(
        organization=organization, name=name, url=url, ref=ref, path=path, added_by=added_by
    )
    if token := normalize_token(token):
        blueprint.credential = keep_secret(token, organization_id=organization.pk)
    _read_into(blueprint)
    try:
        with transaction.atomic():
            blueprint.save(force_insert=True)
    except IntegrityError as error:
        raise Conflict(
            f"{organization.name} already has a blueprint {name!r}. Refresh it, or choose another name.",
            field="name",
        ) from error
    _record_event(blueprint, added_by, AuditAction.BLUEPRINT_ADDED)
    return blueprint


@transaction.atomic
def refresh_blueprint(*, blueprint: OwnBlueprint, refreshed_by: User) -> OwnBlueprint:
    """Read the blueprint again at the current commit of its ref. Specs created from it do not change."""
    before = blueprint.commit
    _read_into(blueprint)
    blueprint.save(update_fields=["commit", "meta", "files", "updated_at"])
    if blueprint.commit != before:
        _record_event(blueprint, refreshed_by, AuditAction.BLUEPRINT_REFRESHED)
    return blueprint


@transaction.atomic
def remove_blueprint(*, blueprint: OwnBlueprint, removed_by: User) -> None:
    """Remove the blueprint from the catalogue. Specs created from it keep their own files."""
    _record_event(blueprint, removed_by, AuditAction.BLUEPRINT_REMOVED)
    blueprint.delete()


def own_blueprint(organization: Organization, name: str) -> OwnBlueprint:
    blueprint = OwnBlueprint.objects.filter(organization=organization, name=name).first()
    if blueprint is None:
        raise NotFound(f"{organization.name} has no blueprint of its own named {name!r}.")
    return blueprint


def as_blueprint(own: OwnBlueprint) -> Blueprint:
    return Blueprint(
        name=own.name,
        title=own.meta.get("title") or own.name,
        description=own.meta.get("description") or f"From {own.url}.",
        clouds=tuple(own.meta.get("clouds", ())),
        variables=own.meta.get("variables", {}),
        components=own.meta.get("components", {}),
        files=own.files,
        last_step=own.meta.get("last_step"),
        commit=own.commit,
    )


def _read_into(blueprint: OwnBlueprint) -> None:
    source = git_source(
        {
            "url": blueprint.url,
            "ref": blueprint.ref,
            "path": blueprint.path,
            "credential": blueprint.credential,
        }
    )
    commit = resolve(source)
    folder_files = git_files(source, commit)
    files = {path: text for path, text in folder_files.items() if _belongs_to_spec(path)}
    read_configuration(files)
    blueprint.url, blueprint.ref, blueprint.path = source.url, source.ref, source.path
    blueprint.commit, blueprint.files = commit, files
    blueprint.meta = _parse_meta(folder_files.get(META_FILE, ""))


def _belongs_to_spec(path: str) -> bool:
    hidden = any(part.startswith(".") for part in path.split("/"))
    return path.endswith(KEPT_ENDINGS) and not hidden and path != META_FILE


def _parse_meta(text: str) -> dict[str, Any]:
    """Parse and check `blueprint.yaml` into the shape that the form reads."""
    meta = _load_yaml(text) if text else {}
    if not isinstance(meta, dict):
        raise _bad_meta("expected title, description, variables and components at the top")
    variables, components = meta.get("variables") or {}, meta.get("components") or {}
    if not isinstance(variables, dict) or not all(isinstance(entry, dict) for entry in variables.values()):
        raise _bad_meta("variables: expected a name with type, description, default, choices or group each")
    if not isinstance(components, dict) or not all(isinstance(entry, str) for entry in components.values()):
        raise _bad_meta("components: expected a kind with the name of an output each")
    checked_meta = {
        "title": str(meta.get("title") or "")[:100],
        "description": str(meta.get("description") or "")[:2_000],
        "clouds": [str(entry) for entry in meta.get("clouds") or [] if isinstance(entry, str)],
        "variables": {str(name): _form_hints(entry) for name, entry in variables.items()},
        "components": {str(kind)[:40]: output for kind, output in components.items()},
        **({"last_step": _parse_last_step(meta["last_step"])} if meta.get("last_step") else {}),
    }
    check_storable(checked_meta, field="blueprint.yaml")
    return checked_meta


def _load_yaml(text: str) -> Any:
    if len(text) > MAX_META_CHARS:
        raise _bad_meta(f"it has more than {MAX_META_CHARS // 1024} KiB")
    try:
        _require_plain(text)
        return yaml.safe_load(text)
    except (yaml.YAMLError, ValueError) as error:  # ValueError: a date such as 2026-02-31
        mark = getattr(error, "problem_mark", None)
        line = mark.line + 1 if mark else 1
        raise _bad_meta(f"line {line}: this is not YAML", line=line) from error


def _require_plain(text: str) -> None:
    """Refuse aliases, which can expand to gigabytes, and deep nesting, which takes minutes to parse."""
    depth = 0
    for event in yaml.parse(text, Loader=yaml.SafeLoader):
        if isinstance(event, yaml.AliasEvent):
            raise _bad_meta("it has an alias (*name): write the value out")
        depth += isinstance(event, yaml.CollectionStartEvent) - isinstance(event, yaml.CollectionEndEvent)
        if depth > MAX_DEPTH:
            raise _bad_meta(f"it is nested more than {MAX_DEPTH} levels deep")


def _parse_last_step(last_step: Any) -> dict[str, Any]:
    """Parse the last step of an apply: a phase of the log around the events of some resources."""
    phase, title, addresses = (
        (last_step.get(key) for key in ("phase", "title", "addresses"))
        if isinstance(last_step, dict)
        else (None, None, None)
    )
    if not isinstance(phase, str) or not PHASE.match(phase) or phase in PHASES:
        raise _bad_meta(
            "last_step.phase: expected one word of a-z, 0-9 and - that is not already a phase of a job"
        )
    if not isinstance(title, str) or not title.strip():
        raise _bad_meta("last_step.title: expected a few words, such as Installing Argo CD")
    if not isinstance(addresses, list) or not 0 < len(addresses) <= MAX_ADDRESSES:
        raise _bad_meta(f"last_step.addresses: expected 1 to {MAX_ADDRESSES} addresses of resources")
    if not all(isinstance(address, str) and ADDRESS.match(address) for address in addresses):
        raise _bad_meta("last_step.addresses: expected addresses such as helm_release.argocd or module.x")
    return {"phase": phase, "title": title.strip()[:100], "addresses": addresses}


def _form_hints(variable: dict[str, Any]) -> dict[str, Any]:
    """Return the hints that the form adds to a variable; the rest comes from the .tf files."""
    hints: dict[str, Any] = {key: str(variable[key])[:200] for key in ("group", "picker") if key in variable}
    choices = variable.get("choices")
    if choices is None:
        return hints
    if not isinstance(choices, list) or not all(isinstance(choice, str | int | float) for choice in choices):
        raise _bad_meta("choices: expected a list of texts, numbers or true and false")
    return {**hints, "choices": choices}


def _bad_meta(problem: str, line: int = 1) -> BadInput:
    return BadInput(f"{META_FILE}: {problem}. Correct it.", field="source.path", file=META_FILE, line=line)


def _record_event(blueprint: OwnBlueprint, actor: User, action: AuditAction) -> None:
    record(
        organization=blueprint.organization,
        actor=actor,
        action=action,
        target=blueprint,
        name=blueprint.name,
        url=blueprint.url,
        commit=blueprint.commit,
    )
