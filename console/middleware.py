"""Render refusals and failures, as problem documents for programs and as pages for people."""

import logging
from typing import Any

from asgiref.sync import iscoroutinefunction, markcoroutinefunction
from django.core.exceptions import PermissionDenied, RequestDataTooBig
from django.db import DataError
from django.http import Http404, HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import render
from psycopg.errors import UntranslatableCharacter
from rest_framework.exceptions import APIException, AuthenticationFailed, NotAuthenticated, ValidationError
from rest_framework.response import Response

from console.errors import BadInput, Forbidden, NotFound, NotSignedIn, SlipwayError, TooLarge
from console.ids import new_id

logger = logging.getLogger("slipway.errors")


class ErrorsMiddleware:
    """Render every exception that leaves a view: a problem document for programs, a page for people."""

    sync_capable = True
    async_capable = True

    def __init__(self, get_response: Any) -> None:
        self.get_response = get_response
        if iscoroutinefunction(get_response):
            markcoroutinefunction(self)

    def __call__(self, request: HttpRequest) -> Any:
        return self.get_response(request)

    def process_exception(self, request: HttpRequest, exception: Exception) -> HttpResponse | None:
        return response_to(request, exception)


def response_to(request: HttpRequest, exception: Exception) -> HttpResponse:
    error = as_slipway_error(exception)
    if error is None:
        return unexpected(request, exception)
    return refusal(request, error)


def as_slipway_error(exception: Exception) -> SlipwayError | None:
    """Return the refusal that matches an exception of Django's or DRF's, if any."""
    match exception:
        case SlipwayError():
            return exception
        case Http404():
            return NotFound()
        case PermissionDenied():
            return Forbidden()
        case RequestDataTooBig():
            return TooLarge()
        case NotAuthenticated() | AuthenticationFailed():
            return NotSignedIn(str(exception.detail))
        case ValidationError():
            return BadInput("Some fields are not valid.", errors=exception.detail)
        case APIException() if exception.status_code < 500:
            return _keep_code(exception)
        case DataError() if _is_about_nul(exception):
            return BadInput("A text contains a NUL character, which cannot be stored. Remove it.")
    return None


def _is_about_nul(error: DataError) -> bool:
    """Recognize a NUL: psycopg refuses it in texts, PostgreSQL in JSON."""
    cause = error.__cause__
    return isinstance(cause, UntranslatableCharacter) or "NUL (0x00)" in str(cause)


def refusal(request: HttpRequest, error: SlipwayError) -> HttpResponse:
    if wants_json(request):
        response: HttpResponse = problem(error.problem())
    else:
        error_id = str(new_id())
        logger.info(
            "refusal %s at %s %s: %s %s", error_id, request.method, request.path, error.status, error.code
        )
        response = problem_page(
            request, error, status=error.status, title=error.title, detail=str(error), error_id=error_id
        )
    for name, value in error.headers.items():
        response[name] = value
    return response


def unexpected(request: HttpRequest, exception: Exception) -> HttpResponse:
    """Log an unexpected failure, and show only its id to the reader."""
    error_id = str(new_id())
    logger.error("error %s at %s %s", error_id, request.method, request.path, exc_info=exception)
    detail = f"Something went wrong on our side. The request was not completed. Error ID: {error_id}."
    if wants_json(request):
        return problem(
            {
                "type": "urn:slipway:problem:internal",
                "title": "Internal error",
                "status": 500,
                "detail": detail,
                "code": "internal",
                "error_id": error_id,
            }
        )
    return problem_page(request, None, status=500, title="Internal error", detail=detail, error_id=error_id)


def problem(document: dict[str, Any]) -> JsonResponse:
    return JsonResponse(document, status=document["status"], content_type="application/problem+json")


def problem_page(
    request: HttpRequest,
    error: SlipwayError | None,
    *,
    status: int,
    title: str,
    detail: str,
    error_id: str | None = None,
) -> HttpResponse:
    context = {
        "error": error,
        "status": status,
        "title": title,
        "detail": detail,
        "code": error.code if error else "internal",
        "error_id": error_id,
    }
    return render(request, "problem.html", context, status=status)


def wants_json(request: HttpRequest) -> bool:
    return request.path.startswith("/api/")


def api_exception(exception: Exception, context: dict[str, Any]) -> Response | None:
    """DRF's hook: the same problem documents as everywhere."""
    error = as_slipway_error(exception)
    if error is None:
        return None  # ErrorsMiddleware handles it
    return Response(
        error.problem(), status=error.status, content_type="application/problem+json", headers=error.headers
    )


def _keep_code(exception: APIException) -> SlipwayError:
    error = SlipwayError(str(exception.detail))
    error.code, error.status = exception.default_code, exception.status_code
    return error


def not_found(request: HttpRequest, exception: Exception) -> HttpResponse:
    return refusal(request, NotFound())


def failed(request: HttpRequest) -> HttpResponse:
    return unexpected(request, RuntimeError("raised outside a view"))
