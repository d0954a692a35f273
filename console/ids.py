"""Ids: UUIDv7, so that the order of ids is the order of time."""

from datetime import datetime
from uuid import UUID

from uuid_utils.compat import uuid7


def new_id() -> UUID:
    return uuid7()


def first_id_at(moment: datetime) -> UUID:
    """The smallest id that could have been made at that moment: a range of times is a range of ids."""
    milliseconds = int(moment.timestamp() * 1000)
    return UUID(int=max(0, milliseconds) << 80 | 0x7 << 76 | 0b10 << 62)
