"""What CPU the trials of a finished run used, and times that no schedule of it could beat."""

from controllers.lab.simulation.bounds import makespan_bound, mean_completion_bound
from controllers.lab.simulation.past_sweeps.past_sweep import PastSweep
from controllers.lab.simulation.past_sweeps.recording import TargetCluster, record
from controllers.worlds.simulated.scenario import Costs


def cpu_used(past: PastSweep) -> float:
    """Return the CPU seconds of all trials: as their world counted them, else as they did."""
    return sum(trial.total_cpu_s or trial.cpu_seconds[-1].value for trial in past.trials)


def bounds(past: PastSweep, costs: Costs) -> tuple[float, float]:
    """Return bounds of makespan and mean completion time, in seconds, from the CPU seconds that the trials used.

    They leave out what starts, further attempts and logging cost, so no schedule of these trials comes below.
    """
    workload = record(past, TargetCluster(past.nodes, costs)).workload
    return makespan_bound(workload), mean_completion_bound(workload)
