"""A plan on a page: its sentence, its glyphs, and values before and after."""

import json
import re
from functools import lru_cache
from html import escape
from typing import Any

from django import template
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString

from console.plans.changes import UNKNOWN
from runner.protocol import MASK, MASK_CHANGED

register = template.Library()

#: The same glyphs everywhere, also in resource-progress.js.
GLYPHS = {
    "create": "+",
    "update": "~",
    "replace": "±",
    "delete": "−",
    "import": "←",
    "move": "→",
    "read": "↓",
    "forget": "⊘",
    "noop": "=",
}

HEADINGS = {
    "delete": "Destroy",
    "replace": "Replace",
    "forget": "Forget, and leave as it is",
    "update": "Change in place",
    "create": "Add",
    "import": "Import",
    "move": "Move",
    "read": "Read",
}

EFFECTS = (
    ("destroy", "destroys"),
    ("replace", "replaces"),
    ("change", "changes"),
    ("add", "adds"),
    ("import", "imports"),
    ("move", "moves"),
)
RISKY = (("destroy", "DESTROYED"), ("replace", "REPLACED"))
CALM = (("add", "added"), ("change", "changed in place"), ("import", "imported"), ("move", "moved"))
COUNTED = (
    ("destroy", "delete", "to destroy"),
    ("replace", "replace", "to replace"),
    ("change", "update", "to change"),
    ("add", "create", "to add"),
    ("import", "import", "to import"),
    ("move", "move", "to move"),
)

NOTHING = "Nothing will change: the infrastructure is as the Spec describes it."

#: A collection that is shorter is shown on one line.
ONE_LINE_CHARS = 80

#: What fits on the line of a change that is not open.
MAX_PREVIEW = 240

#: More of a value than this helps nobody; the raw plan has all of it.
MAX_CHARS = 2_000

#: Made once: `json.dumps` makes one for each call, which takes as long as encoding a small value.
AS_JSON = json.JSONEncoder(ensure_ascii=False)

#: Inside a list or a map; in front of the last quote of a text that quotes them there is a backslash.
NO_VALUES = re.compile(f'"({"|".join(map(re.escape, (UNKNOWN, MASK, MASK_CHANGED)))})"')

#: Marks that reorder text would let a value show as another: shown, not obeyed.
REORDERING = re.compile("[\u202a-\u202e\u2066-\u2069]")


@register.simple_tag
@lru_cache(maxsize=64)
def glyph(action: str) -> SafeString:
    return format_html('<span class="glyph {}" aria-hidden="true">{}</span>', action, GLYPHS.get(action, "="))


@register.filter
def heading(action: str) -> str:
    return HEADINGS.get(action, action.capitalize())


@register.simple_tag
def verdict(summary: dict[str, int]) -> str:
    """Summarize the plan in a sentence; changes that cannot be undone come first."""
    risky = [(summary.get(key, 0), word) for key, word in RISKY if summary.get(key)]
    calm = [(summary.get(key, 0), word) for key, word in CALM if summary.get(key)]
    if not risky and not calm:
        return NOTHING
    sentences = []
    if risky:
        sentences.append(_sentence([(count, _alarming(word)) for count, word in risky], noun=True))
    if calm:
        sentences.append(_sentence(calm, noun=not risky))
    return format_html_join(" ", "{}", ((sentence,) for sentence in sentences))


@register.simple_tag
def counts(summary: dict[str, int] | None) -> SafeString:
    """The numbers of a plan as glyph and figure, without those that are nought."""
    numbers = summary or {}
    figures = [(glyph(action), numbers[key], word) for key, action, word in COUNTED if numbers.get(key)]
    if not figures:
        return format_html('<span class="soft">{}</span>', "no changes")
    return format_html(
        '<span class="counts">{}</span>', format_html_join("", "<span>{}{} {}</span>", figures)
    )


