"""The source of a page without the white space that its templates are laid out with."""

import re
from typing import Any

#: Browsers show no space at the beginning and the end of these.
BLOCKS = (
    "button|caption|dd|details|div|dl|dt|fieldset|form|h1|h2|h3|header|label|legend|li|main|nav|ol|option|p|"
    "section|select|summary|table|tbody|td|th|thead|tr|ul"
)
TAG = re.compile(r"<[a-z][^<>]*>")
OPENING = re.compile(rf"(<(?:{BLOCKS})\b[^<>]*>) ")
CLOSING = re.compile(rf" (</(?:{BLOCKS})>)")


def source_of(answer: Any) -> str:
    """Return an answer's HTML with white space as browsers show it."""
    line = re.sub(r"\s+", " ", answer.content.decode())
    line = TAG.sub(lambda tag: tag.group().replace(" >", ">"), line)
    return CLOSING.sub(r"\1", OPENING.sub(r"\1", line))
