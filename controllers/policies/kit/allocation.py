"""How the cores of a node are dealt out to a line of trials, from evenly to all for the first. Pure."""

import math
from collections.abc import Sequence
from functools import lru_cache


def allocate(mosts: Sequence[float], cores: float, exponent: float) -> list[float]:
    """Return the cores of each trial of a node, the one with the least work left first.

    With an infinite ``exponent`` e the first gets all it can use, and the rest goes to the next: shortest remaining
    first, the best mean where speed grows like cores (Schrage 1968). With a finite one the k-th of n gets the part
    ((n - k + 1) / n) ** e - ((n - k) / n) ** e, as far as it can use that; what is left over goes by the line again.
    e = 1 / (1 - p) is the best for the mean where speed grows as cores ** p (heSRPT: Berg, Vesilo and Harchol-Balter
    2020), and e = 1 gives all the same, which wastes least.
    """
    if exponent < math.inf:
        shares = [min(part * cores, most) for part, most in zip(_parts(len(mosts), exponent), mosts, strict=True)]
    else:
        shares = [0.0] * len(mosts)
    left = cores
    for share in shares:
        left -= share
    for k, most in enumerate(mosts):
        if left <= 0:
            break
        more = min(most - shares[k], left)
        shares[k] += more
        left -= more
    return shares


@lru_cache(maxsize=1024)
def _parts(n: int, exponent: float) -> tuple[float, ...]:
    return tuple(((n - k) / n) ** exponent - ((n - k - 1) / n) ** exponent for k in range(n))
