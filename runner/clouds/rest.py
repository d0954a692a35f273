"""Requests to clouds whose APIs are plain HTTP and JSON: patient when throttled, clear about refusals."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import Any

import httpx

from runner.clouds.contract import Resource

#: Waits between tries: together about the patience of a person at a page.
_WAITS_SECONDS = (0.5, 1.0, 2.0, 4.0, 8.0)
_LONGEST_WAIT_SECONDS = 30.0
_TIMEOUT_SECONDS = 30.0


class ApiRefused(Exception):
    """A cloud's API refused a request."""

    def __init__(self, status: int, code: str, message: str) -> None:
        super().__init__(message)
        self.status = status
        self.code = code


class Reader:
    """Safe to use from several threads."""

    def __init__(self, bearer: Callable[[], str]) -> None:
        self._bearer = bearer
        # A connection for each request: lists are few, and nothing stays open that has to be closed.
        self._trusted = httpx.create_ssl_context()

    def get(self, url: str, **headers: str) -> httpx.Response:
        for wait in (*_WAITS_SECONDS, None):
            answer = self._try(url, headers)
            throttled = answer.status_code == httpx.codes.TOO_MANY_REQUESTS
            if wait is None or not (throttled or answer.is_server_error):
                break
            time.sleep(max(wait, min(_retry_after(answer), _LONGEST_WAIT_SECONDS)))
        if not answer.is_success:
            raise _refusal(answer)
        return answer

    def _try(self, url: str, headers: dict[str, str]) -> httpx.Response:
        return httpx.get(
            url,
            headers={"Authorization": f"Bearer {self._bearer()}", **headers},
            timeout=_TIMEOUT_SECONDS,
            verify=self._trusted,
        )

    def document(self, url: str) -> dict[str, Any]:
        document: dict[str, Any] = self.get(url).json()
        return document


class WholeInventory:
    """The lists of a cloud that returns all regions at once, each resource with its region."""

    regional: tuple[str, ...] = ()

    def __init__(self, regions: list[str], *, bearer: Callable[[], str]) -> None:
        self._chosen_regions = regions
        self._reader = Reader(bearer)

    def regions(self) -> list[str]:
        return self._chosen_regions

    def pages(self, kind: str, region: str) -> Iterator[list[Resource]]:
        pages: Iterator[list[Resource]] = getattr(self, f"_{kind}")()
        return ([resource for resource in page if self._is_in_chosen_region(resource)] for page in pages)

    def is_off(self, error: Exception, region: str) -> bool:
        return False

    def _is_in_chosen_region(self, resource: Resource) -> bool:
        return not self._chosen_regions or resource.get("region", "global") in (
            "global",
            *self._chosen_regions,
        )


def _retry_after(answer: httpx.Response) -> float:
    text = answer.headers.get("Retry-After", "")
    return float(text) if text.isdigit() else 0.0


def _refusal(answer: httpx.Response) -> ApiRefused:
    """Read the code and the message of a problem document, which clouds write almost alike."""
    try:
        problem = answer.json()["error"]
        code, message = str(problem.get("status") or problem.get("code")), str(problem["message"])
    except (ValueError, KeyError, TypeError, AttributeError):
        code, message = "", f"HTTP {answer.status_code}"
    return ApiRefused(answer.status_code, code, message.splitlines()[0] if message else "")
