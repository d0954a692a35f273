"""Tokens for clouds: what they say, who gets one, for how long, and what a cloud makes of a wrong one."""

from __future__ import annotations

import base64
import json
from typing import Any

import jwt
import pytest
from cryptography.hazmat.primitives.asymmetric import rsa
from django.core.management import call_command
from django.db.models.functions import Now

from console.audit.models import AuditEvent
from console.identities.jobs import request_connection_test
from console.identities.keys import PUBLISHED_BEFORE_USE, ROTATE_AFTER, current_key, rotate_when_due
from console.identities.models import KeyStatus, SignedToken, SigningKey
from console.identities.services import Allowed, change_identity
from console.jobs.models import JobClaim
from runner.protocol import Claim, JobType
from tests.concurrency.threads import race
from tests.console.identities.identities_made import (
    GCP,
    ISSUER,
    ask_for_token,
    new_identity,
    published,
    token_of,
    use,
    verified,
)
from tests.console_app import Console, RunnerClient, code_of
from tests.people import Tenant
from tests.specs.editing import everything_stored

STS = "sts.amazonaws.com"


@pytest.fixture
def runner(console: Console, ours: Tenant) -> RunnerClient:
    return console.new_runner(ours, "eu-1")


@pytest.fixture
def claim(ours: Tenant, runner: RunnerClient) -> Claim:
    """A PLAN of a Spec with an AWS identity, under way."""
    use(ours, new_identity(ours))
    ours.request()
    return runner.take_and_start()


def test_a_token_says_whose_job_it_is_and_what_it_does(
    console: Console, ours: Tenant, runner: RunnerClient, claim: Claim
) -> None:
    claims = verified(console, token_of(runner, claim), audience=STS)
    organization, spec = ours.organization, ours.spec
    assert claims["sub"] == (
        f"organization:ours@{organization.pk}:spec:network@{spec.pk}:environment:development:action:plan"
    )
    assert claims["exp"] - claims["iat"] == 900
    assert claims["iat"] - claims["nbf"] == 30
    identity = spec.identity
    assert identity is not None
    assert {
        name: claims[name] for name in ("iss", "job_id", "job_number", "attempt", "job_type", "runner")
    } == {
        "iss": ISSUER,
        "job_id": claim.job_id,
        "job_number": claim.job_number,
        "attempt": 1,
        "job_type": "PLAN",
        "runner": "eu-1",
    }
    assert (claims["requested_by"], claims["pool"]) == ("ours-operator", "default")
    assert (claims["identity_id"], claims["environment"]) == (
        str(identity.pk),
        "development",
    )
    assert claim.job_id not in claims["sub"], "Entra matches it exactly"


@pytest.mark.parametrize(
    ("provider", "audience"),
    [
        ("aws", STS),
        ("gcp", f"https://iam.googleapis.com/{GCP['provider']}"),
        ("azure", "api://AzureADTokenExchange"),
    ],
)
def test_each_cloud_has_its_audience_and_the_test_its_subject(
    console: Console, ours: Tenant, runner: RunnerClient, provider: str, audience: str
) -> None:
    identity = new_identity(ours, provider)
    request_connection_test(identity=identity, requested_by=ours.operator)
    claim = runner.take_and_start()
    assert claim.identity is not None
    assert claim.identity.audience == audience
    claims = verified(console, token_of(runner, claim), audience=audience)
    organization = ours.organization
    assert claims["sub"] == (
        f"organization:ours@{organization.pk}:identity:production@{identity.pk}:action:test"
    )
    assert claims["spec_id"] == ""


@pytest.mark.parametrize(("type", "action"), [(JobType.DRIFT_CHECK, "plan"), (JobType.DESTROY, "destroy")])
def test_the_subject_tells_what_changes_something_from_what_does_not(
    console: Console, ours: Tenant, runner: RunnerClient, type: JobType, action: str
) -> None:
    use(ours, new_identity(ours))
    ours.request(type)
    claims = verified(console, token_of(runner, runner.take()), audience=STS)
    assert claims["sub"].endswith(f":environment:development:action:{action}")


# ── the five negatives: what a cloud refuses ─────────────────────────────────────────────────────


def forged(token: str, **changes: Any) -> str:
    """The token with other claims, and the signature that it had."""
    header, body, signature = token.split(".")
    claims = json.loads(base64.urlsafe_b64decode(body + "=="))
    changed = base64.urlsafe_b64encode(json.dumps({**claims, **changes}).encode()).rstrip(b"=").decode()
    return f"{header}.{changed}.{signature}"


def test_a_changed_subject_breaks_the_signature(console: Console, runner: RunnerClient, claim: Claim) -> None:
    token = forged(token_of(runner, claim), sub="organization:theirs@1:spec:x@2:environment:p:action:deploy")
    with pytest.raises(jwt.InvalidSignatureError):
        verified(console, token, audience=STS)


