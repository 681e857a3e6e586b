"""Nine light trials, so that several share a node, of which most improve for minutes, each at a pace of its own."""

from typing import Final

from tests.cluster.sweeps.descent_sweep import descent

RATES: Final = (0.3, 0.1, 0.03, 0.01, 0.007, 0.005, 0.003, 0.002, 0.001)

w = descent(RATES)
