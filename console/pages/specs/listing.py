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
    query = _query_of(filters)
    page = page_of_specs(organization, filters, after=request.GET.get("after", ""))
    context = {
        "rows": page.rows,
        "filters": filters,
        "chosen": query,
        "older": urlencode({**query, "after": page.next_after}) if page.next_after else "",
        "first": urlencode(query),
        "paged": "after" in request.GET,
        "environments": environments_of(organization),
        "standings": [(choice, _query_with(query, standing=choice)) for choice in ("", *STANDINGS)],
        "sorts": [(choice, _query_with(query, sort=choice)) for choice in SORTS],
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


def _query_of(filters: Filters) -> dict[str, str]:
    values = {
        "q": filters.text,
        "environment": filters.environment,
        "standing": filters.standing,
        "archived": "1" if filters.archived else "",
        "sort": filters.sort if filters.sort != "name" else "",
    }
    return {name: text for name, text in values.items() if text}


def _query_with(query: dict[str, str], **changed: Any) -> str:
    values = {**query, **changed}
    if values.get("sort") == "name":
        values["sort"] = ""
    return urlencode({name: text for name, text in values.items() if text})
