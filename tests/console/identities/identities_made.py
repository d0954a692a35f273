"""Identities and their jobs, as tests make them."""

from __future__ import annotations

from typing import Any

import jwt
from jwt import PyJWK

from console.identities.models import CloudIdentity
from console.identities.services import Allowed, create_identity
from runner.protocol import Claim
from specs.models import Spec
from specs.services import change_settings
from tests.console_app import Console, Http, RunnerClient
from tests.people import Tenant

ISSUER = "http://127.0.0.1:8000"

AWS: dict[str, Any] = {"role_arn": "arn:aws:iam::123456789012:role/slipway", "region": "eu-central-1"}
GCP: dict[str, Any] = {
    "provider": "projects/42/locations/global/workloadIdentityPools/slipway/providers/slipway",
    "service_account": "slipway@harbour-prod.iam.gserviceaccount.com",
    "project": "harbour-prod",
}
AZURE: dict[str, Any] = {
    "tenant_id": "72f988bf-86f1-41af-91ab-2d7cd011db47",
    "client_id": "0b1b6b0e-8f6e-4b5a-9a0e-0c5c1f1f2d3e",
    "subscription_id": "5f3c1f9e-2d44-4a51-8f0d-6a7b8c9d0e1f",
}
SETTINGS = {"aws": AWS, "gcp": GCP, "azure": AZURE, "ambient": {}}


def new_identity(
    tenant: Tenant,
    provider: str = "aws",
    *,
    name: str = "Production",
    allowed: Allowed | None = None,
    **settings: Any,
) -> CloudIdentity:
    return create_identity(
        organization=tenant.organization,
        name=name,
        provider=provider,
        settings={**SETTINGS[provider], **settings},
        created_by=tenant.admin,
        allowed=allowed,
    )


def use(tenant: Tenant, identity: CloudIdentity | None, spec: Spec | None = None) -> Spec:
    """Give the tenant's Spec this identity, as its settings page does."""
    return change_settings(
        spec=spec or tenant.spec, settings={"identity": identity}, changed_by=tenant.operator
    )


def address(tenant: Tenant) -> str:
    return f"/api/organizations/{tenant.organization.slug}/identities"


def ask_for_token(runner: RunnerClient, claim: Claim, **changes: str) -> Any:
    path = f"/api/jobs/{changes.get('job_id', claim.job_id)}/identity-token"
    return runner.post(path, json={"claim_id": changes.get("claim_id", claim.claim_id)})


def token_of(runner: RunnerClient, claim: Claim) -> str:
    answer = ask_for_token(runner, claim)
    assert answer.status_code == 200, answer.text
    return str(answer.json()["token"])


def published(anybody: Http) -> list[dict[str, Any]]:
    keys: list[dict[str, Any]] = anybody.get("/.well-known/jwks.json").json()["keys"]
    return keys


def verified(console: Console, token: str, *, audience: str, issuer: str = ISSUER) -> dict[str, Any]:
    """The claims, as a cloud reads them: by the live documents, with another library than ours."""
    anybody = console.anybody()
    discovered = anybody.get("/.well-known/openid-configuration").json()
    assert discovered["jwks_uri"] == f"{ISSUER}/.well-known/jwks.json"
    key_id = jwt.get_unverified_header(token)["kid"]
    keys = {key["kid"]: key for key in published(anybody)}
    assert key_id in keys, "signed with a key that is not published"
    return jwt.decode(
        token,
        PyJWK(keys[key_id]).key,
        algorithms=["RS256"],
        audience=audience,
        issuer=issuer,
        options={"require": ["exp", "nbf", "iat", "iss", "sub", "aud", "jti"]},
    )
