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


def settings(request: PageRequest, org: str, spec: str) -> HttpResponseBase:
    return (
        save_settings(request, org, spec) if request.method == "POST" else show_settings(request, org, spec)
    )


@signed_in
def show_settings(request: PageRequest, org: str, spec: str) -> HttpResponse:
    shown = access.spec_to_view(request.user, org, spec)
    context = {
        **tab_context(shown, "settings"),
        "pools": list_pools(shown.organization),
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
    access.spec_to_manage(request.user, org, spec)  # before anything is read: a stranger learns nothing
    wanted = forms.settings_in(request.POST)
    changed = access.spec_to_change(request.user, org, spec, wanted)
    pool = find_pool(changed.organization, request.POST.get("pool", ""))
    services.change_settings(spec=changed, settings=wanted, changed_by=request.user, pool=pool)
    return f"{resolve_url('spec-settings', org, spec)}?{urlencode({'saved': 1})}"


def _as_percent(share: float | None) -> str:
    return "" if share is None else f"{share * 100:g}"
