"""One light trial of two workers; each of the two claims a device."""

from tests.cluster.sweeps.gang_descent_sweep import RATES, WORKERS, gang

__all__ = ["RATES", "WORKERS"]

w = gang(resource_claims={"gpu": "one-gpu"})
