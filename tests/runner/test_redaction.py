"""Secrets are masked in each form in which they may be printed."""

from __future__ import annotations

import base64
import json
import re
import string
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote, quote_plus

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runner.log import LogPipe
from runner.protocol import LogAnswer
from runner.redact import MASK, Redactor, SplitRedactor
from runner.terraform.output import OutputReader
from runner.terraform.process import LineSplitter

SECRET = 'pä$$ "wörd"/<&>+=\\'


@pytest.mark.parametrize(
    "printed",
    [
        SECRET,
        quote(SECRET),
        quote(SECRET, safe=""),
        quote_plus(SECRET),
        quote(SECRET, safe="$&+:=@"),
        quote(SECRET, safe="$&+,;="),
        re.sub("%..", lambda escape: escape[0].lower(), quote(SECRET, safe="!'()*")),
        json.dumps(SECRET)[1:-1].replace("/", "\\/"),
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


@pytest.mark.parametrize("secret", ["abcd", "abcde", "hunter2"])
def test_a_short_secret_is_masked_in_base64_without_its_padding(secret: str) -> None:
    encoded = base64.b64encode(secret.encode()).decode().rstrip("=")
    assert Redactor([secret]).mask(f"it is {encoded}") == f"it is {MASK}"


@pytest.mark.parametrize("width", [64, 76])
def test_a_long_secret_is_masked_in_each_line_of_its_base64(width: int) -> None:
    """Encode it like `echo $TOKEN | base64`."""
    secret = "".join(f"{number:03}-" for number in range(50))
    encoded = base64.b64encode(secret.encode() + b"\n").decode()
    lines = [encoded[start : start + width] for start in range(0, len(encoded), width)]
    masked = [Redactor([secret]).mask(line) for line in lines]
    assert len(lines) > 2
    assert all(len(line.replace(MASK, "")) <= 12 for line in masked), masked


def test_a_number_is_masked_as_terraform_writes_it() -> None:
    assert Redactor([1e10]).mask("of 10000000000 bytes") == f"of {MASK} bytes"


def test_a_secret_split_over_two_chunks_is_masked() -> None:
    redactor = Redactor(["correct-horse"])
    lines: list[str] = []
    splitter = LineSplitter(lambda whole: lines.extend(map(redactor.mask, whole)))
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


@pytest.fixture
def switching_often() -> Iterator[None]:
    usual = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(usual)


def test_secrets_are_learned_while_others_are_looked_for(switching_often: None) -> None:
    """Credentials are renewed from a thread of their own, in the middle of a provisioner's output."""
    redactor = Redactor(["correct-horse"])
    pieces = SplitRedactor(redactor)
    secrets = [f"{letter}{number}-a-secret" for number in range(8) for letter in string.ascii_letters]
    learning = threading.Thread(target=lambda: list(map(redactor.add, secrets)))
    learning.start()
    while learning.is_alive():
        assert pieces.mask("one", f"ends with {string.ascii_letters}", thorough=True)
        assert pieces.mask("one", "it is correct-", thorough=True) == f"it is {MASK}"
        assert pieces.mask("one", "horse!", thorough=True) == f"{MASK}!"
    assert redactor.mask(" ".join(secrets)) == " ".join([MASK] * len(secrets))


def test_half_a_character_hides_no_secret() -> None:
    """JSON can say it, and UTF-8 cannot."""
    redactor = Redactor(["correct-horse", "half\ud800secret"])
    assert redactor.mask("\udfffcorrect-horse\ud83d") == f"\udfff{MASK}\ud83d"
    assert redactor.mask_all({"a": ["half\ud800secret"]}) == {"a": [MASK]}


@given(secret=st.text(min_size=3), before=st.text(), after=st.text())
def test_no_text_around_a_secret_keeps_it_from_being_masked(secret: str, before: str, after: str) -> None:
    masked = Redactor([secret]).mask(before + secret + after)
    assert MASK in masked or secret in MASK


class Sent:
    """The text that leaves the runner for what a command printed."""

    def __init__(self, folder: Path, *secrets: str) -> None:
        self.lines: list[dict[str, Any]] = []
        redactor, reader = Redactor(secrets), OutputReader()
        self._pipe = LogPipe(send=self._send, first_seq=1, redactor=redactor, spool_dir=folder)
        self._pipe.start()
        self._splitter = LineSplitter(lambda lines: self._pipe.write_events(map(reader.read, lines), lines))

    def of(self, *chunks: str) -> list[dict[str, Any]]:
        for chunk in chunks:
            self._splitter.feed(chunk.encode())
        self._splitter.end()
        self._pipe.close()
        return self.lines

    def _send(self, first_seq: int, lines: list[bytes]) -> LogAnswer:
        self.lines += map(json.loads, lines)
        return LogAnswer(next_seq=first_seq + len(lines))


def message_line(text: str, **more: Any) -> str:
    return json.dumps({"@level": "info", "@message": text, **more}) + "\n"


def printed_by(resource: str, text: str) -> str:
    hook = {"resource": {"addr": resource}, "provisioner": "local-exec", "output": text}
    return message_line(f"{resource}: (local-exec): {text}", type="provision_progress", hook=hook)


@pytest.mark.parametrize(
    ("pieces", "expected"),
    [
        (["it is correct-", "horse!"], [f"it is {MASK}", f"{MASK}!"]),
        (["it is corr", "ect-", "horse!"], [f"it is {MASK}", MASK, f"{MASK}!"]),
        (["it is co", "rrect-horse"], ["it is co", MASK]),
        (["all correct", "and fine"], [f"all {MASK}", "and fine"]),
        (["it is c", "lear"], ["it is c", "lear"]),
        (["correct-horse", "correct-horse"], [MASK, MASK]),
        (["ö ist pässw", "ö", "rter-ü!"], [f"ö ist {MASK}", MASK, f"{MASK}!"]),
        (["ö ist p", "ässwörter-ü!"], ["ö ist p", f"{MASK}!"]),
    ],
)
def test_a_secret_that_a_provisioner_prints_piece_by_piece_is_masked(
    tmp_path: Path, pieces: list[str], expected: list[str]
) -> None:
    """Terraform makes a line of what there is when a program pauses; another resource's may come between."""
    lines = [line for piece in pieces for line in (printed_by("one.a", piece), printed_by("one.b", "-"))]
    sent = Sent(tmp_path, "correct-horse", "pässwörter-ü").of("".join(lines))
    messages = [line["message"].removeprefix("one.a: (local-exec): ") for line in sent[::2]]
    assert messages == expected


def test_one_line_with_a_secret_among_many_is_masked_and_the_others_stay_as_they_are(tmp_path: Path) -> None:
    lines = [message_line(f"line {number}") for number in range(400)]
    lines[123] = message_line("the correct-horse line")
    lines[124] = "plain correct-horse\n"
    text = "".join(lines)
    sent = Sent(tmp_path, "correct-horse").of(text[:5000], text[5000:9001], text[9001:])
    messages = [line["message"] for line in sent]
    assert messages[122:126] == ["line 122", f"the {MASK} line", f"plain {MASK}", "line 125"]
    assert len(messages) == 400


@pytest.mark.parametrize("printed", [r"a\/long\/secret", "a/\\u006cong/secret", "a/long/\\u0073ecret"])
def test_a_secret_is_found_behind_whatever_escapes_it_is_printed_with(tmp_path: Path, printed: str) -> None:
    hook = '{"resource":{"addr":"x[\\"' + printed + '\\"]"},"action":"create"}'
    line = f'{{"@level":"info","@message":"it is {printed}!","type":"apply_start","hook":{hook}}}\n'
    (sent,) = Sent(tmp_path, "a/long/secret").of(line)
    assert sent["message"] == f"it is {MASK}!"
    assert sent["data"]["address"] == f'x["{MASK}"]'


def test_a_secret_that_only_the_told_form_of_a_diagnostic_holds_is_masked(tmp_path: Path) -> None:
    diagnostic = {"severity": "error", "summary": "No", "detail": "it is correct  horse battery"}
    (sent,) = Sent(tmp_path, "correct horse").of(message_line("No", type="diagnostic", diagnostic=diagnostic))
    assert sent["message"] == f"Error: No: it is {MASK} battery"


def in_base64(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


@pytest.mark.parametrize("encode", [str, quote, json.dumps, in_base64])
def test_a_diagnostic_holds_a_secret_in_no_form_and_in_no_part(
    tmp_path: Path, encode: Callable[[str], str]
) -> None:
    printed = encode("correct & horse")
    diagnostic = {
        "severity": "error", "summary": f"No {printed}", "detail": f"It is\n{printed}.", "address": "a.b",
        "range": {"filename": "main.tf", "start": {"line": 7}},
        "snippet": {"code": f"x = {printed}", "values": [{"traversal": "x", "statement": f"is {printed}"}]},
    }  # fmt: skip
    (sent,) = Sent(tmp_path, "correct & horse").of(
        message_line("No", type="diagnostic", diagnostic=diagnostic)
    )
    assert printed.strip('"') not in json.dumps(sent)
    assert sent["message"].count(MASK) == 2
    assert MASK in sent["data"]["snippet"]["code"]
    assert MASK in sent["data"]["snippet"]["values"][0]["statement"]


def test_terraform_composes_letters_and_the_secret_is_found_all_the_same() -> None:
    decomposed = "passwo\u0308rd"
    assert Redactor([decomposed]).mask("it is passw\u00f6rd") == f"it is {MASK}"


@pytest.mark.parametrize("depth", [700, 3_000])
def test_a_secret_in_data_that_is_nested_beyond_masking_goes_with_the_rest(
    tmp_path: Path, depth: int
) -> None:
    """Each Python has its own limit: such a line is masked, cut, or kept as text."""
    outputs = '{"deep":{"value":' + "[" * depth + '"correct-horse"' + "]" * depth + "}}"
    line = f'{{"@level":"info","@message":"Outputs: 1","type":"outputs","outputs":{outputs}}}\n'
    (sent,) = Sent(tmp_path, "correct-horse").of(line)
    assert "Outputs: 1" in sent["message"]
    assert "correct-horse" not in repr(sent)


def test_a_line_that_is_nested_beyond_decoding_is_kept_as_it_came(tmp_path: Path) -> None:
    line = '{"@message":' + "[" * 100_000
    (sent,) = Sent(tmp_path).of(line + "\n")
    assert sent["message"].startswith('{"@message":[[[')
