"""Three light trials with all the time they need, and one that no share of a node brings to its end in time."""

from typing import Final

from tests.cluster.sweeps.descent_sweep import descent

RATES: Final = (0.02, 0.015, 0.01, 0.005)
DEADLINES: Final = ("10m", "10m", "10m", "40s")
HOPELESS: Final = "t003"

w = descent(RATES, DEADLINES)
