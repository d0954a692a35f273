"""Forms that post, and dialogs: their attributes are written here, once for all pages."""

import json
from typing import Any
from urllib.parse import urlencode

from django import template
from django.template.context import Context
from django.template.defaulttags import CsrfTokenNode
from django.urls import reverse
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString

from console.accounts.rights import Right
from runner.protocol import MASK

register = template.Library()

#: No history in the browser's storage, nothing evaluated, no inline style; refusals are shown, not swallowed.
HTMX_CONFIG = {
    "historyCacheSize": 0,
    "refreshOnHistoryMiss": True,
    "includeIndicatorStyles": False,
    "allowEval": False,
    "allowScriptTags": False,
    "attributesToSettle": ["class"],
    "disableInheritance": True,
    "responseHandling": [
        {"code": "204", "swap": False},
        {"code": "[23]..", "swap": True},
        {"code": "[45]..", "swap": True, "error": False},
    ],
}


@register.simple_tag
def htmx_config() -> SafeString:
    return format_html('<meta name="htmx-config" content="{}">', json.dumps(HTMX_CONFIG))


@register.simple_block_tag(takes_context=True, end_name="endaction")
def action(
    context: Context,
    content: SafeString,
    view: str = "",
    *args: Any,
    address: str = "",
    target: str = "find [data-refusal]",
    disable: str = "find button[type=submit]",
    swap: str = "",
    confirm: str = "",
    multipart: bool = False,
    htmx: bool = True,
    **attributes: Any,
) -> SafeString:
    """A form that posts: `{% action "job-cancel" org job.number target="#job-refusal" %}…{% endaction %}`.

    It posts to the view with these arguments, or to `address`. The answer goes into `target`: a refusal's
    place, unless told otherwise. While the request is under way, its first submit button is disabled,
    or what `disable` selects.
    `htmx=False` posts as browsers do, for what leaves the page. Any other keyword is an attribute of the
    form; its class is `action` unless one is given.
    """
    address = address or reverse(view, args=args)
    attributes = {"class": "action", **attributes, "method": "post", "action": address}
    if multipart:
        attributes["enctype"] = "multipart/form-data"
    if htmx:
        attributes |= {
            "hx-post": address,
            "hx-encoding": "multipart/form-data" if multipart else "",
            "hx-target": target,
            "hx-swap": swap,
            "hx-disabled-elt": disable,
            "hx-confirm": confirm,
        }
    else:
        attributes.setdefault("hx_boost", "false")
    return format_html(
        "<form{}>{}{}</form>", _attributes(attributes), CsrfTokenNode().render(context), content
    )


@register.simple_block_tag(end_name="enddialog_link")
def dialog_link(
    content: SafeString, view: str = "", *args: Any, address: str = "", **attributes: Any
) -> SafeString:
    """A link that opens the view in the page's dialog, or as a page of its own where there are no scripts.

    A keyword `query_name=value` becomes part of the address; any other is an attribute of the link.
    """
    query = {
        key.removeprefix("query_"): value for key, value in attributes.items() if key.startswith("query_")
    }
    attributes = {key: value for key, value in attributes.items() if not key.startswith("query_")}
    address = (address or reverse(view, args=args)) + (f"?{urlencode(query)}" if query else "")
    opening = {
        "href": address,
        "hx-get": address,
        "hx-target": "#dialog",
        "hx-swap": "innerHTML",
        "hx-boost": "false",
        "role": "button",
    }
    return format_html(
        "<a{}>{}</a>", _attributes({"class": "button", **attributes, **opening}), SafeString(content.strip())
    )


@register.simple_block_tag(takes_context=True, end_name="enddialog_title")
def dialog_title(context: Context, content: SafeString, **attributes: Any) -> SafeString:
    """The heading of a dialog, which is the page's own heading where the dialog stands as a page."""
    if context.get("whole_page"):
        return format_html("<h1{}>{}</h1>", _attributes(attributes), SafeString(content.strip()))
    return format_html(
        '<h2 id="dialog-title"{}>{}</h2>', _attributes(attributes), SafeString(content.strip())
    )


@register.simple_block_tag(takes_context=True, end_name="enddialog_close")
def dialog_close(context: Context, content: SafeString, view: str, *args: Any) -> SafeString:
    """The button that closes a dialog; a link to the view where the dialog stands as a page."""
    if context.get("whole_page"):
        return format_html(
            '<a class="button" href="{}">{}</a>', reverse(view, args=args), SafeString(content.strip())
        )
    return format_html(
        '<button class="button" type="button" data-close>{}</button>', SafeString(content.strip())
    )


@register.simple_block_tag(end_name="endcapture")
def capture(content: SafeString) -> SafeString:
    """Text for an argument of another tag: `{% capture as question %}Delete {{ name }}?{% endcapture %}`."""
    return SafeString(" ".join(content.split()))


@register.simple_block_tag(end_name="endcrumb")
def crumb(content: SafeString, view: str = "", *args: Any) -> SafeString:
    """One step of the path above a page; without a view, the page itself."""
    words = SafeString(content.strip())
    if not view:
        return format_html('<li aria-current="page">{}</li>', words)
    return format_html('<li><a href="{}">{}</a></li>', reverse(view, args=args), words)


@register.simple_block_tag(end_name="endcell")
def cell(content: SafeString, label: str = "", **attributes: Any) -> SafeString:
    """A table cell that may be empty: without a space in it, so that style sheets see that it is."""
    attributes["data-label"] = label
    return format_html("<td{}>{}</td>", _attributes(attributes), SafeString(content.strip()))


@register.simple_tag(takes_context=True)
def review_action(context: Context, plan: Any, approvals: Any, staleness: Any) -> str:
    """The words of the link to a plan: what this person can do with it there."""
    if plan.spent_by or staleness:
        return "View plan"
    if approvals.missing:
        return "Review and approve" if context["request"].user in approvals.may_approve else "View plan"
    return "Review and apply" if context["shell"].may[Right.APPLY] else "View plan"


@register.simple_tag
def sensitive(change: str = "") -> SafeString:
    """The mask in place of a sensitive value, and how the value changed where pages compare."""
    words = f"{MASK.removesuffix(')')}, {change})" if change else MASK
    return format_html('<span class="value special">{}</span>', words)


@register.simple_tag
def query(**values: Any) -> str:
    """The query of an address: `?{% query kind=list.kind region=list.region %}`."""
    return urlencode(values)


def _attributes(attributes: dict[str, Any]) -> SafeString:
    """The attributes that have a value; `aria_label` is written `aria-label`."""
    written = [
        (name.replace("_", "-"), value)
        for name, value in attributes.items()
        if value not in ("", None, False)
    ]
    return format_html_join("", ' {}="{}"', written)
