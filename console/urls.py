"""The console's addresses: pages, the people's API, health."""

from django.http import HttpRequest, HttpResponse
from django.urls import include, path

from console.identities import discovery
from console.metrics import metrics


def healthz(request: HttpRequest) -> HttpResponse:
    """Answers when the console can serve requests; says nothing about anything else."""
    return HttpResponse("ok\n", content_type="text/plain")


urlpatterns = [
    path("healthz", healthz),
    path("metrics", metrics),
    path(".well-known/openid-configuration", discovery.openid_configuration, name="openid-configuration"),
    path(".well-known/jwks.json", discovery.jwks, name="jwks"),
    path("api/", include("console.urls_api")),
    path("", include("console.pages.urls")),
]

handler404 = "console.middleware.not_found"
handler500 = "console.middleware.failed"
