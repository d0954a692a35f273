"""AWS's part of a connection test: the external id, the length of sessions, and state in S3."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from runner.clouds.aws.clients import AwsClients, error_code
from runner.clouds.aws.credentials import AwsRole
from runner.clouds.contract import FAIL, PASS, UNKNOWN, Check, ShortSession, detail_and_remedy

#: The length of a session that any role allows.
_SHORTEST_SECONDS = 900


def shorten(role: AwsClients) -> ShortSession | None:
    """Try the shortest session, and keep to it if the role allows that."""
    if not isinstance(role, AwsRole) or role.session_seconds <= _SHORTEST_SECONDS:
        return None
    try:
        role.assume(seconds=_SHORTEST_SECONDS)
    except Exception:
        return None
    role.session_seconds = _SHORTEST_SECONDS
    return ShortSession(
        principal=role.role_arn,
        seconds=_SHORTEST_SECONDS,
        remedy=f"Raise the maximum session duration of {role.role_arn}, or ask for less in the identity.",
    )


def check_external_id(role: AwsClients) -> Iterator[Check]:
    """Check that the role needs the external id: others may be trusted with the same source."""
    if not isinstance(role, AwsRole) or role.uses_token:
        return
    code, title = "external_id", "The role insists on the external id"
    try:
        role.assume(external_id=False, seconds=_SHORTEST_SECONDS)
    except Exception as error:
        if error_code(error) == "AccessDenied":
            yield Check(code, title, PASS, "Without it, AWS refuses.")
        else:
            yield Check(code, title, UNKNOWN, *detail_and_remedy(role.explain(error)))
    else:
        yield Check(
            code,
            title,
            FAIL,
            "AWS let the runner in without it.",
            f'Add the condition "StringEquals": {{"sts:ExternalId": "{role.external_id}"}} to the trust '
            f"policy of {role.role_arn}.",
        )


def probe_s3(clients: AwsClients, settings: dict[str, Any]) -> object:
    style = {"s3": {"addressing_style": "path"}} if settings.get("use_path_style") else {}
    region = str(settings.get("region") or clients.region)
    return clients.client("s3", region, **style).list_objects_v2(Bucket=settings["bucket"], MaxKeys=1)
