"""What an Azure subscription has to offer to the forms of Specs."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from runner.clouds.azure.clients import AzureClients
from runner.clouds.contract import Resource
from runner.clouds.rest import ApiRefused, WholeInventory


class AzureInventory(WholeInventory):
    """All of it is asked for by subscription."""

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

    def _listed(self, path: str, version: str) -> Iterator[Any]:
        subscription = f"{self._azure.management}/subscriptions/{self._azure.subscription_id}"
        url = f"{subscription}/{path}?api-version={version}"
        while url:
            page = self._reader.document(url)
            yield page.get("value") or []
            url = str(page.get("nextLink") or "")

    def _plain(self, path: str, version: str, **more: str) -> Iterator[list[Resource]]:
        for page in self._listed(path, version):
            yield [
                {"id": one["id"], "name": one["name"], "region": one.get("location", "global"), **more}
                for one in page
            ]

    def _region(self) -> Iterator[list[Resource]]:
        for page in self._listed("locations", "2022-12-01"):
            yield [{"id": one["name"], "name": one["displayName"], "enabled": True} for one in page]

    def _vpc(self) -> Iterator[list[Resource]]:
        for page in self._listed("providers/Microsoft.Network/virtualNetworks", "2023-09-01"):
            yield [
                {
                    "id": one["id"],
                    "name": one["name"],
                    "region": one["location"],
                    "cidr": ", ".join(_prefixes(one["properties"].get("addressSpace", {}))),
                }
                for one in page
            ]

    def _subnet(self) -> Iterator[list[Resource]]:
        for page in self._listed("providers/Microsoft.Network/virtualNetworks", "2023-09-01"):
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
        return self._plain("providers/Microsoft.Network/dnszones", "2018-05-01")

    def _cluster(self) -> Iterator[list[Resource]]:
        return self._plain("providers/Microsoft.ContainerService/managedClusters", "2024-02-01", type="aks")

    def _key_pair(self) -> Iterator[list[Resource]]:
        return self._plain("providers/Microsoft.Compute/sshPublicKeys", "2023-09-01")

    def _certificate(self) -> Iterator[list[Resource]]:
        return self._plain("providers/Microsoft.Web/certificates", "2022-03-01")


def _prefixes(properties: dict[str, Any]) -> list[str]:
    if one := properties.get("addressPrefix"):
        return [str(one)]
    return [str(prefix) for prefix in properties.get("addressPrefixes") or ()]
