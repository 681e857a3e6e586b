"""Four light trials that a tainted pool is for, and no other node."""

from typing import Final

from hera.workflows.models import Toleration

from tests.cluster.sweeps.descent_sweep import RATES, VOLUME, descent

POOL: Final = "example.com/pool"
OF_THE_POOL: Final = "gpus"

w = descent(
    RATES,
    settings={
        **VOLUME,
        "node_selector": {POOL: OF_THE_POOL},
        "tolerations": [Toleration(key=POOL, operator="Equal", value=OF_THE_POOL, effect="NoSchedule")],
    },
)
