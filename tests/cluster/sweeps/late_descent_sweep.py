"""Four light trials, far enough apart for those before each to have reported: imports take up to half a minute."""

from typing import Final

from hera_specon import every
from tests.cluster.sweeps.descent_sweep import descent

RATES: Final = (0.02, 0.015, 0.01, 0.005)

w = descent(RATES, arrivals=every(35))
