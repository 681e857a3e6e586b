"""Two light trials that fit on one node, and on two that are half full."""

from typing import Final

from hera.workflows import Resources

from tests.cluster.sweeps.descent_sweep import descent

RATES: Final = (0.02, 0.01)

w = descent(RATES, resources=Resources(cpu_request="150m", memory_request="200Mi"))
