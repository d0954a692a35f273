"""The fields of a Spec's forms, and reading filled forms into what the services take."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from django.core.files.uploadedfile import UploadedFile
from django.http import QueryDict
from django.utils.datastructures import MultiValueDict

from console.errors import BadInput, TooLarge
from console.inputs import whole_number
from specs.archive import read_archive
from specs.configuration import MAX_TOTAL_BYTES, Configuration, Variable
from specs.terraform_types import ANY, TerraformType
from specs.variables import Bundle, EffectiveVariable, empty_bundle, set_plain

GENERAL = "Variables"
#: How the field of a variable is named in a form; a secret's otherwise, so that nothing echoes it.
PREFIX, SECRET_PREFIX = "var-", "secret-"
SECRET, CHOICE, SWITCH, NUMBER, TEXT, JSON = "secret", "choice", "switch", "number", "text", "json"


@dataclass(frozen=True, slots=True)
class Field:
    """One variable as a form asks for it."""

    variable: Variable
    control: str
    text: str
    choices: tuple[str, ...] = ()
    picker: str = ""

    @property
    def name(self) -> str:
        prefix = SECRET_PREFIX if self.control == SECRET else PREFIX
        return prefix + self.variable.name

    @property
    def rows(self) -> int:
        return min(12, max(2, self.text.count("\n") + 1))


def field_groups(
    configuration: Configuration,
    *,
    presented: Mapping[str, Any] | None = None,
    typed: Mapping[str, str] | None = None,
) -> list[tuple[str, list[Field]]]:
    """The form's fields in the order of the configuration, by the groups that a blueprint gives them.

    `typed` is what stands in the fields already, where they are shown again.
    """
    groups: dict[str, list[Field]] = {}
    for name, variable in configuration.variables.items():
        presentation = (presented or {}).get(name, {})
        groups.setdefault(presentation.get("group", GENERAL), []).append(
            _field(variable, presentation, typed or {})
        )
    return list(groups.items())


def field_of(effective: EffectiveVariable, *, picker: str = "") -> Field:
    """The field with which one variable is changed, holding the value that it has now."""
    variable = effective.declared or _undeclared(effective)
    control = SECRET if effective.sensitive else control_of(variable)
    text = "" if effective.sensitive or effective.is_missing else text_of(effective.value, variable.type)
    return Field(variable, control, text, picker=picker)


def control_of(variable: Variable, choices: list[Any] | None = None) -> str:
    if variable.sensitive:
        return SECRET
    if choices:
        return CHOICE
    return {"string": TEXT, "number": NUMBER, "bool": SWITCH}.get(variable.type.kind, JSON)


def text_of(value: Any, kind: TerraformType) -> str:
    """The value as it stands in a field."""
    if value is None:
        return ""
    if isinstance(value, str) and kind.kind not in ("any", "list", "set", "map", "object", "tuple"):
        return value
    if isinstance(value, bool) or not isinstance(value, dict | list):
        return json.dumps(value, ensure_ascii=False)
    flat = json.dumps(value, ensure_ascii=False)
    return flat if len(flat) <= 60 else json.dumps(value, ensure_ascii=False, indent=2)


def value_in(text: str, kind: TerraformType, *, field: str) -> Any:
    """Parse a typed value by its type: text keeps its lines, anything else is JSON."""
    if kind.kind == "string":
        return text.replace("\r\n", "\n")
    if kind.kind == "bool":
        if text not in ("true", "false"):
            raise BadInput(f"{field}: expected true or false", field=field)
        return text == "true"
    try:
        return json.loads(text)
    except RecursionError as error:
        raise BadInput(f"{field}: is nested too deeply to be read.", field=field) from error
    except ValueError as error:
        if kind.kind == "any":
            return text  # a bare word is a text; whoever means JSON writes JSON
        raise BadInput(
            _not_json(text, kind, field, error), field=field, line=getattr(error, "lineno", 1)
        ) from error


def variables_in(form: QueryDict, configuration: Configuration) -> tuple[Bundle, dict[str, dict[str, Any]]]:
    """The values that differ from the defaults, and apart from them those that are to be sealed."""
    bundle, sensitive = empty_bundle(), {}
    for name, variable in configuration.variables.items():
        text = form.get(PREFIX + name, form.get(SECRET_PREFIX + name))
        if text is None or (text == "" and _empty_means_nothing(variable)):
            continue
        value = value_in(text, variable.type, field=f"variables.{name}")
        if variable.sensitive:
            sensitive[name] = value
        elif variable.required or value != variable.default:
            bundle = set_plain(bundle, category="variables", name=name, value=value)
    return bundle, {"variables": sensitive}


def typed_in(form: QueryDict) -> dict[str, str]:
    """Return the values typed into the fields of variables, without secrets."""
    return {name.removeprefix(PREFIX): str(form[name]) for name in form if name.startswith(PREFIX)}


def source_in(form: QueryDict, uploaded: MultiValueDict[str, UploadedFile[bytes]]) -> dict[str, Any]:
    """The source that a form describes; an archive in it wins over the files in its fields."""
    kind = form.get("source", "")
    if kind == "blueprint":
        return {"kind": kind, "name": form.get("blueprint", "")}
    if kind == "git":
        return {
            "kind": kind,
            "url": form.get("url", ""),
            "ref": form.get("ref", ""),
            "path": form.get("path", ""),
            **_token_in(form),
        }
    if archive := uploaded.get("archive"):
        return {"kind": "inline", "files": read_archive(_content(archive))}
    return {"kind": kind, "files": files_in(form)}


def _token_in(form: QueryDict) -> dict[str, str]:
    """A field that is left empty keeps the token there is: it is never shown, so nobody can repeat it."""
    if token := form.get("token", ""):
        return {"token": token}
    return {"token": ""} if "forget-token" in form else {}


def files_in(form: QueryDict) -> dict[str, str]:
    """Names and texts come in pairs; a pair of which both are empty is the form's spare one."""
    names, texts = form.getlist("file-name"), form.getlist("file-text")
    files: dict[str, str] = {}
    for name, text in zip(map(str.strip, names), texts, strict=False):
        if not name and not text.strip():
            continue
        if not name:
            raise BadInput("A file has no name. Give it one that ends in .tf.", field="source.files")
        if name in files:
            raise BadInput(
                f"There are two files named {name!r}. Rename one.", field="source.files", file=name
            )
        files[name] = text.replace("\r\n", "\n")
    return files


