"""Six trials on a cluster that are far from their end when their sweep is good enough; four start later."""

from typing import Final

from hera_specon import value
from tests.cluster.sweeps.descent_sweep import VOLUME, descent

REACHED: Final = 0.001
RATES: Final = (0.3, 0.02, 0.018, 0.016, 0.014, 0.012)

w = descent(RATES, settings={**VOLUME, "stop": value(REACHED), "parallelism": 3})
