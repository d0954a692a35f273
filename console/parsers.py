"""Reading the bodies of API requests."""

import io
import re
from typing import Any

from rest_framework.exceptions import ParseError
from rest_framework.parsers import JSONParser
from rest_framework.serializers import Serializer

from console.errors import BadInput

#: One half of an escaped surrogate pair. Complete pairs match too, so a match needs a closer check.
ESCAPED_HALF = re.compile(rb"\\u[dD][89a-fA-F]")
HALF = re.compile("[\ud800-\udfff]")


class BoundedJSONParser(JSONParser):
    """A JSON parser that accepts only what can be written again.

    Python also reads unpaired surrogates, which cannot be written, and raises RecursionError where lists are
    nested thousands of levels deep.
    """

    def parse(self, stream: Any, media_type: Any = None, parser_context: Any = None) -> Any:
        body = stream.read()
        try:
            value = super().parse(io.BytesIO(body), media_type, parser_context)
            if ESCAPED_HALF.search(body):
                _refuse_halves(value)
        except RecursionError as error:
            raise ParseError("JSON parse error - it is nested too deeply") from error
        return value


def validate_body(serializer: Serializer[Any]) -> dict[str, Any]:
    """Return the fields of a valid body, or refuse it with the errors of each field."""
    serializer.is_valid(raise_exception=True)
    return dict(serializer.validated_data)


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
            raise BadInput("The body has an unpaired surrogate, such as \\ud800 alone. Remove it.")
        raise BadInput(f"{field}: has an unpaired surrogate, such as \\ud800 alone. Remove it.", field=field)
