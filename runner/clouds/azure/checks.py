"""Azure's part of a connection test: state in a blob container."""

from __future__ import annotations

from typing import Any

from runner.clouds.azure.clients import AzureClients
from runner.clouds.rest import Reader

_STORAGE_API = {"x-ms-version": "2021-08-06"}


def probe_azurerm(clients: AzureClients, settings: dict[str, Any]) -> object:
    account = settings.get("storage_account_name")
    url = f"https://{account}.blob.core.windows.net/{settings.get('container_name')}"
    reader = Reader(lambda: clients.bearer("https://storage.azure.com"))
    return reader.get(f"{url}?restype=container&comp=list&maxresults=1", **_STORAGE_API)
