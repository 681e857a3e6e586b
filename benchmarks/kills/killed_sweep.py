"""Six light trials that may be killed forty times each."""

from typing import Final

from tests.cluster.sweeps.descent_sweep import descent

RATES: Final = (0.02, 0.01, 0.004, 0.002, 0.001, 0.0005)

w = descent(RATES, retries=40)
