"""Sweeps as people submit them day by day, A1 to A25: on these, too, a policy must be no worse than the default.

All of them were fixed before any policy was measured on them. They are what the published experiments are not:
everything at once, more trials than fit, requests that bind, a laptop, nodes that slow down or differ, trials that can
use few cores, and reports that tell less than the truth. Where a title begins with S5, A1 or A2, jobs, arrivals and
lengths of each seed are those, and the title says what is changed.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Final

from controllers.core.model import TrialId
from controllers.lab.simulation.experiments.arrivals import AllAtOnce, ArrivalPattern, FixedInterval, Poisson, generator
from controllers.lab.simulation.experiments.experiment import Assumptions, OwnExperiment, Published, equal_nodes
from controllers.lab.simulation.experiments.jobs import BI_RNN, GRU, NODE_CORES, VAE
from controllers.lab.simulation.experiments.published import EXPERIMENTS
from controllers.worlds.simulated.scenario import Costs
from controllers.worlds.simulated.workload import CurvePoint, Speedup, TrialSpec, Workload

Draw = Callable[[int], Workload]
Change = Callable[[int, Workload], Workload]
"""What is changed of the workload of a seed."""

POLICIES: Final = ("default", "specon+flowcon", "ahead", "shortest-remaining")
CURVES: Final = (VAE, BI_RNN, GRU)
NOISE: Final = 0.002
"""Of a report, as a part of the whole reduction: as in the published experiments."""
USUAL_STEPS: Final = 100
STEPS_SPREAD: Final = 0.6
"""Standard deviation of the logarithm of a trial's number of steps."""
STEP_SPREAD: Final = 0.8
"""Standard deviation of the logarithm of what a step takes; together they make 1.0 for a trial's length."""
STEPS: Final = (10, 1000)


@dataclass(frozen=True, slots=True)
class HeavyTailed:
    """Trials whose lengths are lognormal: the longest of a hundred takes ten times as long as the usual one.

    ``usual_s`` is the median length in lone seconds. Steps in all and the work of a step are drawn apart from each
    other, so that neither alone says how long a trial is. ``request`` and ``most`` are cores.
    """

    trials: int
    usual_s: float
    request: float
    most: float
    nodes: int = 4
    node_cores: float = NODE_CORES
    arrivals: ArrivalPattern = field(default_factory=AllAtOnce)

    def workload(self, seed: int) -> Workload:
        """Return the workload of ``seed``: lengths are the same whatever trials request and can use."""
        chance = generator(seed, "everyday", self.trials)
        times = self.arrivals.times(self.trials, generator(seed, "everyday", self.trials, "arrivals"))
        trials = []
        for number, at in enumerate(times, start=1):
            steps = round(USUAL_STEPS * math.exp(chance.gauss(0.0, STEPS_SPREAD)))
            steps = min(max(steps, STEPS[0]), STEPS[1])
            work = steps * self.usual_s / USUAL_STEPS * math.exp(chance.gauss(0.0, STEP_SPREAD))
            reports = replace(chance.choice(CURVES), noise=NOISE).reports(work, steps, chance)
            speedup = Speedup.linear(self.most)
            trials.append(TrialSpec(TrialId(f"job-{number:03d}"), at, work, reports, self.request, speedup))
        return Workload(tuple(trials), equal_nodes(self.nodes, self.node_cores))


DEMO_TRIALS, DEMO_NODES, DEMO_NODE_CORES = 14, 4, 0.45
DEMO_ARRIVALS: Final = FixedInterval(4.0)
DEMO_STEPS: Final = (100, 200, 400, 600)
DEMO_STEP_S: Final = (0.035, 0.04, 0.045, 0.05, 0.055)
"""CPU seconds of a step of the demo's five models, each measured over 100 steps of the job on one thread."""


def demo_workload(seed: int) -> Workload:
    """Return what ``workflows/demo.py`` submits, on four nodes of this machine."""
    chance = generator(seed, "everyday", "demo")
    trials = []
    for number, at in enumerate(DEMO_ARRIVALS.times(DEMO_TRIALS, chance), start=1):
        steps, step_s = chance.choice(DEMO_STEPS), chance.choice(DEMO_STEP_S)
        reports = replace(chance.choice(CURVES), noise=NOISE).reports(steps * step_s, steps, chance)
        trials.append(TrialSpec(TrialId(f"job-{number:02d}"), at, steps * step_s, reports, 0.05))
    return Workload(tuple(trials), equal_nodes(DEMO_NODES, DEMO_NODE_CORES))


