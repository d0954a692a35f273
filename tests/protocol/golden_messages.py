"""Reads the golden messages: one file for each message of the protocol, named like it."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import Any

from runner import protocol

FOLDER = Path(__file__).parent / "golden"


def message_types() -> dict[str, type]:
    return {
        name: kind
        for name, kind in vars(protocol).items()
        if isinstance(kind, type) and dataclasses.is_dataclass(kind)
    }


def golden(name: str) -> dict[str, Any]:
    message: dict[str, Any] = json.loads((FOLDER / f"{name}.json").read_text())
    return message