def settings_in(form: QueryDict) -> dict[str, Any]:
    """The settings page's fields; switches that are off are absent from what a browser sends."""
    share = form.get("guard-share", "").strip()
    return {
        "name": form.get("name", ""),
        "environment": form.get("environment", ""),
        "description": form.get("description", "").replace("\r\n", "\n"),
        "labels": _labels_in(form.get("labels", "")),
        "region": form.get("region", ""),
        **({"identity": form["identity"]} if "identity" in form else {}),
        "terraform_version": form.get("terraform_version", ""),
        "auto_apply": "auto_apply" in form,
        "protected": "protected" in form,
        "required_approvals": _whole_number(form, "required_approvals"),
        "plan_max_age_hours": _whole_number(form, "plan_max_age_hours"),
        "destroy_guard": {
            "share": None if not share else _percent(share),
            "types": form.get("guard-types", "").replace(",", " ").split(),
        },
        "expires_at": _time_in(form.get("expires_at", "")),
    }


def _field(variable: Variable, presented: Mapping[str, Any], typed: Mapping[str, str]) -> Field:
    choices = presented.get("choices")
    default = text_of(variable.default, variable.type)
    return Field(
        variable=variable,
        control=control_of(variable, choices),
        text="" if variable.sensitive else typed.get(variable.name, default),
        choices=tuple(text_of(choice, variable.type) for choice in choices or ()),
        picker=presented.get("picker", ""),
    )


def _empty_means_nothing(variable: Variable) -> bool:
    """An empty text is a value where the default is another text; in any other field it is none."""
    return (
        variable.type.kind != "string" or variable.required or variable.sensitive or variable.default is None
    )


def _not_json(text: str, kind: TerraformType, field: str, error: ValueError) -> str:
    name = field.removeprefix("variables.")
    if kind.kind == "number":
        return f"{name}: {text[:40]!r} is not a number. Write one such as 3 or 0.5."
    line, column = getattr(error, "lineno", 1), getattr(error, "colno", 1)
    return f"{name}: expected {kind} as JSON, such as {_example(kind)}; look at line {line}, column {column}."


def _example(kind: TerraformType) -> str:
    return {"map": '{"key": …}', "object": '{"name": …}'}.get(kind.kind, '["a", "b"]')


def _content(archive: UploadedFile[bytes]) -> bytes:
    if (archive.size or 0) > MAX_TOTAL_BYTES:
        raise TooLarge(f"The archive is larger than {MAX_TOTAL_BYTES // 1024 // 1024} MiB.", field="archive")
    return bytes(archive.read())


def _labels_in(text: str) -> dict[str, str]:
    """One `name = text` on each line."""
    labels = {}
    for number, line in enumerate(text.splitlines(), start=1):
        name, separator, value = line.partition("=")
        if not line.strip():
            continue
        if not separator:
            raise BadInput(f"labels, line {number}: write name = text.", field="labels", line=number)
        labels[name.strip()] = value.strip()
    return labels


def _undeclared(effective: EffectiveVariable) -> Variable:
    """A variable that the configuration does not declare, such as one of the environment."""
    type = TerraformType("string") if effective.category == "environment" else ANY
    return Variable(effective.name, type, "", None, False, effective.sensitive, "", 0)


def _whole_number(form: QueryDict, name: str) -> int:
    number = whole_number(form.get(name, "").strip())
    if number is None:
        raise BadInput(f"{name}: expected a whole number", field=name)
    return number


def _percent(text: str) -> float:
    try:
        return float(text.removesuffix("%").strip()) / 100
    except ValueError as error:
        raise BadInput("The share is a number of per cent from 0 to 100.", field="destroy_guard") from error


def _time_in(text: str) -> str:
    """A browser's own field has no zone; all times here are UTC."""
    return f"{text}Z" if text and not text.endswith("Z") and "+" not in text else text