def test_a_token_is_good_for_its_audience_only(console: Console, runner: RunnerClient, claim: Claim) -> None:
    with pytest.raises(jwt.InvalidAudienceError):
        verified(console, token_of(runner, claim), audience="api://AzureADTokenExchange")


def test_a_token_ends(console: Console, runner: RunnerClient, claim: Claim) -> None:
    token = forged(token_of(runner, claim), exp=1)
    with pytest.raises(jwt.InvalidSignatureError):
        verified(console, token, audience=STS)
    claims = jwt.decode(token_of(runner, claim), options={"verify_signature": False})
    assert claims["exp"] < claims["iat"] + 901


def test_a_key_of_somebody_elses_signs_nothing(console: Console, runner: RunnerClient, claim: Claim) -> None:
    token = token_of(runner, claim)
    claims = jwt.decode(token, options={"verify_signature": False})
    kid = jwt.get_unverified_header(token)["kid"]
    theirs = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    with pytest.raises(jwt.InvalidSignatureError):
        verified(
            console,
            jwt.encode(claims, theirs, algorithm="RS256", headers={"kid": kid}),
            audience=STS,
        )


def test_another_issuer_is_not_us(console: Console, runner: RunnerClient, claim: Claim) -> None:
    with pytest.raises(jwt.InvalidIssuerError):
        verified(console, token_of(runner, claim), audience=STS, issuer="https://slipway.example")


# ── who gets one ─────────────────────────────────────────────────────────────────────────────────


def test_only_the_attempt_that_holds_the_job_gets_one(
    console: Console, ours: Tenant, runner: RunnerClient, claim: Claim
) -> None:
    another = console.new_runner(ours, "eu-2")
    assert code_of(ask_for_token(another, claim)) == "stale_claim"
    use(ours, new_identity(ours, name="Second"), ours.new_spec("second"))
    ours.request(spec=ours.organization.specs.get(slug="second"))
    second = another.take_and_start()
    # The claim of one job opens no other job, whoever shows it.
    for thief, job in ((another, claim), (runner, second)):
        answer = thief.post(
            f"/api/jobs/{job.job_id}/identity-token",
            json={"claim_id": second.claim_id if job is claim else claim.claim_id},
        )
        assert (answer.status_code, code_of(answer)) == (409, "stale_claim")
    first, again = (jwt.decode(t, options={"verify_signature": False})
                    for t in (token_of(runner, claim), token_of(another, second)))  # fmt: skip
    assert first["sub"] != again["sub"]
    assert first["job_id"] != again["job_id"]


def test_people_get_none(console: Console, ours: Tenant, claim: Claim) -> None:
    path, body = f"/api/jobs/{claim.job_id}/identity-token", {"claim_id": claim.claim_id}
    for role in ("viewer", "operator", "admin"):
        assert console.person(ours, role).post(path, json=body).status_code == 404
    assert console.anybody().post(path, json=body).status_code in (401, 403, 404)


def test_none_after_the_end_and_none_when_the_lease_ran_out(
    ours: Tenant, runner: RunnerClient, claim: Claim
) -> None:
    JobClaim.objects.update(expires_at=Now())
    assert code_of(ask_for_token(runner, claim)) == "stale_claim"
    assert runner.heartbeat(claim).status_code == 200, "it was not taken back, and renews"
    assert ask_for_token(runner, claim).status_code == 200
    runner.succeed(claim)
    assert code_of(ask_for_token(runner, claim)) == "stale_claim"


def test_none_once_the_identity_no_longer_allows_it(ours: Tenant, runner: RunnerClient, claim: Claim) -> None:
    token_of(runner, claim)
    identity = ours.spec.identity
    assert identity is not None
    change_identity(identity=identity, changed_by=ours.admin, allowed=Allowed(environments=["production"]))
    answer = ask_for_token(runner, claim)
    assert (answer.status_code, code_of(answer)) == (403, "identity_not_allowed")


@pytest.mark.parametrize(("provider", "settings"), [("aws", {"method": "assume_role"}), ("ambient", {})])
def test_what_needs_no_token_gets_none(
    ours: Tenant, runner: RunnerClient, provider: str, settings: dict[str, Any]
) -> None:
    use(ours, new_identity(ours, provider, **settings))
    ours.request()
    claim = runner.take_and_start()
    assert claim.identity is not None
    assert claim.identity.audience == ""
    assert code_of(ask_for_token(runner, claim)) == "identity_needs_no_token"


def test_a_job_without_an_identity_gets_none(ours: Tenant, runner: RunnerClient) -> None:
    ours.request()
    assert code_of(ask_for_token(runner, runner.take_and_start())) == "identity_needs_no_token"


@pytest.mark.parametrize("body", [{}, {"claim_id": 7}, {"claim_id": "not one"}, []])
def test_a_request_that_makes_no_sense(runner: RunnerClient, claim: Claim, body: Any) -> None:
    answer = runner.post(f"/api/jobs/{claim.job_id}/identity-token", json=body)
    assert (answer.status_code, code_of(answer)) == (400, "invalid_message")


