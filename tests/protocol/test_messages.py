"""The messages mean to the code what their golden forms say."""

from __future__ import annotations

import dataclasses

import pytest

from runner.protocol import EMPTY_CHAIN, ProtocolError, extend_chain, from_wire, to_wire
from tests.protocol.golden_messages import FOLDER, golden, message_types

NAMES = sorted(message_types())


def test_each_message_of_the_protocol_has_its_golden_form_and_nothing_else_has() -> None:
    assert sorted(file.stem for file in FOLDER.iterdir()) == NAMES


@pytest.mark.parametrize("name", NAMES)
def test_a_golden_message_is_read_and_written_without_a_change(name: str) -> None:
    assert to_wire(from_wire(message_types()[name], golden(name))) == golden(name)


@pytest.mark.parametrize("name", NAMES)
def test_an_older_side_ignores_what_a_newer_one_adds(name: str) -> None:
    kind = message_types()[name]
    assert from_wire(kind, {**golden(name), "of_the_future": {"a": 1}}) == from_wire(kind, golden(name))


@pytest.mark.parametrize("name", NAMES)
def test_a_missing_field_is_named_unless_it_has_a_default(name: str) -> None:
    kind = message_types()[name]
    for field in dataclasses.fields(kind):
        message = {key: value for key, value in golden(name).items() if key != field.name}
        if field.default is dataclasses.MISSING and field.default_factory is dataclasses.MISSING:
            with pytest.raises(ProtocolError, match=f"^{field.name}: is required"):
                from_wire(kind, message)
        else:
            from_wire(kind, message)


@pytest.mark.parametrize("name", NAMES)
def test_a_field_of_the_wrong_type_is_named(name: str) -> None:
    kind = message_types()[name]
    for field in dataclasses.fields(kind):
        with pytest.raises(ProtocolError, match=f"^{field.name}"):
            from_wire(kind, {**golden(name), field.name: object()})


def test_the_receipt_vouches_for_the_batch() -> None:
    lines = [line["message"] for line in golden("LogBatch")["lines"]]
    receipt = golden("LogReceipt")
    assert receipt["chain"] == extend_chain(EMPTY_CHAIN, lines)
    assert receipt["next_seq"] == golden("LogBatch")["first_seq"] + len(lines)
