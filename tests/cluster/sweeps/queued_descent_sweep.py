"""Four light trials; each waits in a queue of Kueue's as a group of one."""

from tests.cluster.kueue_install import QUEUE
from tests.cluster.sweeps.descent_sweep import RATES, VOLUME, descent

w = descent(RATES, settings={**VOLUME, "queue": QUEUE})
