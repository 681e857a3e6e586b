"""The one grammar of the numbers that programs print, in whatever language. Pure, and linear in the text.

What is not wholly understood is no number: a decimal comma, a unit, a version, a date are None, never their beginning.
"""

import math
import re
from typing import Final

from mlflow_hooks.points import MOST_STEP

_LONGEST: Final = 200
"""Characters of a value that are looked at; a longer one is no number."""
_FINITE: Final = re.compile(r"[+-]?(?:[1-9]\d{0,2}(?:,\d{3})+\.\d+|\d+\.?\d*|\.\d+)(?:[eE][+-]?\d{1,4})?", re.ASCII)
"""Commas stand between thousands only where a point follows: ``1,234`` may be either."""
_OF_OTHERS: Final = re.compile(r"([+-]?\d+\.\d*)[Df]([+-]?\d{1,4})", re.ASCII)
"""Fortran prints ``1.0D-3``, and Julia ``1.0f-3``."""
_NOT_FINITE: Final = re.compile(
    r"(?P<minus>-)?\+?(?:(?P<nan>nan(?:16|32)?|1\.#(?:ind|qnan|snan)\d*)|(?:inf(?:inity|16|32)?|∞|1\.#inf\d*))",
    re.IGNORECASE | re.ASCII,
)
"""Julia has a name for each size, and Microsoft's C its own."""
_WRAPPED: Final = re.compile(
    r"(?<![\w.])(?:(?:tf|torch|np|numpy|jnp)\.)?(?:[tT]ensor|[aA]rray|DeviceArray|b?float(?:16|32|64)?|Some)"
    r"\([ \[]*(?P<number>[^\s,()\[\]]+)[\] ]*(?:, ?\w+=[^()]*(?:\(\)[^()]*)?|,)?(?:\)|$)"
)
"""A tensor or array of one, as its library shows it."""
_DEVIATION: Final = re.compile(r"(?<=[\d.])(?:±.*|\+/?-.*|\+\d+\.\d+)")
_BEFORE: Final = "\"'([{ \t"
_AFTER: Final = "\"')]}.,;:!? \t*↑↓"
"""What a sentence, a list or a mark of the best value may put after a number."""
_THOUSANDS: Final = re.compile(r"[1-9]\d{0,2}(?:,\d{3})+", re.ASCII)


def number(text: str) -> float | None:
    """Return the number that ``text`` tells, None where it is anything else or more."""
    if len(text) > _LONGEST:
        return None
    wrapped = _WRAPPED.fullmatch(text.strip())
    bare = (wrapped["number"] if wrapped else text).lstrip(_BEFORE).rstrip(_AFTER).removesuffix("%").rstrip()
    return _plain_number(_DEVIATION.sub("", bare.replace("\u2212", "-"), count=1))


def _plain_number(text: str) -> float | None:
    if _FINITE.fullmatch(text):
        return float(text.replace(",", ""))
    if other := _OF_OTHERS.fullmatch(text):
        return float(f"{other[1]}e{other[2]}")
    if odd := _NOT_FINITE.fullmatch(text):
        return math.nan if odd["nan"] else -math.inf if odd["minus"] else math.inf
    return None


def unwrapped(line: str) -> str:
    """Return ``line`` with each tensor or array of one as its number."""
    return _WRAPPED.sub(r"\g<number>", line) if "(" in line else line


def whole(text: str) -> int | None:
    """Return the step that ``text`` tells, None where it is no whole number that MLflow can keep."""
    digits = text.replace(",", "") if _THOUSANDS.fullmatch(text) else text
    if digits.isascii() and digits.isdigit() and len(digits) < _LONGEST:
        exact = int(digits)
        return exact if exact < MOST_STEP else None
    return whole_of(number(digits))


def whole_of(value: object) -> int | None:
    """Return the step that a number is, None where MLflow can keep none of the kind."""
    if not isinstance(value, int | float) or isinstance(value, bool):
        return None
    return int(value) if 0 <= value < MOST_STEP and value == int(value) else None
