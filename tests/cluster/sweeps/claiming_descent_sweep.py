"""Five light trials that claim a device each."""

from typing import Final

from tests.cluster.sweeps.descent_sweep import VOLUME, descent

RATES: Final = (0.3, 0.02, 0.015, 0.01, 0.005)

w = descent(RATES, settings={**VOLUME, "resource_claims": {"gpu": "one-gpu"}})
