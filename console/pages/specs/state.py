"""The pages of state: versions, resources, differences, and what people do to them."""

from typing import Any

from django.conf import settings
from django.http import HttpResponse
from django.shortcuts import render, resolve_url

from console.errors import BadInput, NotFound
from console.inputs import whole_number
from console.pages.forms.backend import backend_form, chosen_backend
from console.pages.frame import PageRequest, action, is_fragment, signed_in
from console.state import access, services
from console.state.abandoned import abandoned_locks
from console.state.backends import backend_of, choose_backend
from console.state.differences import changes, output_changes
from console.state.document import decoded
from console.state.locks import force_unlock, held_lock
from console.state.models import Backend, BackendKind, StateLock, StateVersion
from console.state.resources import find_instances, outputs, tree
from console.state.secrets import secrets_of
from console.state.selectors import newest_version, version_with_body, versions_of
from specs.models import Spec

PAGE_SIZE = 50


#: More rows than this make a page slow to read and to load; a search narrows them down.
MAX_SHOWN = 300


#: What a person pastes into a configuration to use this state from a laptop.
BLOCK = """\
terraform {{
  backend "http" {{
    address        = "{address}"
    lock_address   = "{address}/lock"
    unlock_address = "{address}/lock"
    lock_method    = "POST"
    unlock_method  = "DELETE"
  }}
}}"""


@signed_in
def state(request: PageRequest, org: str, spec_slug: str) -> HttpResponse:
    spec = access.state_to_view(request.user, org, spec_slug)
    before = whole_number(request.GET.get("before"), digits=18)
    versions = versions_of(spec, before=before, limit=PAGE_SIZE + 1)
    context = {
        **_frame(request, spec),
        "versions": versions[:PAGE_SIZE],
        "older": versions[PAGE_SIZE - 1].serial if len(versions) > PAGE_SIZE else None,
        "before": before,
        "newest": newest_version(spec),
        "paste": BLOCK.format(address=f"{settings.SLIPWAY_PUBLIC_URL}/api/state/{spec.pk}"),
    }
    return render(request, "state/state.html", context)


@signed_in
def version(request: PageRequest, org: str, spec_slug: str, serial: int) -> HttpResponse:
    spec = access.state_to_view(request.user, org, spec_slug)
    version = version_with_body(spec, serial)
    content = decoded(services.read_version(version=version))
    search = request.GET.get("q", "")
    secrets = secrets_of((version, content))
    instances = find_instances(content, search)
    context = {
        **_frame(request, spec),
        "version": version,
        "newest": newest_version(spec),
        "search": search,
        "tree": tree(instances[:MAX_SHOWN]),
        "shown_count": min(len(instances), MAX_SHOWN),
        "found_count": len(instances),
        "outputs": outputs(content, secrets),
        "encrypted": "encrypted_data" in content,
        "earlier": _previous_version(version),
    }
    return render(request, "state/version.html", context)


@signed_in
def resource(request: PageRequest, org: str, spec_slug: str, serial: int) -> HttpResponse:
    """The attributes of one instance: the tree fetches them when it is opened."""
    spec = access.state_to_view(request.user, org, spec_slug)
    version = version_with_body(spec, serial)
    content = decoded(services.read_version(version=version))
    address = request.GET.get("address", "")
    secrets = secrets_of((version, content))
    instance = next(
        (
            candidate
            for candidate in find_instances(content, address, secrets)
            if candidate.address == address
        ),
        None,
    )
    if instance is None:
        raise NotFound(f"Serial {serial} has no {address}.")
    return render(
        request, "state/_attributes.html", {"instance": instance, "attributes": instance.attributes()}
    )


@signed_in
def compare(request: PageRequest, org: str, spec_slug: str) -> HttpResponse:
    spec = access.state_to_view(request.user, org, spec_slug)
    older, newer = _versions_to_compare(request, spec)
    before = decoded(services.read_version(version=older))
    after = decoded(services.read_version(version=newer))
    secrets = secrets_of((older, before), (newer, after))
    differing = changes(before, after, secrets)
    context = {
        **_frame(request, spec),
        "older": older,
        "newer": newer,
        "versions": versions_of(spec, limit=PAGE_SIZE),
        "changes": differing[:MAX_SHOWN],
        "change_count": len(differing),
        "outputs": {"action": "update", "attributes": output_changes(before, after, secrets)},
    }
    return render(request, "state/compare.html", context)


@signed_in
def download(request: PageRequest, org: str, spec_slug: str, serial: int) -> HttpResponse:
    spec = access.state_to_read_secrets(request.user, org, spec_slug)
    version = version_with_body(spec, serial)
    services.note_download(version=version, downloaded_by=request.user)
    answer = HttpResponse(services.read_version(version=version), content_type="application/json")
    answer["Content-Disposition"] = f'attachment; filename="{org}-{spec_slug}-{serial}.tfstate"'
    return answer


