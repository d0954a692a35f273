"""Checks that several clouds share: a value that the cloud would refuse is refused here, by its field."""

import re
from collections.abc import Callable
from typing import Any
from uuid import UUID

from console.errors import BadInput

MAX_REGIONS = 40


def ascii_pattern(pattern: str) -> re.Pattern[str]:
    """Compile a pattern that matches ASCII only, as clouds do: look-alike letters are refused."""
    return re.compile(pattern, re.ASCII)


def required_text(settings: dict[str, Any], name: str, example: str) -> str:
    value = settings.get(name)
    if not isinstance(value, str) or not value.strip():
        raise bad_setting(name, f"is required, such as {example}.")
    return value.strip()


def required_uuid(settings: dict[str, Any], name: str) -> str:
    text = required_text(settings, name, "00000000-0000-0000-0000-000000000000")
    try:
        value = UUID(text)
    except ValueError:
        raise wrong_value(name, text, "an id such as 72f988bf-86f1-41af-91ab-2d7cd011db47") from None
    if str(value) != text.lower():
        raise wrong_value(name, text, "an id such as 72f988bf-86f1-41af-91ab-2d7cd011db47")
    return str(value)


def checked_regions(
    settings: dict[str, Any], check: Callable[[str], str], *, default: list[str] | None = None
) -> list[str]:
    regions = settings.get("regions") or default or []
    if not isinstance(regions, list) or len(regions) > MAX_REGIONS:
        raise bad_setting("regions", f"expected a list of at most {MAX_REGIONS} regions.")
    for region in regions:
        if not isinstance(region, str):
            raise wrong_value("regions", region, "the name of a region")
    return list(dict.fromkeys(check(region) for region in regions))


def matching(name: str, pattern: re.Pattern[str], expected: str) -> Callable[[str], str]:
    """Return a check that a text of this setting matches the pattern."""

    def check(text: str) -> str:
        if not pattern.fullmatch(text):
            raise wrong_value(name, text, expected)
        return text

    return check


def unknown_setting(provider: str, name: str, names: tuple[str, ...]) -> BadInput:
    if name == "external_id":
        return BadInput(
            "external_id: Slipway makes it, so that no one can use another organization's. Leave it out.",
            field="settings.external_id",
        )
    return BadInput(
        f"{name[:60]}: is not a setting for {provider}. Use one of {', '.join(names)}.",
        field=f"settings.{name[:60]}",
    )


def wrong_value(name: str, value: Any, expected: str) -> BadInput:
    return bad_setting(name, f"{quoted(value)} is not {expected}.")


def bad_setting(name: str, sentence: str) -> BadInput:
    return BadInput(f"{name}: {sentence}", field=f"settings.{name}")


def quoted(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 80 else f"{text[:77]}…"
