"""Four light trials one after the other, so that each finds the nodes as those before it use them."""

from typing import Final

from hera_specon import every
from tests.cluster.sweeps.descent_sweep import descent

RATES: Final = (0.02, 0.015, 0.01, 0.005)

w = descent(RATES, arrivals=every(20))
