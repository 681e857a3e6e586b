"""S6 trial by trial: jobs whose default run is the published one, to see what SpeCon makes of each.

Fig. 6.25 gives 50 completion times under the default scheduler, and nothing of lengths and arrivals. Arrivals are drawn
as the thesis says; each trial's length is then found so that its completion time under the default scheduler, from one
fixed placement, is the published one. What SpeCon makes of these trials is a prediction to set beside its column.
"""

import csv
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from controllers.core.model import NodeName, TrialId
from controllers.core.results import RunResult
from controllers.lab.simulation.evaluation import first_nodes
from controllers.lab.simulation.experiments.arrivals import Trace, UniformWindow, generator
from controllers.lab.simulation.experiments.experiment import Experiment
from controllers.lab.simulation.experiments.jobs import TrainingJob
from controllers.lab.simulation.experiments.published import EXPERIMENTS
from controllers.lab.simulation.run import simulate
from controllers.policies import Default
from controllers.worlds.simulated.scenario import Scenario

ROUNDS = 30
_DAMPED = 0.7
_SHARING = 3.0
"""How many trials share a node at first guess: a length is that part of the completion time."""


@dataclass(frozen=True, slots=True)
class PublishedPair:
    """A trial of Fig. 6.25: seconds to its completion under the default scheduler and under SpeCon."""

    job: int
    default_s: float
    specon_s: float


def fig_6_25() -> tuple[PublishedPair, ...]:
    """Return the 50 trials of S6, in the order of the figure, read off its vector graphics."""
    lines = Path(__file__).with_name("fig_6_25.csv").read_text(encoding="utf-8").splitlines()
    rows = csv.DictReader(line for line in lines if not line.startswith("#"))
    return tuple(PublishedPair(int(row["job"]), float(row["default_s"]), float(row["specon_s"])) for row in rows)


@dataclass(frozen=True)
class Reconstruction:
    """An experiment whose default run from ``pinned`` misses no published completion time by more than ``miss``."""

    experiment: Experiment
    pinned: dict[TrialId, NodeName]
    miss: float


def reconstruct(seed: int, base: Experiment = EXPERIMENTS["S6"]) -> Reconstruction:
    """Return S6 with the arrivals and kinds of job of ``seed``, and lengths that fit the default column.

    Args:
        seed: Draws arrivals and jobs.
        base: S6 under the assumptions to make.
    """
    published = [pair.default_s for pair in fig_6_25()]
    chance = generator(seed, "fig 6.25")
    jobs = [chance.choice(base.jobs) for _ in published]
    arrivals = Trace(UniformWindow(1200.0).times(len(jobs), chance))
    lengths = [completion / _SHARING for completion in published]
    quick = base.under(replace(base.assumptions, reports=1))
    pinned = None
    for _ in range(ROUNDS):
        trying = _with_lengths(quick, jobs, lengths, arrivals)
        workload = trying.workload(seed)
        pinned = pinned or dict(first_nodes(trying, workload, seed))
        run = simulate(Scenario(workload, trying.costs, seed, pinned), Default()).result
        wrong = [wanted / completion for wanted, completion in zip(published, completions(run), strict=True)]
        lengths = [length * ratio**_DAMPED for length, ratio in zip(lengths, wrong, strict=True)]
    full = _with_lengths(base, jobs, lengths, arrivals)
    return Reconstruction(full, pinned or {}, max(abs(ratio - 1) for ratio in wrong))


def completions(run: RunResult) -> list[float]:
    """Return the completion time of each trial, in the order of submission."""
    return [trial.completion_s for trial in sorted(run.trials, key=lambda trial: trial.id)]


def _with_lengths(
    base: Experiment, jobs: Sequence[TrainingJob], lengths: Sequence[float], arrivals: Trace
) -> Experiment:
    fitted = tuple(replace(job, lone_s=length) for job, length in zip(jobs, lengths, strict=True))
    return replace(base, jobs=fitted, drawn=None, arrivals=arrivals)
