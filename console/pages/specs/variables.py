"""The variables of a Spec, and where each value comes from."""

from django.http import HttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import render, resolve_url

from console.errors import NotFound
from console.pages.forms import specs as forms
from console.pages.frame import PageRequest, action, is_fragment, signed_in
from console.pages.specs.frame import tab_context
from specs import access, selectors, services
from specs.catalogue import blueprint_of
from specs.models import Spec
from specs.variables import EffectiveVariable


@signed_in
def variables(request: PageRequest, org: str, spec_slug: str) -> HttpResponse:
    spec = access.spec_to_view(request.user, org, spec_slug)
    variables = selectors.variables_of(spec)
    context = {
        **tab_context(spec, "variables"),
        "variables": [variable for variable in variables if variable.category == "variables"],
        "environment": [variable for variable in variables if variable.category == "environment"],
        "missing": [variable for variable in variables if variable.is_missing],
    }
    return render(request, "specs/variables.html", context)


def variable(request: PageRequest, org: str, spec_slug: str, name: str = "") -> HttpResponseBase:
    """The form for one variable on GET, its new value on POST."""
    answer = set_variable if request.method == "POST" else ask_variable
    return answer(request, org, spec_slug, name)


@signed_in
def ask_variable(request: PageRequest, org: str, spec_slug: str, name: str) -> HttpResponse:
    spec = access.spec_to_manage(request.user, org, spec_slug)
    category = _category(request.GET.get("category", "environment" if not name else "variables"))
    variable = _variable(spec, category, name)
    context = {
        **tab_context(spec, "variables"),
        "one": variable,
        "field": forms.field_of(variable, picker=_picker(spec, variable)),
        "category": category,
        "adding": not name,
    }
    template = "specs/_variable.html" if is_fragment(request) else "specs/variable.html"
    return render(request, template, context)


@action
def set_variable(request: PageRequest, org: str, spec_slug: str, name: str) -> str:
    spec = access.spec_to_manage(request.user, org, spec_slug)
    category = _category(request.POST.get("category", "variables"))
    name = name or request.POST.get("name", "").strip()
    field = forms.field_of(_variable(spec, category, name))
    services.change_variable(
        spec=spec,
        category=category,
        name=name,
        value=forms.value_in(request.POST.get("value", ""), field.variable.type, field=f"{category}.{name}"),
        sensitive="sensitive" in request.POST,
        author=request.user,
    )
    return resolve_url("spec-variables", org, spec_slug)


@action
def remove_variable(request: PageRequest, org: str, spec_slug: str, name: str) -> str:
    services.remove_variable(
        spec=access.spec_to_manage(request.user, org, spec_slug),
        category=_category(request.POST.get("category", "variables")),
        name=name,
        author=request.user,
    )
    return resolve_url("spec-variables", org, spec_slug)


def _variable(spec: Spec, category: str, name: str) -> EffectiveVariable:
    """The variable of that name; one that nobody has given a value yet is new."""
    by_name = {(variable.category, variable.name): variable for variable in selectors.variables_of(spec)}
    return by_name.get((category, name)) or EffectiveVariable(
        name=name, category=category, value=None, sensitive=False, origin="", overrides=()
    )


def _picker(spec: Spec, variable: EffectiveVariable) -> str:
    """The kind of resource that the blueprint offers for this variable; empty for none."""
    if variable.category != "variables" or not spec.blueprint:
        return ""
    try:
        presentation = blueprint_of(spec.organization, spec.blueprint).variables.get(variable.name) or {}
    except NotFound:
        return ""  # it was taken out of the catalogue, and the Spec has its files
    return str(presentation.get("picker", ""))


def _category(text: str) -> str:
    return "environment" if text == "environment" else "variables"
