"""How the API reads JSON."""

import io
import json
import re
from typing import Any

from rest_framework.exceptions import ParseError
from rest_framework.parsers import JSONParser

#: Half of an escaped pair. Whole pairs are characters, so that this only says where to look closer.
SURROGATE = re.compile(rb"\\u[dD][89a-fA-F]")


class BoundedJSONParser(JSONParser):
    """JSON that can be answered.

    Python also reads half characters, which cannot be written, and ends with an error of its own where lists
    are nested thousands of levels deep.
    """

    def parse(self, stream: Any, media_type: Any = None, parser_context: Any = None) -> Any:
        body = stream.read()
        try:
            value = super().parse(io.BytesIO(body), media_type, parser_context)
            if SURROGATE.search(body):
                json.dumps(value, ensure_ascii=False).encode()
        except RecursionError as error:
            raise ParseError("JSON parse error - it is nested too deeply to be read") from error
        except UnicodeEncodeError as error:
            raise ParseError(
                "JSON parse error - it has half of a character: a \\ud800 alone is none"
            ) from error
        return value
