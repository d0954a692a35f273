"""How the API reads JSON."""

import io
import re
from typing import Any

from rest_framework.exceptions import ParseError
from rest_framework.parsers import JSONParser

from console.errors import BadInput

#: Half of an escaped pair. Whole pairs are characters, so that this only says where to look closer.
ESCAPED_HALF = re.compile(rb"\\u[dD][89a-fA-F]")
HALF = re.compile("[\ud800-\udfff]")


class BoundedJSONParser(JSONParser):
    """JSON that can be answered.

    Python also reads half characters, which cannot be written, and ends with an error of its own where lists
    are nested thousands of levels deep.
    """

    def parse(self, stream: Any, media_type: Any = None, parser_context: Any = None) -> Any:
        body = stream.read()
        try:
            value = super().parse(io.BytesIO(body), media_type, parser_context)
            if ESCAPED_HALF.search(body):
                _refuse_halves(value)
        except RecursionError as error:
            raise ParseError("JSON parse error - it is nested too deeply to be read") from error
        return value


def _refuse_halves(value: Any, field: str = "") -> None:
    if isinstance(value, dict):
        for key, item in value.items():
            _refuse_halves(key, field)
            _refuse_halves(item, f"{field}.{key}" if field else key)
    elif isinstance(value, list):
        for index, item in enumerate(value):
            _refuse_halves(item, f"{field}[{index}]")
    elif isinstance(value, str) and HALF.search(value):
        if not field:
            raise BadInput("The body has half of a character, such as \\ud800 alone. Remove it.")
        raise BadInput(f"{field}: has half of a character, such as \\ud800 alone. Remove it.", field=field)