def test_it_is_renewed_while_it_holds_and_on_record_without_the_token(
    console: Console, runner: RunnerClient, claim: Claim
) -> None:
    tokens = [token_of(runner, claim) for _ in range(3)]
    ids = [jwt.decode(token, options={"verify_signature": False})["jti"] for token in tokens]
    assert len(set(ids)) == 3
    recorded = AuditEvent.objects.filter(action="identity.token_signed").order_by("id")
    assert [event.data["token_id"] for event in recorded] == ids
    assert {event.actor_name for event in recorded} == {"eu-1"}
    assert SignedToken.objects.get().count == 3
    stored = everything_stored()
    for token in tokens:
        assert token not in stored
        assert token.rpartition(".")[2] not in stored
    answer = ask_for_token(runner, claim)
    assert answer.headers["cache-control"] == "no-store"
    assert answer.json()["expires_in_seconds"] == 900


# ── keys ─────────────────────────────────────────────────────────────────────────────────────────


def test_the_documents_are_public_and_may_be_cached(console: Console, ours: Tenant) -> None:
    anybody = console.anybody()
    for path in ("/.well-known/openid-configuration", "/.well-known/jwks.json"):
        answer = anybody.get(path)
        assert answer.status_code == 200
        assert answer.headers["cache-control"] == "public, max-age=3600"
        assert "set-cookie" not in answer.headers
        assert anybody.request("HEAD", path).status_code == 200
    (key,) = published(anybody)
    assert (key["kty"], key["alg"], key["use"], len(key["kid"])) == ("RSA", "RS256", "sig", 43)
    assert not key.keys() & {"d", "p", "q", "dp", "dq", "qi"}, "the public part only"
    configuration = anybody.get("/.well-known/openid-configuration").json()
    assert configuration["issuer"] == ISSUER
    assert configuration["id_token_signing_alg_values_supported"] == ["RS256"]


def test_consoles_that_start_together_make_one_first_key(ours: Tenant) -> None:
    key = race(*[lambda: current_key().kid] * 4)
    assert len(set(key)) == 1
    assert SigningKey.objects.count() == 1


def test_the_private_key_is_sealed(console: Console, runner: RunnerClient, claim: Claim) -> None:
    token_of(runner, claim)
    stored = everything_stored()
    assert "PRIVATE KEY" not in stored
    assert b"PRIVATE KEY".hex() not in stored


def test_a_rotation_in_the_middle_of_a_job_does_not_disturb_it(
    console: Console, ours: Tenant, runner: RunnerClient, claim: Claim
) -> None:
    before = token_of(runner, claim)
    call_command("rotate_identity_keys")
    assert len(published(console.anybody())) == 2, "the next one is known before it signs"
    during = token_of(runner, claim)
    call_command("rotate_identity_keys", now=True)
    after = token_of(runner, claim)
    kids = [jwt.get_unverified_header(token)["kid"] for token in (before, during, after)]
    assert kids[0] == kids[1] != kids[2]
    for token in (before, during, after):
        assert verified(console, token, audience=STS)["job_id"] == claim.job_id
    assert len(published(console.anybody())) == 2
    assert runner.succeed(claim).status_code == 200


def test_a_stolen_key_is_gone_at_once(console: Console, runner: RunnerClient, claim: Claim) -> None:
    stolen = token_of(runner, claim)
    call_command("rotate_identity_keys", revoke=True)
    kid = jwt.get_unverified_header(stolen)["kid"]
    assert kid not in {key["kid"] for key in published(console.anybody())}
    assert verified(console, token_of(runner, claim), audience=STS)


def test_the_janitor_rotates_when_it_is_time_and_not_before(console: Console, ours: Tenant) -> None:
    (first,) = published(console.anybody())
    rotate_when_due()
    assert len(published(console.anybody())) == 1
    SigningKey.objects.update(current_since=Now() - ROTATE_AFTER)
    rotate_when_due()
    rotate_when_due()
    assert published(console.anybody())[0]["kid"] == first["kid"]
    following = SigningKey.objects.get(status=KeyStatus.NEXT)
    SigningKey.objects.filter(pk=following.pk).update(created_at=Now() - PUBLISHED_BEFORE_USE)
    rotate_when_due()
    assert SigningKey.objects.get(status=KeyStatus.CURRENT).pk == following.pk
    retired = SigningKey.objects.get(status=KeyStatus.RETIRED)
    assert retired.pk == first["kid"]
    rotate_when_due()
    assert len(published(console.anybody())) == 2, "tokens of the first one are still under way"
    SigningKey.objects.filter(pk=retired.pk).update(retired_at=Now() - ROTATE_AFTER)
    rotate_when_due()
    assert [key["kid"] for key in published(console.anybody())] == [following.pk]
