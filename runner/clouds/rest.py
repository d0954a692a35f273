"""Reads lists from clouds whose APIs are plain HTTP and JSON: patient when throttled, clear when refused."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import Any

import httpx

from runner.clouds.contract import Resource

#: Waits between tries: the whole is about what a page of a browser waits.
_WAITS_SECONDS = (0.5, 1.0, 2.0, 4.0, 8.0)
_LONGEST_WAIT_SECONDS = 30.0
_TIMEOUT_SECONDS = 30.0


class ApiRefused(Exception):
    """A cloud's API said no."""

    def __init__(self, status: int, code: str, message: str) -> None:
        super().__init__(message)
        self.status = status
        self.code = code


class Reader:
    """Safe to use from several threads."""

    def __init__(self, bearer: Callable[[], str]) -> None:
        self._bearer = bearer
        # A connection for each request: lists are few, and nothing is left open that somebody has to close.
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
    """A cloud whose lists are asked for once, for all regions; what lies in a region says so itself."""

    regional: tuple[str, ...] = ()

    def __init__(self, regions: list[str], *, bearer: Callable[[], str]) -> None:
        self._wanted = regions
        self._reader = Reader(bearer)

    def regions(self) -> list[str]:
        return self._wanted

    def pages(self, kind: str, region: str) -> Iterator[list[Resource]]:
        pages: Iterator[list[Resource]] = getattr(self, f"_{kind}")()
        return ([one for one in page if self._is_wanted(one)] for page in pages)

    def is_off(self, error: Exception, region: str) -> bool:
        return False

    def _is_wanted(self, resource: Resource) -> bool:
        return not self._wanted or resource.get("region", "global") in ("global", *self._wanted)


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
