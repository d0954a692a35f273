"""The settings of a Spec."""

from django.http import HttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import render, resolve_url
from django.utils.http import urlencode

from console.identities.selectors import identities_for
from console.pages.forms import specs as forms
from console.pages.frame import PageRequest, action, signed_in
from console.pages.specs.frame import ENVIRONMENTS, find_pool, list_pools, tab_context
from specs import access, services


def settings(request: PageRequest, org: str, spec_slug: str) -> HttpResponseBase:
    return (
        save_settings(request, org, spec_slug)
        if request.method == "POST"
        else show_settings(request, org, spec_slug)
    )


@signed_in
def show_settings(request: PageRequest, org: str, spec_slug: str) -> HttpResponse:
    spec = access.spec_to_view(request.user, org, spec_slug)
    context = {
        **tab_context(spec, "settings"),
        "pools": list_pools(spec.organization),
        "identities": identities_for(spec),
        "environments": ENVIRONMENTS,
        "labels": "\n".join(f"{name} = {text}" for name, text in sorted(spec.labels.items())),
        "guard_share": _as_percent(spec.destroy_guard.get("share")),
        "guard_types": " ".join(spec.destroy_guard.get("types") or []),
        # To the second: what is saved again unchanged must not become another expiry.
        "expires_at": spec.expires_at.strftime("%Y-%m-%dT%H:%M:%S") if spec.expires_at else "",
    }
    return render(request, "specs/settings.html", context)


@action
def save_settings(request: PageRequest, org: str, spec_slug: str) -> str:
    access.spec_to_manage(request.user, org, spec_slug)  # before anything is read: a stranger learns nothing
    settings = forms.settings_in(request.POST)
    spec = access.spec_to_change(request.user, org, spec_slug, settings)
    pool = find_pool(spec.organization, request.POST.get("pool", ""))
    services.change_settings(spec=spec, settings=settings, changed_by=request.user, pool=pool)
    return f"{resolve_url('spec-settings', org, spec_slug)}?{urlencode({'saved': 1})}"


def _as_percent(share: float | None) -> str:
    return "" if share is None else f"{share * 100:g}"
