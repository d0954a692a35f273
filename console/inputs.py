"""Clean inputs of people and programs: whole numbers in URLs, forms and headers, and text without NUL."""

from typing import Any


def whole_number(text: str | None, *, digits: int = 9) -> int | None:
    """Return the number, or None unless the text is a number of at most so many digits.

    Nine digits fit into an integer column, eighteen into a big one.
    """
    if text and text.isascii() and text.isdigit() and len(text) <= digits:
        return int(text)
    return None


def without_nul(value: Any) -> Any:
    """Replace NUL, which PostgreSQL cannot store: one in an error message must not lose a report."""
    match value:
        case str():
            return value.replace("\0", "\N{REPLACEMENT CHARACTER}")
        case list():
            return [without_nul(item) for item in value]
        case dict():
            return {without_nul(key): without_nul(item) for key, item in value.items()}
    return value
