"""What counts as a number where an author writes one; truth values don't."""

import math
from typing import TypeGuard


def is_whole(value: object) -> TypeGuard[int]:
    """Return whether ``value`` is a whole number."""
    return isinstance(value, int) and not isinstance(value, bool)


def is_finite(value: object) -> TypeGuard[int | float]:
    """Return whether ``value`` is a number, neither NaN nor infinite."""
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
