"""Four light trials that ask for so much that two share a node: from no nodes, they need two."""

from typing import Final

from hera.workflows import Resources

from tests.cluster.sweeps.descent_sweep import descent

RATES: Final = (0.03, 0.02, 0.015, 0.01)

w = descent(RATES, resources=Resources(cpu_request="150m", memory_request="200Mi"))