def roll_back(request: PageRequest, org: str, spec_slug: str, serial: int) -> Any:
    """Ask for confirmation on GET; act on POST."""
    return (_roll_back if request.method == "POST" else _ask_roll_back)(request, org, spec_slug, serial)


@signed_in
def _ask_roll_back(request: PageRequest, org: str, spec_slug: str, serial: int) -> HttpResponse:
    spec = access.state_to_manage(request.user, org, spec_slug)
    version, newest = version_with_body(spec, serial), newest_version(spec)
    context = {
        **_frame(request, spec),
        "version": version,
        "newest": newest,
        "question": "state/_roll_back.html",
    }
    return question(request, context)


@action
def _roll_back(request: PageRequest, org: str, spec_slug: str, serial: int) -> str:
    version = services.roll_back(
        spec=access.state_to_manage(request.user, org, spec_slug),
        serial=serial,
        confirmation=request.POST.get("confirmation", ""),
        requested_by=request.user,
    )
    return resolve_url("state-version", org, spec_slug, version.serial)


def unlock(request: PageRequest, org: str, spec_slug: str) -> Any:
    return (_unlock if request.method == "POST" else _ask_unlock)(request, org, spec_slug)


@signed_in
def _ask_unlock(request: PageRequest, org: str, spec_slug: str) -> HttpResponse:
    spec = access.state_to_unlock(request.user, org, spec_slug)
    return question(request, {**_frame(request, spec), "question": "state/_unlock.html"})


@action
def _unlock(request: PageRequest, org: str, spec_slug: str) -> str:
    spec = access.state_to_unlock(request.user, org, spec_slug)
    force_unlock(spec=spec, unlocked_by=request.user, lock_id=request.POST.get("lock_id", ""))
    return resolve_url("state", org, spec_slug)


@action
def upload(request: PageRequest, org: str, spec_slug: str) -> str:
    spec = access.state_to_write(request.user, org, spec_slug)
    file = request.FILES.get("file")
    if file is None or (file.size or 0) > settings.SLIPWAY_MAX_STATE_BYTES:
        raise BadInput(f"Choose a state file of at most {settings.SLIPWAY_MAX_STATE_BYTES // 2**20} MiB.")
    version = services.import_state(spec=spec, body=file.read(), imported_by=request.user)
    return resolve_url("state-version", org, spec_slug, version.serial)


def backend(request: PageRequest, org: str, spec_slug: str) -> Any:
    """The backend of this Spec: the form on GET, the choice on POST."""
    return (_choose_for_spec if request.method == "POST" else _ask_for_spec)(request, org, spec_slug)


@signed_in
def _ask_for_spec(request: PageRequest, org: str, spec_slug: str) -> HttpResponse:
    spec = access.state_to_manage(request.user, org, spec_slug)
    backend = Backend.objects.filter(spec=spec).first()
    context = {**_frame(request, spec), **backend_form(backend, has_state=newest_version(spec) is not None)}
    return render(request, "state/backend.html", context)


@action
def _choose_for_spec(request: PageRequest, org: str, spec_slug: str) -> str:
    spec = access.state_to_manage(request.user, org, spec_slug)
    choose_backend(
        organization=spec.organization, spec=spec, chosen_by=request.user, **chosen_backend(request.POST)
    )
    return resolve_url("state", org, spec_slug)


def question(request: PageRequest, context: dict[str, Any]) -> HttpResponse:
    """A question in the page's dialog, or as a page of its own."""
    if is_fragment(request):
        return render(request, context["question"], context)
    return render(request, "state/question.html", {**context, "whole_page": True})


def _frame(request: PageRequest, spec: Spec) -> dict[str, Any]:
    """The context of every page of a Spec's state."""
    lock, backend = held_lock(spec), backend_of(spec)
    return {
        "spec": spec,
        "lock": lock,
        "abandoned": lock is not None and _is_abandoned(lock),
        "backend": backend,
        "backend_name": BackendKind(backend.kind).label if backend else "",
        "may_unlock": lock is not None and access.may_unlock(request.user, spec),
    }


def _is_abandoned(lock: StateLock) -> bool:
    return lock in abandoned_locks()


def _previous_version(version: StateVersion) -> StateVersion | None:
    return next(iter(versions_of(version.spec, before=version.serial, limit=1)), None)


def _versions_to_compare(request: PageRequest, spec: Spec) -> tuple[StateVersion, StateVersion]:
    """The two versions that the address names, the older one first; without a name, the last two."""
    latest = versions_of(spec, limit=2)
    if not latest:
        raise NotFound(f"{spec.name} has no state to compare.")
    serials = [
        whole_number(request.GET.get("from"), digits=18) or latest[-1].serial,
        whole_number(request.GET.get("to"), digits=18) or latest[0].serial,
    ]
    older, newer = sorted(serials)
    return version_with_body(spec, older), version_with_body(spec, newer)
