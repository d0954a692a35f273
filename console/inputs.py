"""Reading what people and programs send: whole numbers in addresses, forms and headers, and clean text."""

from typing import Any


def whole_number(text: str | None, *, digits: int = 9) -> int | None:
    """None where the text is no number of at most so many digits.

    Nine digits fit into an integer column, eighteen into a big one.
    """
    if text and text.isascii() and text.isdigit() and len(text) <= digits:
        return int(text)
    return None


def without_nul(value: Any) -> Any:
    """PostgreSQL keeps every character but this one, and one in an error message must not lose a report."""
    match value:
        case str():
            return value.replace("\0", "\N{REPLACEMENT CHARACTER}")
        case list():
            return [without_nul(one) for one in value]
        case dict():
            return {without_nul(key): without_nul(one) for key, one in value.items()}
    return value
