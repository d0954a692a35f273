"""The plan as Terraform prints it, for people: every sensitive value masked once more on its way out."""

from typing import Any

import orjson

from console.plans.changes import masked
from console.plans.models import Plan
from console.vault import unseal

#: A value that Terraform calls sensitive as a whole.
WHOLE = True


def raw_plan(plan: Plan) -> bytes:
    """`terraform show -json` of the plan, indented."""
    return orjson.dumps(without_secrets(plan_document(plan)), option=orjson.OPT_INDENT_2)


def plan_document(plan: Plan) -> dict[str, Any]:
    """Return the plan's JSON as the runner uploaded it."""
    sealed = plan.files.sealed_json
    document: dict[str, Any] = orjson.loads(unseal(sealed, context=f"plan-json:{plan.pk}"))
    return document


def without_secrets(document: dict[str, Any]) -> dict[str, Any]:
    """The runner masks before it uploads; a runner of somebody else's may not have."""
    for key in ("resource_changes", "resource_drift"):
        for resource in document.get(key) or []:
            _mask_change(resource.get("change") or {})
    for change in (document.get("output_changes") or {}).values():
        _mask_change(change)
    _mask_values(document.get("planned_values") or {})
    _mask_values((document.get("prior_state") or {}).get("values") or {})
    _mask_variables(document)
    return document


def _mask_change(change: dict[str, Any]) -> None:
    before = change.get("before")
    if "after" in change:
        change["after"] = masked(change["after"], change.get("after_sensitive"), before)
    if "before" in change:
        change["before"] = masked(before, change.get("before_sensitive"))


def _mask_values(values: dict[str, Any]) -> None:
    for output in (values.get("outputs") or {}).values():
        if output.get("sensitive"):
            output["value"] = masked(output.get("value"), WHOLE)
    _mask_module(values.get("root_module") or {})


def _mask_module(module: dict[str, Any]) -> None:
    for resource in module.get("resources") or []:
        resource["values"] = masked(resource.get("values"), resource.get("sensitive_values"))
    for child in module.get("child_modules") or []:
        _mask_module(child)


def _mask_variables(document: dict[str, Any]) -> None:
    root = (document.get("configuration") or {}).get("root_module") or {}
    declared = root.get("variables") or {}
    for name, variable in (document.get("variables") or {}).items():
        if (declared.get(name) or {}).get("sensitive"):
            variable["value"] = masked(variable.get("value"), WHOLE)
    for declaration in declared.values():
        if declaration.get("sensitive") and "default" in declaration:
            declaration["default"] = masked(declaration["default"], WHOLE)
