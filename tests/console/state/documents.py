"""State documents with something to look at: modules, data, secrets, and what a change does to them."""

from __future__ import annotations

from typing import Any

from tests.console.state.backend_client import state

PROVIDER = 'provider["registry.terraform.io/hashicorp/aws"]'
SECRET = "correct horse battery staple"


def resource(
    address: str, *attributes: dict[str, Any], module: str = "", mode: str = "managed", **more: Any
) -> dict[str, Any]:
    kind, name = address.split(".")
    instances = [
        {"schema_version": 0, "attributes": values, "sensitive_attributes": [], **more}
        for values in attributes
    ]
    if len(instances) > 1:
        instances = [{"index_key": index, **values} for index, values in enumerate(instances)]
    placed = {"module": module} if module else {}
    return {**placed, "mode": mode, "type": kind, "name": name, "provider": PROVIDER, "instances": instances}


def secret_at(*steps: str | int) -> list[dict[str, Any]]:
    """One path of `sensitive_attributes`, as Terraform writes it."""
    return [
        {"type": "get_attr", "value": step}
        if isinstance(step, str)
        else {"type": "index", "value": {"value": step, "type": "number"}}
        for step in steps
    ]


def database(password: str, size: str = "small") -> dict[str, Any]:
    return resource(
        "aws_db_instance.main",
        {
            "id": "db-1",
            "size": size,
            "admin": password,
            "password": password,
            "users": [{"name": "app", "pin": password}],
            "tags": {"team": "platform"},
        },
        module='module.data["eu"].module.store',
        sensitive_attributes=[secret_at("admin"), secret_at("users", 0, "pin")],
    )


def before(serial: int = 1) -> bytes:
    return state(
        serial,
        outputs={
            "endpoint": {"value": "db.example.com", "type": "string"},
            "login": {"value": SECRET, "type": "string", "sensitive": True},
        },
        resources=[
            resource("aws_vpc.main", {"id": "vpc-1", "cidr": "10.0.0.0/16", "serial": 1}),
            resource("aws_subnet.private", {"id": "a"}, {"id": "b"}, module="module.network"),
            resource("aws_ami.newest", {"id": "ami-1"}, mode="data"),
            database(SECRET),
        ],
    )


def after(serial: int = 2) -> bytes:
    return state(
        serial,
        outputs={
            "endpoint": {"value": "db2.example.com", "type": "string"},
            "login": {"value": SECRET + "!", "type": "string", "sensitive": True},
        },
        resources=[
            resource("aws_vpc.main", {"id": "vpc-1", "cidr": "10.0.0.0/16", "serial": 1}),
            resource("aws_subnet.private", {"id": "a"}, module="module.network"),
            resource("aws_ami.newest", {"id": "ami-1"}, mode="data"),
            database(SECRET + "!", "large"),
            resource("aws_s3_bucket.logs", {"id": "logs", "arn": None}, status="tainted"),
        ],
    )