SPEEDS: Final = (0.6, 0.8, 1.0, 1.6)
"""Of the four nodes' cores; together as fast as four nodes of speed 1."""
TRIALS_BY_MEMORY: Final = 4
OUTLIERS: Final = 0.1
TIMES_LONGER: Final = 10.0
STEP_VARIES: Final = 0.2
"""Standard deviation of what a step takes, as a part of the mean."""
CPU_EVERY_S: Final = 10.0
STOPPED: Final = 0.3
STOPPED_AFTER: Final = (0.2, 0.8)
POWER: Final = 0.85


def with_speeds(seed: int, workload: Workload) -> Workload:
    """Return ``workload`` on nodes of unlike speed; the seed says which is which."""
    speeds = generator(seed, "everyday", "speeds").sample(SPEEDS, len(SPEEDS))
    nodes = (replace(node, speed=speed) for node, speed in zip(workload.nodes, speeds, strict=True))
    return replace(workload, nodes=tuple(nodes))


def with_memory(seed: int, workload: Workload) -> Workload:  # noqa: ARG001 - Change's shape
    """Return ``workload`` with trials that request a fourth of a node's memory each."""
    memory = workload.nodes[0].memory / TRIALS_BY_MEMORY
    return replace(workload, trials=tuple(replace(trial, memory=memory) for trial in workload.trials))


def with_outliers(seed: int, workload: Workload) -> Workload:
    """Return ``workload`` with a tenth of the trials ten times as long, in as many steps."""
    chance = generator(seed, "everyday", "outliers")
    long = set(chance.sample(range(len(workload.trials)), round(OUTLIERS * len(workload.trials))))
    trials = (_longer(trial) if place in long else trial for place, trial in enumerate(workload.trials))
    return replace(workload, trials=tuple(trials))


def _longer(trial: TrialSpec) -> TrialSpec:
    reports = tuple(CurvePoint(TIMES_LONGER * report.work_s, report.value) for report in trial.reports)
    return replace(trial, work_s=TIMES_LONGER * trial.work_s, reports=reports)


def with_totals_untold(part: float, seed: int, workload: Workload) -> Workload:
    """Return ``workload`` with ``part`` of its trials, drawn by chance, that never say how many steps they have."""
    chance = generator(seed, "everyday", "untold")
    silent = set(chance.sample(range(len(workload.trials)), round(part * len(workload.trials))))
    return replace(
        workload,
        trials=tuple(
            replace(trial, steps_told=0) if place in silent else trial for place, trial in enumerate(workload.trials)
        ),
    )


def with_noisy_reports(seed: int, workload: Workload) -> Workload:
    """Return ``workload`` with steps that take unlike long, and CPU seconds that are told late.

    The work of each step is drawn from a gamma distribution; a trial's whole work stays what it is.
    """
    shape = STEP_VARIES**-2
    trials = []
    for number, trial in enumerate(workload.trials):
        chance = generator(seed, "everyday", "noisy", number)
        steps = [chance.gammavariate(shape, 1.0) for _ in trial.reports]
        whole, done, reports = sum(steps), 0.0, []
        for step, report in zip(steps, trial.reports, strict=True):
            done += step
            reports.append(CurvePoint(min(1.0, done / whole) * trial.work_s, report.value))
        trials.append(replace(trial, reports=tuple(reports), cpu_every_s=CPU_EVERY_S))
    return replace(workload, trials=tuple(trials))


def with_early_stops(seed: int, workload: Workload) -> Workload:
    """Return ``workload`` with trials that end before the steps they told of, as early stopping makes them."""
    chance = generator(seed, "everyday", "stopped")
    stopped = set(chance.sample(range(len(workload.trials)), round(STOPPED * len(workload.trials))))
    trials = (
        _stopped(trial, chance.uniform(*STOPPED_AFTER)) if place in stopped else trial
        for place, trial in enumerate(workload.trials)
    )
    return replace(workload, trials=tuple(trials))


def _stopped(trial: TrialSpec, part: float) -> TrialSpec:
    reports = trial.reports[: max(1, round(part * len(trial.reports)))]
    return replace(trial, work_s=reports[-1].work_s, reports=reports, steps_told=len(trial.reports))


def with_less_from_each_core(seed: int, workload: Workload) -> Workload:  # noqa: ARG001 - Change's shape
    """Return ``workload`` with trials whose speed grows as cores ** 0.85 from one core on, and linearly until then."""
    cores = (1.0, 2.0, 4.0, 8.0, NODE_CORES)
    speedup = Speedup(tuple((count, (count / NODE_CORES) ** POWER) for count in cores))
    return replace(workload, trials=tuple(replace(trial, speedup=speedup) for trial in workload.trials))


def changed(draw: Draw, change: Change) -> Draw:
    """Return what draws the workload of ``draw`` with ``change``."""
    return partial(_changed, draw, change)


def _changed(draw: Draw, change: Change, seed: int) -> Workload:
    return change(seed, draw(seed))


