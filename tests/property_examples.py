"""How many examples a property is tried on: a quarter of what its test names; ``make test-properties`` tries all.

Thousands of tests share two cores. Each commit tries other examples, so over a few of them no less is tried.
"""

import os
from typing import Final

EXAMPLES: Final = "EXAMPLES"
"""Variable that says how many percent of the examples are tried."""
_PERCENT: Final = int(os.environ.get(EXAMPLES) or 25)
_LEAST: Final = 5


def examples(whole: int) -> int:
    """Return how many examples are tried now of a test that names ``whole``."""
    return max(_LEAST, whole * _PERCENT // 100)
