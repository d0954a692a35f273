"""How templates are written: their lines fit, and a form that posts is an `{% action %}`."""

from __future__ import annotations

import re
from pathlib import Path

TEMPLATES = Path(__file__).parents[3] / "templates"
MAX_COLUMNS = 110

#: What sends the form around it to another address: a button and a listener, neither of which is a form.
SENDS_THE_FORM_AROUND_IT = {"specs/new_form.html": 2}


def templates() -> dict[str, str]:
    texts = {str(path.relative_to(TEMPLATES)): path.read_text() for path in sorted(TEMPLATES.rglob("*.html"))}
    assert texts
    return texts


def test_no_line_of_a_template_is_too_long() -> None:
    """The formatter leaves template tags as they are: they cannot be broken."""
    too_long = [
        f"{name}:{number}: {len(line)} columns"
        for name, text in templates().items()
        for number, line in enumerate(text.splitlines(), 1)
        if len(line) > MAX_COLUMNS
    ]
    assert too_long == []


def test_every_form_that_posts_is_an_action() -> None:
    written_by_hand = re.compile(r'method="?post|csrf_token', re.IGNORECASE)
    by_hand = [name for name, text in templates().items() if written_by_hand.search(text)]
    assert by_hand == []
    posting = {name: text.count("hx-post") for name, text in templates().items() if "hx-post" in text}
    assert posting == SENDS_THE_FORM_AROUND_IT
