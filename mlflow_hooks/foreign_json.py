"""The one parser of JSON that others write: what is nested too deeply is none, in every version of Python. Pure.

How deep Python's own parser goes depends on its version and on the stack that is left; beyond that it raises what
nobody expects of a parser, or ends the process.
"""

import json
import re
from array import array
from itertools import accumulate
from typing import Any, Final

from mlflow_hooks.bounds import MOST_DEPTH

_STRING: Final = re.compile(rb'"[^"\\]*(?:\\.[^"\\]*)*\\?"?', re.DOTALL)
"""Ends with the text where nothing else ends it, so that no text is gone through twice."""
_STEPS: Final = bytes.maketrans(b"[{]}", b"\x01\x01\xff\xff")
_NO_MARKS: Final = bytes(set(range(256)) - set(b"[]{}"))


class TooDeepError(ValueError):
    """A text nests objects or lists more deeply than anybody writes."""


def parsed(text: str | bytes, most_depth: int = MOST_DEPTH) -> Any:  # noqa: ANN401 - whatever the JSON holds
    """Return the JSON in ``text``, whose objects and lists are nested ``most_depth`` times at most.

    Raises:
        ValueError: it is no JSON, or is nested more deeply.
    """
    content = text.encode("utf-8", "surrogatepass") if isinstance(text, str) else text
    if is_deeper(content, most_depth):
        message = f"it is nested more than {most_depth} times"
        raise TooDeepError(message)
    return json.loads(text)


def is_deeper(content: bytes, most: int) -> bool:
    """Return whether JSON nests objects and lists more than ``most`` times; linear in its length."""
    if sum(content.count(mark) for mark in (b"[", b"{")) <= most:
        return False
    steps = _STRING.sub(b"", content).translate(_STEPS, _NO_MARKS)
    return max(accumulate(array("b", steps)), default=0) > most
