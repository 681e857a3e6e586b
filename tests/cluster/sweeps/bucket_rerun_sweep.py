"""Two trials that keep their checkpoints in a bucket; one can be made to fail halfway."""

from tests.cluster import rerun_sweep
from tests.cluster.sweeps.bucket import IN_BUCKET

RATES = rerun_sweep.RATES
w = rerun_sweep.rerun(IN_BUCKET)
