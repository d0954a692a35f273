"""Tags that show the outcome of a test and the names around identities."""

from django import template
from django.utils.html import format_html
from django.utils.safestring import SafeString

from console.identities.models import ANY, CloudIdentity
from console.pages.templatetags.parts import icon

register = template.Library()

#: Each outcome with a shape, a word and a colour of its own.
OUTCOMES = {"pass": ("success", "passed"), "fail": ("failed", "failed"), "unknown": ("queued", "unknown")}
ABBREVIATIONS = {"vpc": "VPC", "arn": "ARN", "id": "id"}


@register.simple_tag
def check_outcome(outcome: str) -> SafeString:
    shape, word = OUTCOMES.get(outcome, OUTCOMES["unknown"])
    return format_html('<span class="status is-{}">{}{}</span>', shape, icon(shape), word)


@register.simple_tag
def test_status(identity: CloudIdentity) -> SafeString:
    if identity.test_passed is None:
        return format_html('<span class="status is-queued">{}{}</span>', icon("queued"), "not tested")
    return check_outcome("pass" if identity.test_passed else "fail")


@register.filter
def in_words(name: str) -> str:
    """Return a name such as `hosted_zone` as people say it."""
    words = str(name).replace("_", " ")
    return ABBREVIATIONS.get(words, words)


@register.filter
def names(allowed: list[str], everything: str) -> str:
    if ANY in allowed:
        return everything
    return ", ".join(allowed) or "none"