@register.simple_tag
def done(summary: dict[str, int] | None) -> str:
    """Summarize an apply in words, leaving out zero counts."""
    words = (("add", "added"), ("change", "changed"), ("replace", "replaced"), ("destroy", "destroyed"))
    parts = [f"{count} {word}" for key, word in words if (count := (summary or {}).get(key))]
    return ", ".join(parts) or "nothing had to change"


@register.filter
def change_count(count: int) -> str:
    return "1 change" if count == 1 else f"{count} changes"


@register.simple_tag
def effect(summary: dict[str, int]) -> str:
    """Describe the effect of applying as the end of a sentence: «destroys 1 and adds 2 resources»."""
    parts = [(summary[key], f"{verb} {summary[key]}") for key, verb in EFFECTS if summary.get(key)]
    if not parts:
        return "writes the outputs and changes no resource"
    *most, last = [words for _, words in parts]
    noun = "resource" if parts[-1][0] == 1 else "resources"
    return f"{', '.join(most)} and {last} {noun}" if most else f"{last} {noun}"


#: Texts rather than templates or `format_html`: a page has hundreds of attributes. Each value passes `_text`.
ARROW = '<td class="arrow" aria-hidden="true">→</td>'
FORCES = '<span class="forces">forces the replacement</span>'
TWO_HEADS = '<th>Before</th><th class="arrow"><span class="visually-hidden">becomes</span></th><th>After</th>'


@register.simple_tag
def attribute_table(change: dict[str, Any]) -> SafeString:
    """Every attribute that changes: before and after, or the one side that there is."""
    attributes, action = change["attributes"], change["action"]
    if not attributes:
        return SafeString('<p class="soft card-body">No attribute changes.</p>')
    if action == "create":
        rows = [
            f'<tr>{_name_cell(attribute)}<td data-label="">{_after(attribute)}</td></tr>'
            for attribute in attributes
        ]
        return _table("<col>", ' class="visually-hidden"', "<th>After</th>", rows)
    if action == "delete":
        rows = [
            f"<tr>{_name_cell(attribute)}"
            f'<td class="before" data-label="before">{_before(attribute)}</td></tr>'
            for attribute in attributes
        ]
        return _table("<col>", ' class="visually-hidden"', "<th>Before</th>", rows)
    rows = [
        f'<tr>{_name_cell(attribute)}<td class="before" data-label="before">{_before(attribute)}</td>{ARROW}'
        f'<td data-label="after">{_after(attribute)}</td></tr>'
        for attribute in attributes
    ]
    return _table('<col><col class="arrow"><col>', "", TWO_HEADS, rows)


def _table(columns: str, head: str, heads: str, rows: list[str]) -> SafeString:
    return SafeString(
        f'<table class="attributes"><colgroup><col class="name">{columns}</colgroup>'
        f"<thead{head}><tr><th>Attribute</th>{heads}</tr></thead><tbody>{''.join(rows)}</tbody></table>"
    )


def _name_cell(attribute: dict[str, Any]) -> str:
    return f"<td>{_text(attribute['name'])}{FORCES if attribute['forces_replacement'] else ''}</td>"


@register.simple_tag
def before(attribute: dict[str, Any]) -> SafeString:
    return SafeString(_before(attribute))


@register.simple_tag
def after(attribute: dict[str, Any]) -> SafeString:
    return SafeString(_after(attribute))


@register.filter
def value(value: Any) -> SafeString:
    """A value as it would be written in a configuration."""
    return SafeString(_value(_clipped(_as_text(value))))


def _before(attribute: dict[str, Any]) -> str:
    if attribute["before"] is None:
        return ""
    if attribute["before"] == MASK:
        return _special(MASK)
    return _compare_lines(attribute["before"], attribute["after"])


def _after(attribute: dict[str, Any]) -> str:
    if attribute["after_unknown"]:
        return _special(UNKNOWN)
    if attribute["after"] is None:
        return ""
    if attribute["after"] in (MASK, MASK_CHANGED):
        return _special(attribute["after"])
    return _compare_lines(attribute["after"], attribute["before"])


