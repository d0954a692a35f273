"""The two public documents by which a cloud verifies our tokens. Nothing in them is secret."""

from typing import Any

from django.http import HttpRequest, JsonResponse
from django.views.decorators.cache import cache_control
from django.views.decorators.http import require_safe

from console.identities import issuer

#: A next key is published two days before it signs, so an hour's cache is never too old.
CACHE_SECONDS = 3_600


@require_safe
@cache_control(public=True, max_age=CACHE_SECONDS)
def openid_configuration(request: HttpRequest) -> JsonResponse:
    return _public(issuer.configuration())


@require_safe
@cache_control(public=True, max_age=CACHE_SECONDS)
def jwks(request: HttpRequest) -> JsonResponse:
    return _public(issuer.key_set())


def _public(document: dict[str, Any]) -> JsonResponse:
    return JsonResponse(document, headers={"Access-Control-Allow-Origin": "*"})
