"""Experiments with goals: what becomes of deadlines where resources are short, and where there are plenty.

The deadline framework's abstract tells results and nothing of its workload: this one is ours. Jobs of one to ten
minutes that can use 2, 4 or 8 cores, ever less efficiently, come one after the other; each is to be done within 1.5 to
4 times the time that it needs alone.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from random import Random
from typing import Any, Final, Literal

from controllers.goal_measures import deadlines_met, share_of_allocation_used
from controllers.goals import AskedGoals
from controllers.model import NodeName, TrialId
from controllers.policies.base import Policy
from controllers.simulated_run import simulate
from controllers.simulation.arrivals import Arrivals, Poisson, generator
from controllers.worlds.simulated.costs import Costs
from controllers.worlds.simulated.scenario import Scenario
from controllers.worlds.simulated.workload import NodeSpec, Report, Speedup, TrialSpec, Workload

Request = Literal["most", "half", "start"]
"""What authors ask for: all cores that a job can use, half of them, or one to start with."""

NODE_CORES: Final = 16.0
START_CORES: Final = 1.0
SPEEDUPS: Final[Mapping[int, Speedup]] = {
    2: Speedup(((1, 0.55), (2, 1.0))),
    4: Speedup(((1, 0.30), (2, 0.57), (4, 1.0))),
    8: Speedup(((1, 0.17), (2, 0.33), (4, 0.61), (8, 1.0))),
}
"""By the cores that a job can use at most: each further core brings a little less."""


@dataclass(frozen=True)
class DeadlineExperiment:
    """Jobs with deadlines on nodes of 16 cores; times in seconds, ``deadlines`` as multiples of lone times."""

    id: str
    title: str
    nodes: int
    jobs: int = 40
    arrivals: Arrivals = field(default_factory=lambda: Poisson(12.0))
    lone_s: tuple[float, float] = (60.0, 600.0)
    deadlines: tuple[float, float] = (1.5, 4.0)
    reports: int = 100
    costs: Costs = field(default_factory=Costs.argo)

    def workload(self, seed: int, request: Request) -> Workload:
        """Return the workload of ``seed``; what authors ask for changes nothing else of it."""
        chance = generator(seed, "deadlines")
        times = self.arrivals.times(self.jobs, generator(seed, "deadlines", "arrivals"))
        trials = tuple(self._trial(number, at, chance, request) for number, at in enumerate(times))
        nodes = tuple(NodeSpec(NodeName(f"worker-{number}"), NODE_CORES) for number in range(1, self.nodes + 1))
        return Workload(trials, nodes)

    def _trial(self, number: int, at: float, chance: Random, request: Request) -> TrialSpec:
        work, most = chance.uniform(*self.lone_s), chance.choice(sorted(SPEEDUPS))
        deadline = work * chance.uniform(*self.deadlines)
        return TrialSpec(
            id=TrialId(f"job-{number + 1:02d}"),
            submitted_at=at,
            work_s=work,
            reports=tuple(Report(work * step / self.reports, 1 / step) for step in range(1, self.reports + 1)),
            cpu={"most": float(most), "half": most / 2, "start": START_CORES}[request],
            speedup=SPEEDUPS[most],
            goals=AskedGoals(deadline_s=deadline),
        )


SHORT: Final = DeadlineExperiment("D1", "40 jobs with deadlines on 2 nodes: too little for all", nodes=2)
AMPLE: Final = DeadlineExperiment("D2", "the same jobs on 6 nodes: enough for all", nodes=6)


@dataclass(frozen=True, slots=True)
class GoalFigures:
    """What one run came to: parts from 0 to 1, seconds, and counts."""

    deadlines_met: float
    allocation_used: float
    makespan_s: float
    moves: int
    resizes: int


def run_with_deadlines(experiment: DeadlineExperiment, policy: Policy[Any], request: Request, seed: int) -> GoalFigures:
    """Return what ``policy`` made of one seed."""
    workload = experiment.workload(seed, request)
    run = simulate(Scenario(workload, experiment.costs, seed), policy)
    goals = {str(trial.id): trial.goals for trial in workload.trials}
    return GoalFigures(
        deadlines_met=deadlines_met(run.result, goals).share,
        allocation_used=share_of_allocation_used(run.timeline),
        makespan_s=run.result.makespan_s,
        moves=sum(trial.moves for trial in run.result.trials),
        resizes=sum(trial.resizes for trial in run.result.trials),
    )
