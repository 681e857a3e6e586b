"""Eight trials that together ask for more than half of what the cluster of these tests has to give."""

from typing import Final

from hera.workflows import Resources

from tests.cluster.sweeps.descent_sweep import VOLUME, descent

RATES: Final = (0.02, 0.018, 0.016, 0.014, 0.012, 0.01, 0.008, 0.006)
WIDE: Final = Resources(cpu_request="250m", memory_request="200Mi")

w = descent(RATES, resources=WIDE, settings={**VOLUME, "weight": 1.0})
