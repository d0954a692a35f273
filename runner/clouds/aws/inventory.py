"""The resources of an AWS account that the forms of Specs offer."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Any

from runner.clouds.aws.clients import AwsClients, error_code
from runner.clouds.contract import Resource

#: The largest page of EC2.
_EC2_PAGE = 1000
#: The codes of a region that is off for an account: one of its own, or that the key is unknown there.
_OFF = ("OptInRequired", "AuthFailure", "InvalidClientTokenId", "UnrecognizedClientException")


class AwsInventory:
    everywhere: tuple[str, ...] = ("region", "hosted_zone")
    regional: tuple[str, ...] = ("vpc", "subnet", "cluster", "key_pair", "certificate")

    def __init__(self, aws: AwsClients, regions: list[str]) -> None:
        self._aws = aws
        self._chosen_regions = regions
        self._lock = threading.Lock()
        self._clients: dict[tuple[str, str], Any] = {}

    def regions(self) -> list[str]:
        if self._chosen_regions:
            return self._chosen_regions
        answer = self._client("ec2", self._aws.region).describe_regions()
        return sorted(region["RegionName"] for region in answer["Regions"])

    def pages(self, kind: str, region: str) -> Iterator[list[Resource]]:
        pages: Iterator[list[Resource]] = getattr(self, f"_{kind}")(region)
        return pages

    def is_off(self, error: Exception, region: str) -> bool:
        # The region that issued the keys knows them: there, such an answer means something else.
        return region != self._aws.region and error_code(error) in _OFF

    def explain(self, error: Exception) -> str:
        return self._aws.explain_denial(error)

    def _client(self, service: str, region: str) -> Any:
        """Return a client: threads may share one, but only one at a time may make it."""
        with self._lock:
            if (service, region) not in self._clients:
                self._clients[service, region] = self._aws.client(service, region)
            return self._clients[service, region]

    def _pages_of(self, service: str, region: str, call: str, size: int | None = None) -> Iterator[Any]:
        paginator = self._client(service, region).get_paginator(call)
        return iter(paginator.paginate(PaginationConfig={"PageSize": size} if size else {}))

    def _region(self, region: str) -> Iterator[list[Resource]]:
        answer = self._client("ec2", self._aws.region).describe_regions(AllRegions=True)
        yield [
            {
                "id": region["RegionName"],
                "name": region["RegionName"],
                "enabled": region.get("OptInStatus") != "not-opted-in",
            }
            for region in answer["Regions"]
        ]

    def _vpc(self, region: str) -> Iterator[list[Resource]]:
        for page in self._pages_of("ec2", region, "describe_vpcs", _EC2_PAGE):
            yield [
                {
                    "id": vpc["VpcId"],
                    "name": _name(vpc, "VpcId"),
                    "cidr": vpc.get("CidrBlock", ""),
                    "is_default": bool(vpc.get("IsDefault")),
                }
                for vpc in page["Vpcs"]
            ]

    def _subnet(self, region: str) -> Iterator[list[Resource]]:
        for page in self._pages_of("ec2", region, "describe_subnets", _EC2_PAGE):
            yield [
                {
                    "id": subnet["SubnetId"],
                    "name": _name(subnet, "SubnetId"),
                    "network": subnet.get("VpcId", ""),
                    "zone": subnet.get("AvailabilityZone", ""),
                    "cidr": subnet.get("CidrBlock", ""),
                    "public": bool(subnet.get("MapPublicIpOnLaunch")),
                }
                for subnet in page["Subnets"]
            ]

    def _key_pair(self, region: str) -> Iterator[list[Resource]]:
        answer = self._client("ec2", region).describe_key_pairs()
        yield [
            {
                "id": pair.get("KeyPairId") or pair["KeyName"],
                "name": pair["KeyName"],
                "type": pair.get("KeyType", ""),
            }
            for pair in answer["KeyPairs"]
        ]

    def _cluster(self, region: str) -> Iterator[list[Resource]]:
        for page in self._pages_of("eks", region, "list_clusters"):
            yield [{"id": name, "name": name, "type": "eks"} for name in page["clusters"]]
        for page in self._pages_of("ecs", region, "list_clusters"):
            yield [{"id": arn, "name": arn.rpartition("/")[2], "type": "ecs"} for arn in page["clusterArns"]]

    def _certificate(self, region: str) -> Iterator[list[Resource]]:
        for page in self._pages_of("acm", region, "list_certificates"):
            yield [
                {
                    "id": certificate["CertificateArn"],
                    "name": certificate.get("DomainName", ""),
                    "status": certificate.get("Status", ""),
                }
                for certificate in page["CertificateSummaryList"]
            ]

    def _hosted_zone(self, region: str) -> Iterator[list[Resource]]:
        for page in self._pages_of("route53", self._aws.region, "list_hosted_zones"):
            yield [
                {
                    "id": zone["Id"].rpartition("/")[2],
                    "name": zone["Name"].rstrip("."),
                    "private": bool(zone.get("Config", {}).get("PrivateZone")),
                }
                for zone in page["HostedZones"]
            ]


def _name(resource: dict[str, Any], id_field: str) -> str:
    """Return the Name tag, as the AWS console shows it."""
    tags = {tag["Key"]: tag["Value"] for tag in resource.get("Tags") or ()}
    return str(tags.get("Name") or resource[id_field])