def _s5_under(assumptions: Assumptions) -> Draw:
    return EXPERIMENTS["S5"].under(assumptions).workload


_AT_ONCE: Final = HeavyTailed(trials=60, usual_s=120.0, request=1.0, most=NODE_CORES)
_MORE_THAN_FIT: Final = HeavyTailed(trials=100, usual_s=120.0, request=4.0, most=NODE_CORES)
_LAPTOP: Final = HeavyTailed(trials=24, usual_s=30.0, request=0.05, most=1.0, node_cores=1.0)
_POISSON: Final = HeavyTailed(trials=40, usual_s=60.0, request=1.0, most=NODE_CORES, arrivals=Poisson(30.0))
_FEW: Final = HeavyTailed(trials=6, usual_s=120.0, request=1.0, most=NODE_CORES)
_A1: Final[Draw] = _AT_ONCE.workload
_S5: Final[Draw] = EXPERIMENTS["S5"].workload
_THESIS: Final = Costs.thesis()
_SLOW_MOVES: Final = replace(_THESIS, leave_s=30.0, restore_s=30.0)

_EVERY: Final[tuple[tuple[str, str, Draw, Costs], ...]] = (
    ("A1", "60 trials all at once on 4 nodes, lengths heavy-tailed", _A1, _THESIS),
    (
        "A2",
        "100 all at once on 4 nodes, each requests 4 cores, so that 16 fit, and can use 16",
        _MORE_THAN_FIT.workload,
        _THESIS,
    ),
    ("A3", "A2, each can use only the 4 cores that it requests", replace(_MORE_THAN_FIT, most=4.0).workload, _THESIS),
    ("A4", "24 all at once on 4 nodes of one core, as on a laptop", _LAPTOP.workload, Costs.local()),
    ("A5", "S5, each further trial takes 5 % of a node's speed", _s5_under(Assumptions(contention=0.05)), _THESIS),
    ("A6", "S5, each further trial takes 15 % of a node's speed", _s5_under(Assumptions(contention=0.15)), _THESIS),
    ("A7", "S5 on nodes of speed 0.6 to 1.6", changed(_S5, with_speeds), _THESIS),
    ("A8", "S5, each can use 8 of 16 cores", _s5_under(Assumptions(cores=8.0)), _THESIS),
    ("A9", "S5, each can use 4 of 16 cores", _s5_under(Assumptions(cores=4.0)), _THESIS),
    ("A10", "S5, memory for 4 trials a node", changed(_S5, with_memory), _THESIS),
    ("A11", "the demo: 14 trials, one every 4 s, 4 nodes of 0.45 core", demo_workload, Costs.local()),
    (
        "A12",
        "40 trials on 4 nodes, one every 30 s by Poisson, a tenth of them ten times as long",
        changed(_POISSON.workload, with_outliers),
        _THESIS,
    ),
    ("A13", "S5, 30 % of the trials never tell their total", changed(_S5, partial(with_totals_untold, 0.3)), _THESIS),
    ("A14", "S5, no trial tells its total", changed(_S5, partial(with_totals_untold, 1.0)), _THESIS),
    ("A15", "A1, 30 % of the trials never tell their total", changed(_A1, partial(with_totals_untold, 0.3)), _THESIS),
    ("A16", "A1, no trial tells its total", changed(_A1, partial(with_totals_untold, 1.0)), _THESIS),
    ("A17", "S5, steps that take unlike long, CPU seconds told late", changed(_S5, with_noisy_reports), _THESIS),
    ("A18", "A1, steps that take unlike long, CPU seconds told late", changed(_A1, with_noisy_reports), _THESIS),
    ("A19", "S5, speed grows as cores ** 0.85", changed(_S5, with_less_from_each_core), _THESIS),
    ("A20", "A1, speed grows as cores ** 0.85", changed(_A1, with_less_from_each_core), _THESIS),
    ("A21", "S5, starts and moves cost what we measured on Argo", _S5, Costs.argo()),
    ("A22", "S5, a move takes 60 s", _S5, _SLOW_MOVES),
    ("A23", "S5, each requests 4 cores, so that 16 fit", _s5_under(Assumptions(request=4.0)), _THESIS),
    ("A24", "A1, 30 % of the trials stop before the steps that they told", changed(_A1, with_early_stops), _THESIS),
    ("A25", "6 trials all at once on 4 nodes", _FEW.workload, _THESIS),
)
EVERYDAY_EXPERIMENTS: Final = tuple(
    OwnExperiment(name, title, draw, published=tuple(map(Published, POLICIES)), costs=costs)
    for name, title, draw, costs in _EVERY
)
"""A1 to A25. Nothing was published of any: ``published`` only names the policies that they are run under."""
