"""Resource quantities and durations, read as Kubernetes and Argo read them."""

import re
from typing import Final

from controllers.core.errors import SpeconError


class QuantityError(SpeconError, ValueError):
    """A text is no quantity or duration, or a negative one."""


_QUANTITY: Final = re.compile(r"([+-]?(?:\d+(?:\.\d*)?|\.\d+))(m|u|n|k|M|G|T|P|E|Ki|Mi|Gi|Ti|Pi|Ei|[eE][+-]?\d+)?")
_SCALES: Final = {
    "": 1.0,
    "n": 1e-9,
    "u": 1e-6,
    "m": 1e-3,
    **{letter: 1000.0**power for power, letter in enumerate("kMGTPE", start=1)},
    **{f"{letter}i": 1024.0**power for power, letter in enumerate("KMGTPE", start=1)},
}
_DURATION_PART: Final = re.compile(r"(\d+(?:\.\d*)?|\.\d+)(ns|us|µs|ms|s|m|h)")
_DURATION_SCALES: Final = {"ns": 1e-9, "us": 1e-6, "µs": 1e-6, "ms": 1e-3, "s": 1.0, "m": 60.0, "h": 3600.0}


def parse_quantity(value: object) -> float:
    """Return a resource quantity such as ``"100m"``, ``"512Mi"`` or ``2`` as a number of cores or bytes.

    Raises:
        QuantityError: ``value`` is no quantity, or is negative.
    """
    match = _QUANTITY.fullmatch(str(value)) if isinstance(value, str | int | float) else None
    if match is None or isinstance(value, bool):
        message = f"{value!r} is not a quantity such as '100m', '0.5' or '512Mi'"
        raise QuantityError(message)
    number, suffix = float(match[1]), match[2] or ""
    amount = number * _SCALES[suffix] if suffix in _SCALES else float(match[1] + suffix)
    if amount < 0:
        message = f"{value!r} is negative"
        raise QuantityError(message)
    return amount


def parse_duration(value: object) -> float:
    """Return a duration such as ``"90"``, ``"1m30s"`` or ``20`` in seconds.

    Raises:
        QuantityError: ``value`` is no duration, or is negative.
    """
    text = str(value).strip()
    parts = _DURATION_PART.findall(text)
    if parts and "".join(number + unit for number, unit in parts) == text:
        return float(sum(float(number) * _DURATION_SCALES[unit] for number, unit in parts))
    if re.fullmatch(r"\d+(?:\.\d+)?", text):
        return float(text)
    message = f"{value!r} is not a duration such as '90', '20s' or '1m30s'"
    raise QuantityError(message)
