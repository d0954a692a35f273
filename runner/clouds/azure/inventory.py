"""The resources of an Azure subscription that the forms of Specs offer."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from runner.clouds.azure.clients import AzureClients
from runner.clouds.contract import Resource
from runner.clouds.rest import ApiRefused, WholeInventory


class AzureInventory(WholeInventory):
    """Lists whole subscriptions."""

    everywhere: tuple[str, ...] = (
        "region", "vpc", "subnet", "hosted_zone", "cluster", "key_pair", "certificate"
    )  # fmt: skip

    def __init__(self, azure: AzureClients, regions: list[str]) -> None:
        super().__init__(regions, bearer=lambda: azure.bearer(azure.management))
        self._azure = azure

    def explain(self, error: Exception) -> str:
        if not isinstance(error, ApiRefused):
            return self._azure.explain(error)
        return (
            f"Azure answered: {str(error).rstrip('.')} ({error.code}). Grant "
            f"{self._azure.who} a role that may list it, such as Reader on the subscription."
        )

    def _pages_of(self, path: str, version: str) -> Iterator[Any]:
        subscription = f"{self._azure.management}/subscriptions/{self._azure.subscription_id}"
        url = f"{subscription}/{path}?api-version={version}"
        while url:
            page = self._reader.document(url)
            yield page.get("value") or []
            url = str(page.get("nextLink") or "")

    def _simple_resources(self, path: str, version: str, **more: str) -> Iterator[list[Resource]]:
        for page in self._pages_of(path, version):
            yield [
                {
                    "id": resource["id"],
                    "name": resource["name"],
                    "region": resource.get("location", "global"),
                    **more,
                }
                for resource in page
            ]

    def _region(self) -> Iterator[list[Resource]]:
        for page in self._pages_of("locations", "2022-12-01"):
            yield [
                {"id": location["name"], "name": location["displayName"], "enabled": True}
                for location in page
            ]

    def _vpc(self) -> Iterator[list[Resource]]:
        for page in self._pages_of("providers/Microsoft.Network/virtualNetworks", "2023-09-01"):
            yield [
                {
                    "id": network["id"],
                    "name": network["name"],
                    "region": network["location"],
                    "cidr": ", ".join(_prefixes(network["properties"].get("addressSpace", {}))),
                }
                for network in page
            ]

    def _subnet(self) -> Iterator[list[Resource]]:
        for page in self._pages_of("providers/Microsoft.Network/virtualNetworks", "2023-09-01"):
            yield [
                {
                    "id": subnet["id"],
                    "name": subnet["name"],
                    "network": network["name"],
                    "region": network["location"],
                    "zone": "",
                    "cidr": ", ".join(_prefixes(subnet["properties"])),
                }
                for network in page
                for subnet in network["properties"].get("subnets") or ()
            ]

    def _hosted_zone(self) -> Iterator[list[Resource]]:
        return self._simple_resources("providers/Microsoft.Network/dnszones", "2018-05-01")

    def _cluster(self) -> Iterator[list[Resource]]:
        return self._simple_resources(
            "providers/Microsoft.ContainerService/managedClusters", "2024-02-01", type="aks"
        )

    def _key_pair(self) -> Iterator[list[Resource]]:
        return self._simple_resources("providers/Microsoft.Compute/sshPublicKeys", "2023-09-01")

    def _certificate(self) -> Iterator[list[Resource]]:
        return self._simple_resources("providers/Microsoft.Web/certificates", "2022-03-01")


def _prefixes(properties: dict[str, Any]) -> list[str]:
    if prefix := properties.get("addressPrefix"):
        return [str(prefix)]
    return [str(prefix) for prefix in properties.get("addressPrefixes") or ()]
