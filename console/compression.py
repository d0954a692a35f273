"""Compress pages and static files: a job page with everything it loads is a quarter of its size."""

import gzip
from contextlib import closing
from functools import lru_cache
from typing import Any

from django.http import HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.middleware.gzip import GZipMiddleware
from django.utils.cache import patch_vary_headers
from whitenoise.middleware import WhiteNoiseMiddleware

#: Content types worth compressing; images are compressed already.
COMPRESSIBLE = ("text/", "application/javascript", "application/json", "image/svg+xml")


class CompressedPages(GZipMiddleware):
    """Django's compression, which pads answers to hide their length, except for streams.

    A log that is followed would wait in the compressor until its buffer is full.
    """

    def process_response(self, request: HttpRequest, response: HttpResponseBase) -> HttpResponseBase:
        if response.streaming:
            return response
        answer: HttpResponseBase = super().process_response(request, response)
        return answer


class CompressedStaticFiles(WhiteNoiseMiddleware):
    """Static files from the packages, each compressed once, when it is first asked for."""

    def serve(self, static_file: Any, request: HttpRequest) -> HttpResponseBase:
        answer: HttpResponseBase = WhiteNoiseMiddleware.serve(static_file, request)
        if not _gains(request, answer):
            return answer
        with closing(answer):
            plain = b"".join(answer.streaming_content)  # type: ignore[attr-defined]
        compressed = HttpResponse(_compress(plain), content_type=answer["Content-Type"])
        for name in ("Cache-Control", "Last-Modified", "Access-Control-Allow-Origin"):
            if name in answer:
                compressed[name] = answer[name]
        compressed["Content-Encoding"] = "gzip"
        patch_vary_headers(compressed, ["Accept-Encoding"])
        return compressed


def _gains(request: HttpRequest, answer: HttpResponseBase) -> bool:
    return (
        request.method == "GET"
        and answer.status_code == 200
        and "gzip" in request.headers.get("Accept-Encoding", "")
        and "Range" not in request.headers
        and answer.get("Content-Type", "").startswith(COMPRESSIBLE)
    )


@lru_cache(maxsize=256)
def _compress(plain: bytes) -> bytes:
    return gzip.compress(plain, compresslevel=9, mtime=0)
