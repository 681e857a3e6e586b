"""Four light trials that keep their checkpoints in a bucket."""

from tests.cluster.sweeps.bucket import IN_BUCKET
from tests.cluster.sweeps.descent_sweep import RATES, descent

w = descent(RATES, settings=IN_BUCKET)
