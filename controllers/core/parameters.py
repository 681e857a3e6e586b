"""A trial's hyperparameters as numbers and short texts, and as annotations of its pod. Pure.

What is read was written by others, so it is bounded.
"""

import json
import math
from collections.abc import Mapping
from typing import Final

from controllers.core import labels
from controllers.core.model import Parameters, Point
from mlflow_hooks.foreign_json import parsed

MOST_PARAMETERS: Final = 32
MOST_NAME: Final = 64
MOST_TEXT: Final = 64
MOST_WRITTEN: Final = 2**14
"""Characters of JSON that are read at all."""


def parameters_in(written: str) -> Parameters:
    """Return the hyperparameters in the text of a JSON object, as ``bound_parameters`` does; none in any other text."""
    try:
        given = parsed(written) if 0 < len(written) <= MOST_WRITTEN else {}
    except ValueError:
        return ()
    return bound_parameters(given) if isinstance(given, dict) else ()


def point_annotations(point: Point) -> dict[str, str]:
    """Return the annotations by which a pod's environment gets ``point``: all as a JSON object, and one by one."""
    texts = {name: value if isinstance(value, str) else json.dumps(value) for name, value in point}
    return {
        labels.ANNOTATION_PARAMS: json.dumps(dict(point)),
        **{labels.ANNOTATION_PARAM + name: text for name, text in texts.items()},
    }


def bound_parameters(given: Mapping[str, object]) -> Parameters:
    """Return those of ``given`` that are a number or a short text, by name; the first 32 of them.

    A text that reads as a finite number is that number, and a truth value is the text ``true`` or ``false``. Left out
    is what is neither, what is not finite, and what is empty, not printable or longer than 64 characters.
    """
    kept: dict[str, float | str] = {}
    for name, value in given.items():
        known, short = _short(value), name.strip()
        if known is not None and 0 < len(short) <= MOST_NAME and short.isprintable():
            kept[short] = known
    return tuple(sorted(kept.items())[:MOST_PARAMETERS])


def _short(value: object) -> float | str | None:
    if isinstance(value, bool):
        return "true" if value else "false"
    text = value.strip() if isinstance(value, str) else ""
    if isinstance(value, int | float) or (text and len(text) <= MOST_TEXT):
        try:
            number = float(text or value)  # type: ignore[arg-type]  # what is no text is a number here
        except (ValueError, OverflowError):
            number = math.nan
        if math.isfinite(number):
            return number
    return text if 0 < len(text) <= MOST_TEXT and text.isprintable() else None
