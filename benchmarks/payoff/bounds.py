"""What CPU the trials of a finished run used, and times that no schedule of it could beat."""

from controllers.lab.simulation.bounds import makespan_bound, mean_completion_bound
from controllers.lab.simulation.past_sweeps.past_sweep import PastSweep, PastTrial
from controllers.worlds.simulated.workload import Speedup, TrialSpec, Workload

_THREAD = Speedup.linear(1.0)
"""The trials of the measured sweeps train on one thread, or each of their workers does."""


def cpu_used(trial: PastTrial) -> float:
    """Return the CPU seconds of a trial over all its attempts: as its world counted them, else as it did."""
    return trial.total_cpu_s or trial.cpu_seconds[-1].value


def bounds(past: PastSweep, workers: int = 1) -> tuple[float, float]:
    """Return bounds of makespan and mean completion time, in seconds, from the CPU seconds that the trials used.

    ``workers`` is how many a trial may have at most.

    They take the trials as they were, with all that starts and further attempts cost them, and the nodes as one pool. A
    policy that makes trials cost more CPU thus has a later bound.
    """
    trials = tuple(
        TrialSpec(one.id, one.submitted_at, cpu_used(one), (), 0.0, _THREAD, max_workers=workers) for one in past.trials
    )
    workload = Workload(trials, past.nodes)
    return makespan_bound(workload), mean_completion_bound(workload)
