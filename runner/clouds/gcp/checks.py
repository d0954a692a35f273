"""Google Cloud's part of a connection test: state in Cloud Storage."""

from __future__ import annotations

from typing import Any
from urllib.parse import quote

from runner.clouds.gcp.clients import GcpClients
from runner.clouds.rest import Reader


def probe_gcs(clients: GcpClients, settings: dict[str, Any]) -> object:
    bucket = quote(str(settings.get("bucket")), safe="")
    return Reader(clients.bearer).document(f"{clients.endpoint('storage')}/b/{bucket}/o?maxResults=1")
