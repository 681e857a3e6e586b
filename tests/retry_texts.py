"""The retry expressions of sweeps as Argo has them once it has filled in what stands between double braces."""

import re
from typing import Final

_FILLED_IN: Final = re.compile(r"\{\{=.*?\}\}")
_NUMBERS: Final = re.compile(r"(?:\?\? '|\+ )([0-9]+)")


def filled_in(expression: str) -> str:
    """Return a trial's retry expression where no annotation says how often it is tried."""
    return _FILLED_IN.sub(lambda filled: str(sum(map(int, _NUMBERS.findall(filled[0])))), expression)
