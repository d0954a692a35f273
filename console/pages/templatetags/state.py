"""State on a page: who wrote a version, who holds a lock and for how long."""

from typing import Any

from django import template

from console.pages.templatetags.plans import value as written_value
from console.state.locks import holder_name, operation_of
from console.state.models import Origin, StateLock, StateVersion
from runner.protocol import MASK

register = template.Library()


@register.filter
def written_by(version: StateVersion) -> str:
    """The job or the person, and how."""
    if version.job is not None:
        return str(version.job)
    name = version.author.get_username() if version.author else "Slipway"
    if version.origin == Origin.ROLL_BACK:
        return f"{name} rolled back to serial {version.restored_serial}"
    return f"{name} uploaded it" if version.origin == Origin.UPLOAD else f"{name}'s Terraform"


@register.filter
def holder(lock: StateLock) -> str:
    return holder_name(lock)


@register.filter
def operation(lock: StateLock) -> str:
    return operation_of(lock)


@register.filter
def is_masked(value: Any) -> bool:
    return bool(value == MASK)


register.filter("written_value", written_value)
