"""The pages of Specs: making one, and editing its source, variables, revisions and settings.

The first page of a Spec shows its plans and jobs, so it stands in the plans room; the list of all, which also
shows locks and drift, in the overview.
"""

from typing import Any
from uuid import UUID

from django.http import HttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import render, resolve_url
from django.utils.http import urlencode

from console.accounts.access import organization_to_operate
from console.accounts.models import Organization
from console.errors import BadInput, NotFound, SlipwayError
from console.identities.selectors import identities_for, identities_for_new
from console.pages import PageRequest, action, is_fragment, signed_in
from console.runners.models import Pool
from console.runners.services import default_pool
from console.whole_numbers import whole_number
from specs import access, forms, selectors, services
from specs.catalogue import blueprint_of, catalogue_of
from specs.comparison import compare
from specs.declared import declared_by
from specs.document import files_of, new_document
from specs.models import Spec
from specs.outputs import reveal_output
from specs.variables import Effective, empty

ENVIRONMENTS = ("development", "staging", "production")
SOURCES = ("blueprint", "inline", "git")
PAGE_SIZE = 50
#: What an editor opens with, so that the first thing a person sees is valid.
FIRST_FILE = 'variable "name" {\n  type    = string\n  default = "harbour"\n}\n'


@signed_in
def new(request: PageRequest, org: str) -> HttpResponse:
    """First the choice of a source, then one form for everything that it needs."""
    organization = organization_to_operate(request.user, org)
    kind = request.GET.get("source", "")
    if kind not in SOURCES:
        return render(request, "specs/new.html", {"catalogue": catalogue_of(organization)})
    context = {
        "kind": kind,
        "pools": _pools(organization),
        "identities": identities_for_new(organization),
        "environments": ENVIRONMENTS,
        "files": [("main.tf", FIRST_FILE)] if kind == "inline" else [],
        **(_blueprint_context(organization, request.GET.get("name", "")) if kind == "blueprint" else {}),
    }
    return render(request, "specs/new_form.html", context)


@signed_in
def variable_fields(request: PageRequest, org: str) -> HttpResponse:
    """The fields of what the source in the form declares, as it is typed; or what is wrong with it."""
    organization = organization_to_operate(request.user, org)
    typed = forms.typed_in(request.POST)
    try:
        stored, files = services.source_and_files_of(
            organization, forms.source_in(request.POST, request.FILES)
        )
        declared = declared_by(new_document(stored, files=files, bundle=empty()))
    except SlipwayError as error:
        return render(request, "specs/_fields.html", {"error": error, "typed": typed}, status=error.status)
    groups = forms.field_groups(declared, typed=typed)
    return render(request, "specs/_fields.html", {"groups": groups, "stored": stored})


def create_from(request: PageRequest, org: str) -> Spec:
    """Make the Spec that a form describes."""
    organization = organization_to_operate(request.user, org)
    source = forms.source_in(request.POST, request.FILES)
    stored, files = services.source_and_files_of(organization, source)
    declared = declared_by(new_document(stored, files=files, bundle=empty()))
    bundle, sensitive = forms.variables_in(request.POST, declared)
    return services.create_spec(
        organization=organization,
        name=request.POST.get("name", ""),
        source=source if source["kind"] != "inline" else {"kind": "inline", "files": files},
        pool_id=_pool(organization, request.POST.get("pool", "")).pk,
        author=request.user,
        bundle=bundle,
        sensitive=sensitive,
        settings={
            "environment": request.POST.get("environment", "") or ENVIRONMENTS[0],
            "description": request.POST.get("description", ""),
            "identity": request.POST.get("identity", ""),
            "region": request.POST.get("region", ""),
        },
    )


def source(request: PageRequest, org: str, spec: str) -> HttpResponseBase:
    return save_source(request, org, spec) if request.method == "POST" else show_source(request, org, spec)


@signed_in
def show_source(request: PageRequest, org: str, spec: str) -> HttpResponse:
    shown = access.spec_to_view(request.user, org, spec)
    revision = selectors.current_revision(shown)
    stored = revision.document["source"]
    kind = request.GET.get("kind", "")
    files, unreadable = _files_of(revision.document)
    context = {
        **_tab(shown, "source"),
        "revision": revision,
        "stored": stored,
        "kind": kind if kind in SOURCES else stored["kind"],
        "files": sorted(files.items()),
        "unreadable": unreadable,
        "catalogue": catalogue_of(shown.organization),
    }
    return render(request, "specs/source.html", context)


@action
def save_source(request: PageRequest, org: str, spec: str) -> str:
    changed = access.spec_to_operate(request.user, org, spec)
    services.change_source(
        spec=changed,
        source=forms.source_in(request.POST, request.FILES),
        author=request.user,
        message=request.POST.get("message", ""),
        based_on=whole_number(request.POST.get("based_on")),
    )
    return resolve_url("spec-source", org, spec)


@signed_in
def variables(request: PageRequest, org: str, spec: str) -> HttpResponse:
    shown = access.spec_to_view(request.user, org, spec)
    found = selectors.variables_of(shown)
    context = {
        **_tab(shown, "variables"),
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
    asked = access.spec_to_operate(request.user, org, spec)
    category = _category(request.GET.get("category", "environment" if not name else "variables"))
    one = _variable(asked, category, name)
    context = {
        **_tab(asked, "variables"),
        "one": one,
        "field": forms.field_of(one, picker=_picker(asked, one)),
        "category": category,
        "adding": not name,
    }
    template = "specs/_variable.html" if is_fragment(request) else "specs/variable.html"
    return render(request, template, context)


@action
def set_variable(request: PageRequest, org: str, spec: str, name: str) -> str:
    changed = access.spec_to_operate(request.user, org, spec)
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
        spec=access.spec_to_operate(request.user, org, spec),
        category=_category(request.POST.get("category", "variables")),
        name=name,
        author=request.user,
    )
    return resolve_url("spec-variables", org, spec)


