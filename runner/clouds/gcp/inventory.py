"""The resources of a Google Cloud project that the forms of Specs offer."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any
from urllib.parse import quote

from runner.clouds.contract import Resource
from runner.clouds.gcp.clients import GcpClients
from runner.clouds.rest import ApiRefused, WholeInventory


class GcpInventory(WholeInventory):
    """Lists whole projects."""

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

    def _pages_of(self, service: str, path: str, items: str) -> Iterator[Any]:
        """Return the items of each page."""
        token = ""
        while True:
            url = f"{self._gcp.endpoint(service)}/{path}?pageToken={quote(token, safe='')}"
            page = self._reader.document(url if token else url.partition("?")[0])
            yield page.get(items) or []
            token = str(page.get("nextPageToken") or "")
            if not token:
                return

    def _compute(self, path: str) -> Iterator[Any]:
        return self._pages_of("compute", f"projects/{self._gcp.project}/{path}", "items")

    def _aggregated(self, what: str) -> Iterator[list[Resource]]:
        for scopes in self._compute(f"aggregated/{what}"):
            lists = scopes.values() if scopes else ()  # by zone and region; a page without any has no map
            yield [resource for scope in lists for resource in scope.get(what) or ()]

    def _region(self) -> Iterator[list[Resource]]:
        for page in self._compute("regions"):
            yield [
                {"id": region["name"], "name": region["name"], "enabled": region.get("status") == "UP"}
                for region in page
            ]

    def _vpc(self) -> Iterator[list[Resource]]:
        for page in self._compute("global/networks"):
            yield [
                {"id": _path(network), "name": network["name"], "cidr": network.get("IPv4Range", "")}
                for network in page
            ]

    def _subnet(self) -> Iterator[list[Resource]]:
        for page in self._aggregated("subnetworks"):
            yield [
                {
                    "id": _path(subnet),
                    "name": subnet["name"],
                    "network": _last(subnet.get("network", "")),
                    "zone": "",
                    "cidr": subnet.get("ipCidrRange", ""),
                    "region": _last(subnet.get("region", "")),
                }
                for subnet in page
            ]

    def _certificate(self) -> Iterator[list[Resource]]:
        for page in self._aggregated("sslCertificates"):
            yield [
                {
                    "id": _path(certificate),
                    "name": certificate["name"],
                    "region": _last(certificate.get("region", "")) or "global",
                }
                for certificate in page
            ]

    def _hosted_zone(self) -> Iterator[list[Resource]]:
        path = f"projects/{self._gcp.project}/managedZones"
        for page in self._pages_of("dns", path, "managedZones"):
            yield [
                {
                    "id": zone["name"],
                    "name": zone["dnsName"].rstrip("."),
                    "private": zone.get("visibility") == "private",
                }
                for zone in page
            ]

    def _cluster(self) -> Iterator[list[Resource]]:
        path = f"v1/projects/{self._gcp.project}/locations/-/clusters"
        for page in self._pages_of("container", path, "clusters"):
            yield [
                {
                    "id": cluster["name"],
                    "name": cluster["name"],
                    "type": "gke",
                    "region": _region(cluster["location"]),
                }
                for cluster in page
            ]


def _last(link: str) -> str:
    return link.rpartition("/")[2]


def _path(resource: dict[str, Any]) -> str:
    """Return the path that Terraform accepts: projects/P/…"""
    _, prefix, path = str(resource.get("selfLink", "")).partition("projects/")
    return prefix + path or str(resource["name"])


def _region(location: str) -> str:
    """Return the region of a zone: europe-west1 of europe-west1-b."""
    return location[:-2] if location[-2:-1] == "-" else location
