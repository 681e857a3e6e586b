"""Finds the job lengths that were never published, from the default scheduler's published figures alone.

    python -m benchmarks.calibrate_lengths [--seeds 30] [--placement requests|use|chance] [--cores 12.8]

For S4 to S6, spread and middle of the lengths give makespan and mean; for S1, VAE's length gives the mean; for F4, the
other lengths give the makespan. What is printed goes into jobs.py and published.toml, which are in
controllers/lab/simulation/experiments.
"""

import argparse
import math
import statistics
from collections.abc import Callable
from dataclasses import dataclass, replace

from controllers.core.errors import SpeconError
from controllers.lab.simulation.experiments.experiment import Experiment
from controllers.lab.simulation.experiments.jobs import (
    FLOWCON_JOBS,
    FLOWCON_OTHER_S,
    TrainingJob,
    specon_jobs,
    specon_vae,
)
from controllers.lab.simulation.experiments.published import EXPERIMENTS
from controllers.lab.simulation.run import simulate
from controllers.lab.worker_pool import worker_pool
from controllers.worlds.simulated.scenario import Scenario

STEPS = 9


@dataclass(frozen=True)
class Default:
    """What the default scheduler comes to, on average over seeds, in seconds."""

    makespan_s: float
    mean_s: float


def default_of(experiment: Experiment, seeds: int) -> Default:
    """Run the experiment under the default scheduler."""
    runs = []
    for seed in range(seeds):
        scenario = Scenario(experiment.workload(seed), experiment.costs, seed)
        runs.append(simulate(scenario, experiment.scheduler(seed)).result)
    return Default(
        statistics.fmean(run.makespan_s for run in runs), statistics.fmean(run.mean_completion_s for run in runs)
    )


def solved(low: float, high: float, too_much: Callable[[float], bool]) -> float:
    """Return where ``too_much`` begins to hold between ``low`` and ``high``, by halving on a logarithmic scale."""
    for _ in range(STEPS):
        middle = math.sqrt(low * high)
        low, high = (low, middle) if too_much(middle) else (middle, high)
    return math.sqrt(low * high)


def mixed(name: str, seeds: int) -> str:
    """Return the middle and spread of an experiment with jobs of all kinds."""
    experiment = EXPERIMENTS[name]
    wanted = experiment.published[0]
    if wanted.makespan_s is None or wanted.mean_completion_s is None:
        message = f"{name} has no default mean and makespan to calibrate on"
        raise SpeconError(message)
    mean, makespan = wanted.mean_completion_s, wanted.makespan_s

    def of(middle_s: float, spread: float) -> Default:
        return default_of(replace(experiment, jobs=specon_jobs(middle_s, spread)), seeds)

    def middle_for(spread: float) -> float:
        return solved(20, 1000, lambda middle_s: of(middle_s, spread).mean_s > mean)

    spread = solved(1.0, 8.0, lambda spread: of(middle_for(spread), spread).makespan_s > makespan)
    middle_s = middle_for(spread)
    found = of(middle_s, spread)
    lengths = f"{{ middle_s = {middle_s:.1f}, spread = {spread:.2f} }}"
    return f"{name}: jobs = {lengths} -> {found} for mean {mean}, makespan {makespan}"


def vae(seeds: int) -> str:
    """Return VAE's length, from S1's default mean; there, no seed changes anything."""
    experiment = EXPERIMENTS["S1"]

    def of(lone_s: float) -> Default:
        return default_of(replace(experiment, jobs=(specon_vae(lone_s),)), seeds)

    lone_s = solved(50, 500, lambda lone_s: of(lone_s).mean_s > (experiment.published[0].mean_completion_s or 0))
    return f"S1: SPECON_VAE_S = {lone_s:.1f} -> {of(lone_s)} for {experiment.published[0]}"


def flowcon(seeds: int) -> str:
    """Return the length of FlowCon's other jobs, from F4's default makespan; F3 and F5 check it."""

    def jobs(lone_s: float) -> tuple[TrainingJob, ...]:
        return tuple(replace(job, lone_s=lone_s) if job.lone_s == FLOWCON_OTHER_S else job for job in FLOWCON_JOBS)

    def of(name: str, lone_s: float) -> Default:
        return default_of(replace(EXPERIMENTS[name], jobs=jobs(lone_s)), seeds)

    lone_s = solved(
        20, 1000, lambda lone_s: of("F4", lone_s).makespan_s > (EXPERIMENTS["F4"].published[0].makespan_s or 0)
    )
    return f"F4: FLOWCON_OTHER_S = {lone_s:.1f} -> {of('F4', lone_s)}; F5, to check: {of('F5', lone_s)} for 1980.1"


def main() -> None:
    """Print what was found."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=30)
    seeds = parser.parse_args().seeds
    with worker_pool() as pool:
        found = [pool.submit(vae, seeds), pool.submit(flowcon, seeds)]
        found += [pool.submit(mixed, name, seeds) for name in ("S6", "S5", "S4")]
        for one in found:
            print(one.result(), flush=True)


if __name__ == "__main__":
    main()
