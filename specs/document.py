"""Blueprints, and the document of a revision: building and validating it, with no database.

A document says what a revision is made of:

    {"format": 1,
     "source": {"kind": "blueprint", "name": …} | {"kind": "inline"} |
               {"kind": "git", "url": …, "ref": …, "path": …, "commit": …, "credential": digest of a token},
     "files": {path: text},              # empty for a Git source: the runner fetches the commit
     "variables", "environment", "secrets": see specs/variables.py,
     "terraform_version": null, "backend": {"kind": "console"}}

The source of a blueprint of the organization's own also names the `commit` that its files are from. That of a
blueprint with a last step has it as `last_step`, of which the runner makes a phase of the job's log.
"""

from dataclasses import dataclass
from functools import cache, lru_cache
from pathlib import Path
from typing import Any

import yaml

from console.errors import BadInput, NotFound
from specs.configuration import Configuration, check_variables, read_configuration, read_variables
from specs.git import GitSource, read_files, resolve
from specs.json_limits import check_storable

BLUEPRINTS = Path(__file__).parent / "blueprints"
#: The files of a blueprint's folder that belong to the configuration.
TERRAFORM_FILES = ("*.tf", "*.tf.json", "*.tftpl")
DOCUMENT_FORMAT = 1


@dataclass(frozen=True, slots=True)
class Blueprint:
    """One catalogue entry."""

    name: str
    title: str
    description: str
    clouds: tuple[str, ...]
    #: The form's facts about each variable: type, default, choices, picker and group.
    variables: dict[str, Any]
    #: The output that becomes each component of a Spec.
    components: dict[str, str]
    files: dict[str, str]
    #: The last step of an apply, which people wait for: phase, title and resource addresses.
    last_step: dict[str, Any] | None = None
    #: The commit of an organization's own blueprint; empty for a built-in one.
    commit: str = ""


@cache
def load_blueprint(name: str) -> Blueprint:
    folder = BLUEPRINTS / name
    if not name.replace("-", "").isalnum() or not (folder / "blueprint.yaml").is_file():
        raise NotFound(f"There is no blueprint named {name}.")
    meta = yaml.safe_load((folder / "blueprint.yaml").read_text())
    files = {
        path.name: path.read_text() for pattern in TERRAFORM_FILES for path in sorted(folder.glob(pattern))
    }
    return Blueprint(
        name=name,
        title=meta["title"],
        description=meta["description"],
        clouds=tuple(meta.get("clouds", ())),
        variables=meta.get("variables", {}),
        components=meta.get("components", {}),
        files=files,
        last_step=meta.get("last_step"),
    )


@cache
def blueprints() -> tuple[Blueprint, ...]:
    """Return the built-in blueprints."""
    names = sorted(path.parent.name for path in BLUEPRINTS.glob("*/blueprint.yaml"))
    return tuple(load_blueprint(name) for name in names)


def is_built_in(name: str) -> bool:
    return any(blueprint.name == name for blueprint in blueprints())


def new_document(source: dict[str, Any], *, files: dict[str, str], bundle: dict[str, Any]) -> dict[str, Any]:
    return {
        "format": DOCUMENT_FORMAT,
        "source": source,
        "files": files,
        **bundle,
        "terraform_version": None,
        "backend": {"kind": "console"},
    }


def source_and_files(
    requested_source: dict[str, Any], *, blueprint: Blueprint | None = None
) -> tuple[dict[str, Any], dict[str, str]]:
    """Check a requested source; return its stored form and the files that go with it.

    `blueprint` is the organization's own one, which the caller reads from the database.
    """
    match requested_source.get("kind"):
        case "blueprint":
            return _blueprint_source(blueprint or load_blueprint(str(requested_source.get("name", ""))))
        case "inline":
            files = _text_files(requested_source.get("files"))
            read_configuration(files)
            return {"kind": "inline"}, files
        case "git":
            source = git_source(requested_source)
            commit = resolve(source)
            read_configuration(git_files(source, commit))
            return {
                "kind": "git",
                "url": source.url,
                "ref": source.ref,
                "path": source.path,
                "commit": commit,
            }, {}
    raise BadInput("source.kind: expected blueprint, inline or git", field="source.kind")


def git_source(source: dict[str, Any]) -> GitSource:
    return GitSource(
        url=str(source.get("url", "")).strip(),
        ref=str(source.get("ref") or "main").strip(),
        path=str(source.get("path") or "").strip().strip("/"),
        token=str(source.get("token") or ""),
        credential=str(source.get("credential") or ""),
    )


@lru_cache(maxsize=64)
def git_files(source: GitSource, commit: str) -> dict[str, str]:
    return read_files(source, commit)


def files_of(document: dict[str, Any]) -> dict[str, str]:
    """Return the document's files. Those of a Git source come from the Git host, which may refuse."""
    source = document["source"]
    if source["kind"] == "git":
        return git_files(git_source(source), source["commit"])
    files: dict[str, str] = document["files"]
    return files


def read_source(document: dict[str, Any]) -> Configuration:
    """Parse the configuration of a document."""
    source = document["source"]
    if source["kind"] == "blueprint" and is_built_in(source["name"]):
        return read_variables(document["files"])  # the suite checks the rest of it
    return read_configuration(files_of(document))


def check_values(document: dict[str, Any], *, declared: Configuration, may_lack_values: bool = False) -> None:
    """Refuse variables that do not match the configuration, and values that cannot be stored."""
    check_storable(document["variables"], field="variables")
    check_storable(document["environment"], field="environment")
    check_variables(
        declared,
        variables=document.get("variables", {}),
        secret_names=frozenset(document.get("secrets", {}).get("variables", {})),
        may_lack_values=may_lack_values,
    )


def _blueprint_source(blueprint: Blueprint) -> tuple[dict[str, Any], dict[str, str]]:
    source: dict[str, Any] = {"kind": "blueprint", "name": blueprint.name}
    if blueprint.commit:
        source["commit"] = blueprint.commit
    if blueprint.last_step:
        source["last_step"] = blueprint.last_step
    return source, dict(blueprint.files)


def _text_files(files: Any) -> dict[str, str]:
    if not isinstance(files, dict) or not all(isinstance(text, str) for text in files.values()):
        raise BadInput("source.files: expected an object of file names and texts", field="source.files")
    if not files:
        raise BadInput("There are no files: add one that ends in .tf.", field="source.files")
    check_storable(files, field="source.files")
    return {path: text.replace("\r\n", "\n") for path, text in files.items()}