@signed_in
def revisions(request: PageRequest, org: str, spec: str) -> HttpResponse:
    shown = access.spec_to_view(request.user, org, spec)
    found = selectors.revisions_of(shown, before=whole_number(request.GET.get("before")), limit=PAGE_SIZE + 1)
    context = {
        **_tab(shown, "revisions"),
        "revisions": found[:PAGE_SIZE],
        "older": found[PAGE_SIZE - 1].number if len(found) > PAGE_SIZE else None,
        "newest": selectors.current_number(shown),
    }
    return render(request, "specs/revisions.html", context)


@signed_in
def comparison(request: PageRequest, org: str, spec: str) -> HttpResponse:
    shown = access.spec_to_view(request.user, org, spec)
    older, newer = whole_number(request.GET.get("from")), whole_number(request.GET.get("to"))
    if older is None or newer is None:
        raise BadInput("Choose two revisions to compare.", field="from")
    found = compare(selectors.revision_of(shown, older), selectors.revision_of(shown, newer))
    return render(request, "specs/comparison.html", {**_tab(shown, "revisions"), "comparison": found})


@action
def restore(request: PageRequest, org: str, spec: str, number: int) -> str:
    restored = access.spec_to_operate(request.user, org, spec)
    services.restore_revision(spec=restored, number=number, author=request.user)
    return resolve_url("spec-revisions", org, spec)


def settings(request: PageRequest, org: str, spec: str) -> HttpResponseBase:
    return (
        save_settings(request, org, spec) if request.method == "POST" else show_settings(request, org, spec)
    )


@signed_in
def show_settings(request: PageRequest, org: str, spec: str) -> HttpResponse:
    shown = access.spec_to_view(request.user, org, spec)
    context = {
        **_tab(shown, "settings"),
        "pools": _pools(shown.organization),
        "identities": identities_for(shown),
        "environments": ENVIRONMENTS,
        "labels": "\n".join(f"{name} = {text}" for name, text in sorted(shown.labels.items())),
        "guard_share": _as_percent(shown.destroy_guard.get("share")),
        "guard_types": " ".join(shown.destroy_guard.get("types") or []),
        # To the second: what is saved again unchanged must not become another expiry.
        "expires_at": shown.expires_at.strftime("%Y-%m-%dT%H:%M:%S") if shown.expires_at else "",
    }
    return render(request, "specs/settings.html", context)


@action
def save_settings(request: PageRequest, org: str, spec: str) -> str:
    access.spec_to_operate(request.user, org, spec)  # before anything is read: a stranger learns nothing
    wanted = forms.settings_in(request.POST)
    changed = access.spec_to_change(request.user, org, spec, wanted)
    pool = _pool(changed.organization, request.POST.get("pool", ""))
    services.change_settings(spec=changed, settings=wanted, changed_by=request.user, pool=pool)
    return f"{resolve_url('spec-settings', org, spec)}?{urlencode({'saved': 1})}"


@signed_in
def reveal(request: PageRequest, org: str, spec: str, name: str) -> HttpResponse:
    """The value of a sensitive output, in the place where it was hidden. On record."""
    if request.method != "POST":
        raise BadInput("A sensitive output is revealed by its button.")
    shown = access.spec_to_operate(request.user, org, spec)
    try:
        value = reveal_output(spec=shown, name=name, revealed_to=request.user)
    except SlipwayError as error:
        if not is_fragment(request):
            raise
        return render(request, "_refusal.html", {"error": error}, status=error.status)
    template = "specs/_revealed.html" if is_fragment(request) else "specs/revealed.html"
    return render(request, template, {**_tab(shown, "overview"), "name": name, "value": value})


def _tab(spec: Spec, name: str) -> dict[str, Any]:
    return {"spec": spec, "tab": name}


def _blueprint_context(organization: Organization, name: str) -> dict[str, Any]:
    blueprint = blueprint_of(organization, name)
    stored, files = services.source_and_files_of(organization, {"kind": "blueprint", "name": name})
    declared = declared_by(new_document(stored, files=files, bundle=empty()))
    return {
        "blueprint": blueprint,
        "groups": forms.field_groups(declared, presented=blueprint.variables),
        "stored": stored,
    }


def _files_of(document: dict[str, Any]) -> tuple[dict[str, str], str]:
    try:
        return files_of(document), ""
    except BadInput as error:
        return {}, str(error)


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


def _pools(organization: Organization) -> list[Pool]:
    default_pool(organization)
    return list(Pool.objects.filter(organization=organization).order_by("name"))


def _pool(organization: Organization, text: str) -> Pool:
    try:
        found = Pool.objects.filter(organization=organization, pk=UUID(text)).first() if text else None
    except ValueError:
        found = None
    if text and found is None:
        raise BadInput("There is no such pool. Choose one of the list.", field="pool")
    return found or default_pool(organization)


def _category(text: str) -> str:
    return "environment" if text == "environment" else "variables"


def _as_percent(share: float | None) -> str:
    return "" if share is None else f"{share * 100:g}"
