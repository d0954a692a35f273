"""The components of a Spec on a page."""

from typing import Any

from django import template

register = template.Library()

#: What people call the kinds that blueprints name; any other goes by its own words.
NAMES = {"argocd": "Argo CD", "dns_zone": "DNS zone"}


@register.filter
def component_name(kind: str) -> str:
    return NAMES.get(kind, kind.replace("_", " ").replace("-", " ").capitalize())


@register.filter
def is_web_address(value: Any) -> bool:
    """Only these become links: a value comes from a configuration, and could be any other scheme."""
    return isinstance(value, str) and value.startswith(("https://", "http://"))
