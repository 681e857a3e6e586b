"""Nine light trials, so that several share a node. Most improve for minutes, each at a pace of its own."""

from typing import Final

from tests.cluster.sweeps.descent_sweep import descent

RATES: Final = (0.3, 0.03, 0.004, 0.003, 0.002, 0.0015, 0.001, 0.0007, 0.0005)

w = descent(RATES)