def _text(text: str) -> str:
    """The only way of a value into the page."""
    return escape(harmless(text))


def _value(text: str) -> str:
    return f'<span class="value">{_text(text)}</span>'


@register.filter
def shown_value(value: Any) -> str:
    """An output as people want to read it: a text without its quotes, a small collection on one line."""
    return harmless(_clipped(value if isinstance(value, str) else _as_text(value)))


@register.filter
def is_long(value: Any) -> bool:
    """Return true for a value that is clipped, and too long for the page to hold for copying."""
    return len(plain_value(value)) > MAX_CHARS


@register.filter
def preview(attributes: list[dict[str, Any]]) -> str:
    """The values of a change that are known, on one line, for those who read without opening it."""
    known_after = [
        attribute
        for attribute in attributes
        if attribute["after"] is not None and not attribute["after_unknown"]
    ]
    values = [attribute for attribute in known_after if attribute["after"] not in (MASK, MASK_CHANGED)]
    texts: list[str] = []
    for attribute in values:
        if sum(map(len, texts)) > MAX_PREVIEW:
            break
        texts.append(f"{attribute['name']} = {_clipped(_line(attribute['after']))}")
    return harmless(", ".join(texts))[:MAX_PREVIEW]


@register.filter
def plain_value(value: Any) -> str:
    """The value itself, to be copied: a text without its quotes."""
    return value if isinstance(value, str) else json.dumps(value, indent=2, ensure_ascii=False)


@register.filter
def harmless(text: str) -> str:
    return text if text.isascii() else REORDERING.sub(lambda mark: f"<U+{ord(mark.group()):X}>", text)


def _clipped(text: str) -> str:
    if len(text) <= MAX_CHARS:
        return text
    return f"{text[:MAX_CHARS]} … ({len(text) - MAX_CHARS:,} more characters)"


def _line(value: Any) -> str:
    return _without_quotes(AS_JSON.encode(value))


def _without_quotes(written: str) -> str:
    """Remove the quotes from words that are no values: `[(known after apply)]`."""
    return NO_VALUES.sub(r"\1", written) if '"(' in written else written


def _as_text(value: Any) -> str:
    """Texts of several lines as they are, small collections on one line, larger ones on several."""
    if isinstance(value, str) and "\n" in value:
        return value
    line = _line(value)
    if len(line) < ONE_LINE_CHARS or not isinstance(value, dict | list):
        return line
    return _without_quotes(json.dumps(value, indent=2, ensure_ascii=False))


def _compare_lines(value: Any, other: Any) -> str:
    """The value, with those of its lines marked that the other side does not have."""
    text = _clipped(_as_text(value))
    if "\n" not in text or other is None:
        return _value(text)
    lines, others = text.split("\n"), set(_clipped(_as_text(other)).split("\n"))
    marked = [f'<span class="{"" if line in others else "differs"}">{_text(line)}</span>' for line in lines]
    return f'<span class="value">{chr(10).join(marked)}</span>'


def _alarming(word: str) -> SafeString:
    return format_html('<strong class="risk">{}</strong>', word)


def _special(words: str) -> str:
    return f'<span class="value special">{_text(words)}</span>'


def _sentence(counted: list[tuple[int, str]], *, noun: bool) -> SafeString:
    """«2 resources will be added, 1 changed in place and 1 moved.»"""
    clauses = [format_html("{} {}", number, word) for number, word in counted]
    number, word = counted[0]
    thing = ("resource " if number == 1 else "resources ") if noun else ""
    clauses[0] = format_html("{} {}will be {}", number, thing, word)
    *most, last = clauses
    if not most:
        return format_html("{}.", last)
    return format_html("{} and {}.", format_html_join(", ", "{}", ((clause,) for clause in most)), last)
