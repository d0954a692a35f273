"""The list of Specs."""

from typing import Any

from django.http import HttpResponse
from django.shortcuts import render
from django.utils.http import urlencode

from console.accounts.access import organization_to_view
from console.pages.frame import PageRequest, signed_in
from console.pages.selectors.specs import SORTS, Filters, environments_of, page_of_specs

STANDINGS = ("deployed", "destroyed", "never")


@signed_in
def specs(request: PageRequest, org: str) -> HttpResponse:
    organization = organization_to_view(request.user, org)
    filters = _filters(request)
    chosen = _chosen(filters)
    found = page_of_specs(organization, filters, after=request.GET.get("after", ""))
    context = {
        "rows": found.rows,
        "filters": filters,
        "chosen": chosen,
        "older": urlencode({**chosen, "after": found.next_after}) if found.next_after else "",
        "first": urlencode(chosen),
        "paged": "after" in request.GET,
        "environments": environments_of(organization),
        "standings": [(one, _query(chosen, standing=one)) for one in ("", *STANDINGS)],
        "sorts": [(one, _query(chosen, sort=one)) for one in SORTS],
    }
    return render(request, "specs/specs.html", context)


def _filters(request: PageRequest) -> Filters:
    query = request.GET
    return Filters(
        text=query.get("q", "").strip()[:100],
        environment=query.get("environment", "")[:40],
        standing=query.get("standing", "") if query.get("standing") in STANDINGS else "",
        archived=query.get("archived") == "1",
        sort=query.get("sort", "name") if query.get("sort") in SORTS else "name",
    )


def _chosen(filters: Filters) -> dict[str, str]:
    given = {
        "q": filters.text,
        "environment": filters.environment,
        "standing": filters.standing,
        "archived": "1" if filters.archived else "",
        "sort": filters.sort if filters.sort != "name" else "",
    }
    return {name: text for name, text in given.items() if text}


def _query(chosen: dict[str, str], **changed: Any) -> str:
    wanted = {**chosen, **changed}
    if wanted.get("sort") == "name":
        wanted["sort"] = ""
    return urlencode({name: text for name, text in wanted.items() if text})
