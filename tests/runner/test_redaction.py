"""Secrets are masked in each form in which they may be printed."""

from __future__ import annotations

import base64
import json
from urllib.parse import quote, quote_plus

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runner.process import LineSplitter
from runner.redact import MASK, Redactor

SECRET = 'pä$$ "wörd"/<&>+=\\'


@pytest.mark.parametrize(
    "printed",
    [
        SECRET,
        quote(SECRET),
        quote(SECRET, safe=""),
        quote_plus(SECRET),
        json.dumps(SECRET)[1:-1],
        json.dumps(SECRET, ensure_ascii=False)[1:-1],
        json.dumps(json.dumps(SECRET)),
        json.dumps(SECRET, ensure_ascii=False)[1:-1]
        .replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026"),
        base64.b64encode(SECRET.encode()).decode(),
        base64.urlsafe_b64encode(SECRET.encode()).decode(),
        base64.b64encode(SECRET.encode()).decode().rstrip("="),
    ],
)  # fmt: skip
def test_every_form_of_a_secret_is_masked(printed: str) -> None:
    masked = Redactor([SECRET]).mask(f"before {printed} after")
    assert MASK in masked
    assert "rd" not in masked.replace(MASK, "")


@pytest.mark.parametrize("user", ["u", "us", "use", "user"])
def test_a_secret_inside_a_base64_text_is_masked(user: str) -> None:
    header = base64.b64encode(f"{user}:a-long-password".encode()).decode()
    masked = Redactor(["a-long-password"]).mask(f"Authorization: Basic {header}")
    assert "YS1sb25n" not in masked
    assert MASK in masked


def test_a_secret_split_over_two_chunks_is_masked() -> None:
    redactor = Redactor(["correct-horse"])
    lines: list[str] = []
    splitter = LineSplitter(lambda line: lines.append(redactor.mask(line)))
    for chunk in (b"it is corr", b"ect-", b"horse!\n"):
        splitter.feed(chunk)
    assert lines == [f"it is {MASK}!"]


def test_each_line_of_a_secret_of_several_lines_is_masked() -> None:
    key = "-----BEGIN KEY-----\nMIIEpAIBAAKCAQEA75\nq8vXyZ\n-----END KEY-----\n"
    redactor = Redactor([key])
    for line in key.splitlines():
        assert redactor.mask(f"(local-exec): {line}") == f"(local-exec): {MASK}"
    assert redactor.mask(key.strip()) == MASK


def test_overlapping_secrets_leave_nothing_of_either() -> None:
    assert Redactor(["abcdef", "defghi"]).mask("<abcdefghi>") == f"<{MASK}>"


def test_leaves_of_lists_and_maps_are_secrets_and_small_words_are_not() -> None:
    redactor = Redactor([{"user": "admin-user", "ports": [54321, 2], "tls": True, "none": None}])
    assert redactor.mask("admin-user 54321 2 True None") == f"{MASK} {MASK} 2 True None"
    assert redactor.mask_all({"port": 54321, "list": ["admin-user"], "ok": True}) == {
        "port": MASK, "list": [MASK], "ok": True,
    }  # fmt: skip


def test_secrets_can_be_learned_later() -> None:
    redactor = Redactor()
    assert redactor.mask("generated-password") == "generated-password"
    redactor.add("generated-password")
    assert redactor.mask("generated-password") == MASK


@given(secret=st.text(min_size=3), before=st.text(), after=st.text())
def test_no_text_around_a_secret_keeps_it_from_being_masked(secret: str, before: str, after: str) -> None:
    masked = Redactor([secret]).mask(before + secret + after)
    assert MASK in masked or secret in MASK
