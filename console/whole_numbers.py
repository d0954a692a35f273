"""Whole numbers in what people and programs send: addresses, forms, headers."""


def whole_number(text: str | None, *, digits: int = 9) -> int | None:
    """None where the text is no number of at most so many digits.

    Nine digits fit into an integer column, eighteen into a big one.
    """
    if text and text.isascii() and text.isdigit() and len(text) <= digits:
        return int(text)
    return None
