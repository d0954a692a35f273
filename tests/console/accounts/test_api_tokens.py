"""API tokens: shown once, kept as a hash, recognized wherever they leak."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.db.models.functions import Now

from console.accounts.authentication import find_token
from console.accounts.models import ApiToken
from console.accounts.services import create_api_token, revoke_api_token
from console.accounts.tokens import ANY_TOKEN, new_token
from console.audit.models import AuditEvent
from tests.people import Tenant


def test_a_token_is_found_by_its_text_which_is_stored_nowhere(ours: Tenant) -> None:
    token, text = create_api_token(user=ours.operator, organization=ours.organization, name="ci")
    assert find_token(text) == token
    assert text not in str(list(ApiToken.objects.values()))
    assert find_token(text[:-1]) is None
    assert find_token("") is None


def test_it_is_no_longer_found_when_expired_revoked_or_its_owner_left(ours: Tenant) -> None:
    token, text = create_api_token(
        user=ours.operator, organization=ours.organization, name="ci", valid_for=timedelta(hours=1)
    )
    assert find_token(text)
    ApiToken.objects.update(expires_at=Now() - timedelta(seconds=1))
    assert find_token(text) is None
    ApiToken.objects.update(expires_at=None)
    ours.operator.is_active = False
    ours.operator.save(update_fields=["is_active"])
    assert find_token(text) is None
    ours.operator.is_active = True
    ours.operator.save(update_fields=["is_active"])
    revoke_api_token(token=token, revoked_by=ours.admin)
    assert find_token(text) is None
    assert AuditEvent.objects.filter(action="api_token.revoked", actor_id=ours.admin.pk).exists()


def test_when_it_was_used_is_noted_now_and_then(ours: Tenant) -> None:
    _, text = create_api_token(user=ours.operator, organization=ours.organization, name="ci")
    find_token(text)
    first = ApiToken.objects.get().last_used_at
    assert first is not None
    find_token(text)
    assert ApiToken.objects.get().last_used_at == first


@pytest.mark.parametrize("prefix", ["slr", "slt", "slu", "sls"])
def test_every_token_of_ours_is_recognized_in_text(prefix: str) -> None:
    for _ in range(50):
        token = new_token(prefix)
        assert ANY_TOKEN.sub("•", f"x={token}!") == "x=•!"


def test_ordinary_words_are_not_taken_for_tokens() -> None:
    for text in ("slr_short", "aws_subnet.sls_network", "slug_of_the_organization"):
        assert ANY_TOKEN.search(text) is None
