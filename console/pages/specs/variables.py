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
from specs.variables import Effective


@signed_in
def variables(request: PageRequest, org: str, spec: str) -> HttpResponse:
    shown = access.spec_to_view(request.user, org, spec)
    found = selectors.variables_of(shown)
    context = {
        **tab_context(shown, "variables"),
        "variables": [one for one in found if one.category == "variables"],
        "environment": [one for one in found if one.category == "environment"],
        "missing": [one for one in found if one.is_missing],
    }
    return render(request, "specs/variables.html", context)


def variable(request: PageRequest, org: str, spec: str, name: str = "") -> HttpResponseBase:
    """The form for one variable on GET, its new value on POST."""
    answer = set_variable if request.method == "POST" else ask_variable
    return answer(request, org, spec, name)


@signed_in
def ask_variable(request: PageRequest, org: str, spec: str, name: str) -> HttpResponse:
    asked = access.spec_to_manage(request.user, org, spec)
    category = _category(request.GET.get("category", "environment" if not name else "variables"))
    one = _variable(asked, category, name)
    context = {
        **tab_context(asked, "variables"),
        "one": one,
        "field": forms.field_of(one, picker=_picker(asked, one)),
        "category": category,
        "adding": not name,
    }
    template = "specs/_variable.html" if is_fragment(request) else "specs/variable.html"
    return render(request, template, context)


@action
def set_variable(request: PageRequest, org: str, spec: str, name: str) -> str:
    changed = access.spec_to_manage(request.user, org, spec)
    category = _category(request.POST.get("category", "variables"))
    name = name or request.POST.get("name", "").strip()
    field = forms.field_of(_variable(changed, category, name))
    services.change_variable(
        spec=changed,
        category=category,
        name=name,
        value=forms.value_in(request.POST.get("value", ""), field.variable.type, field=f"{category}.{name}"),
        sensitive="sensitive" in request.POST,
        author=request.user,
    )
    return resolve_url("spec-variables", org, spec)


@action
def remove_variable(request: PageRequest, org: str, spec: str, name: str) -> str:
    services.remove_variable(
        spec=access.spec_to_manage(request.user, org, spec),
        category=_category(request.POST.get("category", "variables")),
        name=name,
        author=request.user,
    )
    return resolve_url("spec-variables", org, spec)


def _variable(spec: Spec, category: str, name: str) -> Effective:
    """The variable of that name; one that nobody has given a value yet is new."""
    known = {(one.category, one.name): one for one in selectors.variables_of(spec)}
    return known.get((category, name)) or Effective(
        name=name, category=category, value=None, sensitive=False, origin="", overrides=()
    )


def _picker(spec: Spec, one: Effective) -> str:
    """What kind of resource its blueprint lets people choose for this variable; empty: none."""
    if one.category != "variables" or not spec.blueprint:
        return ""
    try:
        said = blueprint_of(spec.organization, spec.blueprint).variables.get(one.name) or {}
    except NotFound:
        return ""  # it was taken out of the catalogue, and the Spec has its files
    return str(said.get("picker", ""))


def _category(text: str) -> str:
    return "environment" if text == "environment" else "variables"
