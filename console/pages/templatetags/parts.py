"""The small parts that every page is made of: icons, and times that the browser keeps true."""

from datetime import datetime
from functools import lru_cache

from django import template
from django.templatetags.static import static
from django.utils import timezone
from django.utils.html import format_html
from django.utils.safestring import SafeString

from console.durations import duration

register = template.Library()


@register.simple_tag
@lru_cache(maxsize=256)  # a list has hundreds, of a dozen kinds
def icon(name: str) -> SafeString:
    return format_html(
        '<svg class="icon" aria-hidden="true"><use href="{}#{}"></use></svg>', static("icons.svg"), name
    )


@register.filter
def ago(at: datetime | None) -> SafeString | str:
    """Time since, with the exact time on hover; `<relative-time>` keeps it true."""
    if at is None:
        return ""
    return format_html(
        '<relative-time><time datetime="{}" title="{}">{}</time></relative-time>',
        at.isoformat(),
        at.strftime("%-d %B %Y, %H:%M:%S UTC"),
        age((timezone.now() - at).total_seconds()),
    )


@register.filter
def clock(at: datetime) -> SafeString:
    """The time of day; `<local-time>` says it in the reader's zone."""
    return format_html(
        '<local-time><time datetime="{}" title="{}">{}</time></local-time>',
        at.isoformat(),
        at.strftime("%-d %B %Y, %H:%M UTC"),
        at.strftime("%H:%M UTC"),
    )


@register.simple_tag
def short(text: str, what: str, length: int = 12) -> SafeString:
    """The beginning of something long that nobody reads; the whole of it on hover and on copy."""
    return format_html(
        '<copy-text class="short" what="{}" text="{}"><span class="mono" title="{}">{}</span></copy-text>',
        what,
        text,
        text,
        text[:length],
    )


@register.filter
def elapsed(since: datetime | None) -> SafeString | str:
    """The time since then, counting; `<elapsed-time>` counts."""
    if since is None:
        return ""
    seconds = max(0, int((timezone.now() - since).total_seconds()))
    counted = f"{seconds} s" if seconds < 60 else duration(seconds)
    return format_html('<elapsed-time since="{}">{}</elapsed-time>', since.isoformat(), counted)


@register.simple_tag
def took(begin: datetime | None, end: datetime | None) -> SafeString | str:
    """The time between two moments; counting while there is no end; nothing while there is no beginning."""
    if begin is None:
        return ""
    return elapsed(begin) if end is None else duration(end - begin)


register.filter(duration)


@register.filter
def until(at: datetime | None) -> SafeString | str:
    """Time until, or time since when it has passed."""
    return ago(at)


def age(seconds: float) -> str:
    """The same words as `ago` in relative-time.js."""
    if seconds <= -5:
        return f"in {age(-seconds).removesuffix(' ago')}"
    if seconds < 5:
        return "just now"
    for unit, size in (("d", 86_400), ("h", 3_600), ("min", 60)):
        if seconds >= size:
            return f"{int(seconds // size)} {unit} ago"
    return f"{int(seconds)} s ago"
