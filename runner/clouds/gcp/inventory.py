"""What a Google Cloud project has to offer to the forms of Specs."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any
from urllib.parse import quote

from runner.clouds.contract import Resource
from runner.clouds.gcp.clients import GcpClients
from runner.clouds.rest import ApiRefused, WholeInventory


class GcpInventory(WholeInventory):
    """All of it is asked for by project."""

    everywhere: tuple[str, ...] = ("region", "vpc", "subnet", "hosted_zone", "cluster", "certificate")

    def __init__(self, gcp: GcpClients, regions: list[str]) -> None:
        super().__init__(regions, bearer=gcp.bearer)
        self._gcp = gcp

    def explain(self, error: Exception) -> str:
        if not isinstance(error, ApiRefused):
            return self._gcp.explain(error)
        if "has not been used" in str(error) or "disabled" in str(error):
            return f"Google answered: {str(error).rstrip('.')}. Enable that API in the project."
        return (
            f"Google answered: {str(error).rstrip('.')}. Grant {self._gcp.who} a role that may list it, such "
            "as roles/viewer."
        )

    def _listed(self, service: str, path: str, items: str) -> Iterator[Any]:
        """The items of each page."""
        token = ""
        while True:
            url = f"{self._gcp.endpoint(service)}/{path}?pageToken={quote(token, safe='')}"
            page = self._reader.document(url if token else url.partition("?")[0])
            yield page.get(items) or []
            token = str(page.get("nextPageToken") or "")
            if not token:
                return

    def _compute(self, path: str) -> Iterator[Any]:
        return self._listed("compute", f"projects/{self._gcp.project}/{path}", "items")

    def _aggregated(self, what: str) -> Iterator[list[Resource]]:
        for scopes in self._compute(f"aggregated/{what}"):
            found = scopes.values() if scopes else ()  # by zone and region; a page without any has no map
            yield [one for scope in found for one in scope.get(what) or ()]

    def _region(self) -> Iterator[list[Resource]]:
        for page in self._compute("regions"):
            yield [
                {"id": one["name"], "name": one["name"], "enabled": one.get("status") == "UP"} for one in page
            ]

    def _vpc(self) -> Iterator[list[Resource]]:
        for page in self._compute("global/networks"):
            yield [{"id": _path(one), "name": one["name"], "cidr": one.get("IPv4Range", "")} for one in page]

    def _subnet(self) -> Iterator[list[Resource]]:
        for page in self._aggregated("subnetworks"):
            yield [
                {
                    "id": _path(one),
                    "name": one["name"],
                    "network": _last(one.get("network", "")),
                    "zone": "",
                    "cidr": one.get("ipCidrRange", ""),
                    "region": _last(one.get("region", "")),
                }
                for one in page
            ]

    def _certificate(self) -> Iterator[list[Resource]]:
        for page in self._aggregated("sslCertificates"):
            yield [
                {"id": _path(one), "name": one["name"], "region": _last(one.get("region", "")) or "global"}
                for one in page
            ]

    def _hosted_zone(self) -> Iterator[list[Resource]]:
        path = f"projects/{self._gcp.project}/managedZones"
        for page in self._listed("dns", path, "managedZones"):
            yield [
                {
                    "id": one["name"],
                    "name": one["dnsName"].rstrip("."),
                    "private": one.get("visibility") == "private",
                }
                for one in page
            ]

    def _cluster(self) -> Iterator[list[Resource]]:
        path = f"v1/projects/{self._gcp.project}/locations/-/clusters"
        for page in self._listed("container", path, "clusters"):
            yield [
                {"id": one["name"], "name": one["name"], "type": "gke", "region": _region(one["location"])}
                for one in page
            ]


def _last(link: str) -> str:
    return link.rpartition("/")[2]


def _path(resource: dict[str, Any]) -> str:
    """What Terraform takes: projects/P/…"""
    _, found, path = str(resource.get("selfLink", "")).partition("projects/")
    return found + path or str(resource["name"])


def _region(location: str) -> str:
    """europe-west1 of the zone europe-west1-b."""
    return location[:-2] if location[-2:-1] == "-" else location
