"""Variable sets: values that several Specs share."""

from uuid import UUID

from django.http import HttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import render, resolve_url

from console.accounts.access import organization_to_view
from console.errors import BadInput, NotFound
from console.pages.forms import specs as forms
from console.pages.frame import PageRequest, action, is_fragment, signed_in
from specs.access import organization_to_manage_variable_sets
from specs.models import Spec, VariableSet
from specs.terraform_types import ANY
from specs.variable_sets import (
    VariableAssignment,
    change_variable_in_set,
    delete_variable_set,
    remove_variable_from_set,
    save_variable_set,
)
from specs.variables import bundle_of, empty_bundle, list_variables


def variable_sets(request: PageRequest, org: str) -> HttpResponseBase:
    return create_set(request, org) if request.method == "POST" else list_sets(request, org)


@signed_in
def list_sets(request: PageRequest, org: str) -> HttpResponse:
    organization = organization_to_view(request.user, org)
    variable_sets = organization.variable_sets.prefetch_related("specs").order_by(
        "for_all_specs", "-priority", "name"
    )
    context = {
        "sets": [
            (variable_set, list_variables(bundle_of(variable_set.variables)))
            for variable_set in variable_sets
        ]
    }
    return render(request, "specs/variable_sets.html", context)


@action
def create_set(request: PageRequest, org: str) -> str:
    organization = organization_to_manage_variable_sets(request.user, org)
    name = request.POST.get("name", "").strip()
    if organization.variable_sets.filter(name=name).exists():
        raise BadInput(f"There is a set {name!r} already. Open it, or choose another name.", field="name")
    variable_set = save_variable_set(
        organization=organization, name=name[:100], bundle=empty_bundle(), saved_by=request.user
    )
    return resolve_url("variable-set", org, variable_set.pk)


def variable_set(request: PageRequest, org: str, set_id: UUID) -> HttpResponseBase:
    return save_set(request, org, set_id) if request.method == "POST" else show_set(request, org, set_id)


@signed_in
def show_set(request: PageRequest, org: str, set_id: UUID) -> HttpResponse:
    organization = organization_to_view(request.user, org)
    variable_set = _require_set(organization.variable_sets.filter(pk=set_id).first())
    attached = set(variable_set.specs.values_list("slug", flat=True))
    context = {
        "set": variable_set,
        "variables": list_variables(bundle_of(variable_set.variables)),
        "specs": [
            (spec, spec.slug in attached)
            for spec in Spec.objects.filter(organization=organization, archived_at=None).order_by("name")
        ],
    }
    return render(request, "specs/variable_set.html", context)


@action
def save_set(request: PageRequest, org: str, set_id: UUID) -> str:
    organization = organization_to_manage_variable_sets(request.user, org)
    changed = _require_set(organization.variable_sets.filter(pk=set_id).first())
    save_variable_set(
        organization=organization,
        name=changed.name,
        description=request.POST.get("description", ""),
        priority=_priority(request.POST.get("priority", "")),
        for_all_specs=request.POST.get("reach") == "all",
        specs=request.POST.getlist("specs"),
        bundle=bundle_of(changed.variables),
        saved_by=request.user,
    )
    return resolve_url("variable-set", org, set_id)


@action
def delete_set(request: PageRequest, org: str, set_id: UUID) -> str:
    organization = organization_to_manage_variable_sets(request.user, org)
    deleted = _require_set(organization.variable_sets.filter(pk=set_id).first())
    delete_variable_set(variable_set=deleted, deleted_by=request.user)
    return resolve_url("variable-sets", org)


def set_variable(request: PageRequest, org: str, set_id: UUID) -> HttpResponseBase:
    """The form for one variable on GET, its new value on POST."""
    answer = save_set_variable if request.method == "POST" else ask_set_variable
    return answer(request, org, set_id)


@signed_in
def ask_set_variable(request: PageRequest, org: str, set_id: UUID) -> HttpResponse:
    organization = organization_to_manage_variable_sets(request.user, org)
    variable_set = _require_set(organization.variable_sets.filter(pk=set_id).first())
    name, category = request.GET.get("name", ""), request.GET.get("category", "variables")
    variables = {
        (variable.category, variable.name): variable
        for variable in list_variables(bundle_of(variable_set.variables))
    }
    variable = variables.get((category, name))
    context = {
        "set": variable_set,
        "one": variable,
        "text": forms.text_of(variable.value, ANY) if variable and not variable.sensitive else "",
        "category": category,
    }
    template = "specs/_set_variable.html" if is_fragment(request) else "specs/set_variable.html"
    return render(request, template, context)


@action
def save_set_variable(request: PageRequest, org: str, set_id: UUID) -> str:
    organization = organization_to_manage_variable_sets(request.user, org)
    changed = _require_set(organization.variable_sets.filter(pk=set_id).first())
    category, text = request.POST.get("category", "variables"), request.POST.get("value", "")
    variable = VariableAssignment(
        name=request.POST.get("name", "").strip(),
        category=category,
        value=text if category == "environment" else forms.value_in(text, ANY, field="value"),
        sensitive="sensitive" in request.POST,
    )
    change_variable_in_set(variable_set=changed, assignment=variable, changed_by=request.user)
    return resolve_url("variable-set", org, set_id)


@action
def remove_set_variable(request: PageRequest, org: str, set_id: UUID) -> str:
    organization = organization_to_manage_variable_sets(request.user, org)
    changed = _require_set(organization.variable_sets.filter(pk=set_id).first())
    category = request.POST.get("category", "variables")
    remove_variable_from_set(
        variable_set=changed,
        category="environment" if category == "environment" else "variables",
        name=request.POST.get("name", ""),
        changed_by=request.user,
    )
    return resolve_url("variable-set", org, set_id)


def _require_set(variable_set: VariableSet | None) -> VariableSet:
    if variable_set is None:
        raise NotFound
    return variable_set


def _priority(text: str) -> int:
    try:
        number = int(text or "0")
    except ValueError:
        number = 10_000
    if not -1_000 <= number <= 1_000:
        raise BadInput("priority: expected a whole number from -1000 to 1000", field="priority")
    return number
