"""Search over an organization's Specs and jobs."""

from django.http import HttpResponse
from django.shortcuts import render

from console.accounts.access import organization_to_view
from console.pages.frame import PageRequest, is_fragment, signed_in
from console.pages.selectors.search import search as search_for


@signed_in
def search(request: PageRequest, org: str) -> HttpResponse:
    organization = organization_to_view(request.user, org)
    text = request.GET.get("q", "")
    context = {"text": text.strip(), "found": search_for(organization, text), "organization": organization}
    template = "search/_results.html" if is_fragment(request) else "search/search.html"
    return render(request, template, context)
