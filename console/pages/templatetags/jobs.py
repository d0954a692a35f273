"""A job's status on a page: a shape, a word and a colour, the same everywhere."""

from functools import lru_cache

from django import template
from django.template.context import Context
from django.utils.html import format_html
from django.utils.safestring import SafeString

from console.jobs.access import right_to_retry
from console.jobs.models import Job
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


@register.simple_tag(takes_context=True)
def may_retry(context: Context, job: Job) -> bool:
    """Answer as the door behind the Retry button does."""
    may: bool = context["shell"].may[right_to_retry(job)]
    return may
