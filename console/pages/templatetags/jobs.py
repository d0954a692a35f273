"""A job's status on a page: a shape, a word and a colour, the same everywhere."""

from functools import lru_cache

from django import template
from django.utils.html import format_html
from django.utils.safestring import SafeString

from console.jobs.types import kind_of
from console.pages.templatetags.parts import icon

register = template.Library()


@register.simple_tag
@lru_cache(maxsize=256)
def status(name: str, large: bool = False) -> SafeString:
    """The shape and the word of a status, of a job's or a runner's."""
    shape = name.lower()
    size = " large" if large else ""
    return format_html('<span class="status is-{}{}">{}{}</span>', shape, size, icon(shape), name)


@register.filter
def type_name(type: str) -> str:
    """Name a job type as people call it; the API and programs use its code."""
    return kind_of(type).name
