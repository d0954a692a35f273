"""The hash of a snapshot: the same for the same content, wherever and however it was written down."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from django.db import connection
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from specs.snapshot import canonical, snapshot_hash

ROOT = Path(__file__).parents[2]

#: What jsonb can hold: no NUL and no half of a pair.
TEXT = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), max_size=20)
NUMBERS = st.integers() | st.floats(allow_nan=False, allow_infinity=False)
VALUES = st.recursive(
    st.none() | st.booleans() | NUMBERS | TEXT,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXT, inner, max_size=4),
    max_leaves=12,
)
DOCUMENTS = st.dictionaries(TEXT, VALUES, max_size=6)

#: No deadline: the machine may be busy with other tests.
examples = settings(
    max_examples=50, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)

#: One of everything that is easy to get wrong, and the hash that it had when this was written.
GOLDEN: dict[str, Any] = {
    "format": 1,
    "source": {"kind": "inline"},
    "files": {"main.tf": "# é ü 漢字 😀\u2028\n", "b": '\\ " / \t'},
    "variables": {"z": 1.0, "a": 0.1, "big": 1e23, "small": 1e-7, "no": None, "list": [1, [], {}, True]},
    "environment": {"É": "x", "E": "y", "😀": "after the letters", "\uffff": "and before that"},
    "secrets": {"variables": {"password": "ab" * 32}, "environment": {}},
    "terraform_version": None,
}
GOLDEN_SHA256 = "fd3539cf2a470048236a40b819552b3cfb87a7af43ee2bca1f079f3d4bb916f0"


@examples
@given(DOCUMENTS, st.randoms(use_true_random=False))
def test_the_order_of_keys_does_not_matter(document: dict[str, Any], random: Any) -> None:
    assert snapshot_hash(_shuffle(document, random)) == snapshot_hash(document)


@examples
@given(DOCUMENTS)
def test_what_json_writes_and_reads_is_the_same_content(document: dict[str, Any]) -> None:
    for text in (json.dumps(document), json.dumps(document, indent=3, ensure_ascii=False)):
        assert snapshot_hash(json.loads(text)) == snapshot_hash(document)
    assert snapshot_hash(json.loads(canonical(document))) == snapshot_hash(document)


@examples
@given(DOCUMENTS, DOCUMENTS)
def test_other_content_has_another_hash(first: dict[str, Any], other: dict[str, Any]) -> None:
    assume(_exact(first) != _exact(other))
    assert snapshot_hash(first) != snapshot_hash(other)


@examples
@given(DOCUMENTS, st.data())
def test_any_one_change_changes_the_hash(document: dict[str, Any], data: st.DataObject) -> None:
    key, value = data.draw(TEXT), data.draw(VALUES)
    changed_document = {**document, key: value}
    assume(_exact(changed_document) != _exact(document))
    assert snapshot_hash(changed_document) != snapshot_hash(document)


@examples
@given(document=DOCUMENTS)
def test_a_jsonb_column_gives_the_same_content_back(db: None, document: dict[str, Any]) -> None:
    with connection.cursor() as cursor:
        cursor.execute("SELECT %s::jsonb::text", [json.dumps(document)])
        row = cursor.fetchone()
    assert row is not None
    assert snapshot_hash(json.loads(row[0])) == snapshot_hash(document)


@pytest.mark.parametrize("not_json", [float("nan"), float("inf"), float("-inf")])
def test_what_is_no_json_has_no_hash(not_json: float) -> None:
    with pytest.raises(ValueError, match="not JSON compliant"):
        snapshot_hash({"value": not_json})


@pytest.mark.parametrize("version", ["3.11", "3.12", "3.13"])
def test_the_hash_is_the_same_in_every_python(version: str) -> None:
    """Each interpreter that is installed; the one that runs the suite in any case."""
    ours = f"{sys.version_info.major}.{sys.version_info.minor}"
    python = sys.executable if version == ours else shutil.which(f"python{version}")
    program = (
        "import json, sys; sys.path.insert(0, sys.argv[1]); from specs.snapshot import snapshot_hash;"
        "print(snapshot_hash(json.load(sys.stdin)))"
    )
    if python is None or not _runs(python, version):
        python = sys.executable
    command = [python, "-I", "-c", program, str(ROOT)]
    answer = subprocess.run(command, input=json.dumps(GOLDEN), capture_output=True, text=True, check=False)
    assert answer.stdout.strip() == GOLDEN_SHA256, answer.stderr


def test_one_number_has_one_spelling() -> None:
    assert canonical({"a": 1.0}) == canonical({"a": 1}) == b'{"a":1}'
    assert canonical({"a": -0.0}) == b'{"a":0}'
    assert canonical({"a": 1e23}) == b'{"a":100000000000000000000000}'
    assert canonical({"a": True}) != canonical({"a": 1})


def _runs(python: str, version: str) -> bool:
    """A shim may be on the path without its interpreter."""
    answer = subprocess.run([python, "--version"], capture_output=True, text=True, check=False)
    return answer.returncode == 0 and answer.stdout.startswith(f"Python {version}")


def _shuffle(value: Any, random: Any) -> Any:
    if isinstance(value, dict):
        items = [(key, _shuffle(item, random)) for key, item in value.items()]
        random.shuffle(items)
        return dict(items)
    return [_shuffle(item, random) for item in value] if isinstance(value, list) else value


def _exact(value: Any) -> Any:
    """A form in which two values are equal only when JSON's readers cannot tell them apart."""
    if isinstance(value, bool) or value is None or isinstance(value, str):
        return (type(value).__name__, value)
    if isinstance(value, int | float):
        return ("number", repr(float(value)) if isinstance(value, float) else _as_number(value))
    if isinstance(value, list):
        return ("list", tuple(map(_exact, value)))
    return ("dict", frozenset((key, _exact(item)) for key, item in value.items()))


def _as_number(value: int) -> str:
    """A whole number is the same as the float that is written like it."""
    try:
        near = float(value)
    except OverflowError:
        return str(value)
    return repr(near) if int(Decimal(repr(near))) == value else str(value)
