"""Compares population based training with ``promote`` and with a sweep that only searches, on two real trainings.

    python -m benchmarks.population [--seeds 20] [--tasks digits diabetes]

Each trial is a network that really trains on real data, in this process; what it costs, where it runs and when is
simulated, with the production engine, guards and policies. Twelve trials draw a learning rate, a momentum and a weight
decay from the same search with the same seed under every policy; ``promote`` also gets twice as many, as it trains
fewer of them to their end. A trial is judged by its loss on rows for validation; what counts in the end is the loss on
other rows, of the model that is the best by the former.

The table shows the mean over seeds, how it differs from that of the search alone (paired by seed, with the 95 %
interval of a bootstrap), and core hours. It was fixed before anything was measured.
"""

import argparse
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

import numpy as np
from numpy.typing import NDArray
from rich.console import Console
from rich.table import Table
from sklearn.datasets import load_diabetes, load_digits

from controllers.core.model import NodeName, Point, TrialId
from controllers.lab.simulation.run import simulate
from controllers.policies.registry import parse_policy
from controllers.record.timeline import EventKind, TimelineEvent
from controllers.search import Dimension, NumberRange, SearchSpec
from controllers.worlds.simulated.scenario import Costs, Scenario
from controllers.worlds.simulated.workload import CurvePoint, NodeSpec, TrialSpec, Workload

Array = NDArray[np.float64]
STEPS: Final = 60
STEP_S: Final = 5.0
"""Seconds of a step with one core: a training takes five minutes, a start some seconds."""
TRIALS: Final = 12
HIDDEN: Final = 32
BATCH: Final = 32
MOST_LOSS: Final = 1e6
"""A training with a greater one has diverged."""
SPACE: Final = (
    Dimension(name="lr", domain=NumberRange(low=1e-4, high=1.0, log=True)),
    Dimension(name="momentum", domain=NumberRange(low=0.0, high=0.95)),
    Dimension(name="decay", domain=NumberRange(low=1e-6, high=0.1, log=True)),
)
COMPARED: Final[Mapping[str, tuple[str, int]]] = {
    "search alone": ("default", TRIALS),
    "population": ("population", TRIALS),
    "promote, rungs=best": ("promote:rungs=best", TRIALS),
    "promote, twice as many": ("promote:rungs=best", 2 * TRIALS),
}
"""Each policy with its number of trials; settings are the defaults."""


@dataclass(frozen=True)
class Rows:
    """Inputs, one row for each example, and what is wanted of each."""

    inputs: Array
    wanted: Array


@dataclass(frozen=True)
class RealTask:
    """Rows to train with, to judge trials by, and to measure by; ``classes`` tells whether shares are wanted."""

    train: Rows
    judge: Rows
    measure: Rows
    classes: bool


def digits() -> RealTask:
    """Return the ten digits of scikit-learn, an eighth of whose labels for training are wrong."""
    inputs, labels = load_digits(return_X_y=True)
    chance = np.random.default_rng(7)
    order = chance.permutation(len(labels))
    inputs, labels = inputs[order] / 16.0, labels[order]
    wrong = chance.random(len(labels)) < 1 / 8
    noisy = np.where(wrong, chance.integers(0, 10, len(labels)), labels)
    return _parts(inputs, np.eye(10)[noisy], np.eye(10)[labels], (900, 1350), classes=True)


def diabetes() -> RealTask:
    """Return the regression on the diabetes data of scikit-learn, all columns scaled to a deviation of one."""
    inputs, wanted = load_diabetes(return_X_y=True)
    order = np.random.default_rng(7).permutation(len(wanted))
    inputs, wanted = inputs[order] / inputs.std(axis=0), (wanted[order] - wanted.mean()) / wanted.std()
    return _parts(inputs, wanted[:, None], wanted[:, None], (220, 330), classes=False)


def _parts(inputs: Array, noisy: Array, wanted: Array, ends: tuple[int, int], *, classes: bool) -> RealTask:
    first, second = ends
    return RealTask(
        Rows(inputs[:first], noisy[:first]),
        Rows(inputs[first:second], wanted[first:second]),
        Rows(inputs[second:], wanted[second:]),
        classes,
    )


TASKS: Final = {"digits": digits, "diabetes": diabetes}


@dataclass
class SmallNetwork:
    """A network of one hidden layer: its weights, how fast each moves, and the order in which it sees its rows."""

    weights: list[Array]
    speeds: list[Array]
    chance: np.random.Generator

    @classmethod
    def begun(cls, task: RealTask, seed: int) -> "SmallNetwork":
        """Return one that has learnt nothing."""
        chance = np.random.default_rng(seed)
        sizes = (task.train.inputs.shape[1], HIDDEN, task.train.wanted.shape[1])
        shapes = [(sizes[0], HIDDEN), (1, HIDDEN), (HIDDEN, sizes[2]), (1, sizes[2])]
        weights = [chance.normal(0, 1 / math.sqrt(rows), (rows, columns)) for rows, columns in shapes]
        weights[1], weights[3] = np.zeros(shapes[1]), np.zeros(shapes[3])
        return cls(weights, [np.zeros(shape) for shape in shapes], chance)

    def copied(self) -> "SmallNetwork":
        """Return a copy, as a checkpoint is."""
        chance = np.random.default_rng()
        chance.bit_generator.state = self.chance.bit_generator.state
        return SmallNetwork([one.copy() for one in self.weights], [one.copy() for one in self.speeds], chance)

    def train(self, task: RealTask, point: Mapping[str, float]) -> None:
        """Make a step: once through all rows."""
        rows = self.chance.permutation(len(task.train.inputs))
        with np.errstate(all="ignore"):  # a training that diverges is one of the cases
            for begin in range(0, len(rows), BATCH):
                batch = rows[begin : begin + BATCH]
                slopes = self._slopes(task, task.train.inputs[batch], task.train.wanted[batch])
                for place, slope in enumerate(slopes):
                    whole = slope + point["decay"] * self.weights[place]
                    self.speeds[place] = point["momentum"] * self.speeds[place] - point["lr"] * whole
                    self.weights[place] = self.weights[place] + self.speeds[place]

    def loss(self, task: RealTask, rows: Rows) -> float:
        """Return cross entropy or half the squared error, NaN where it has diverged."""
        with np.errstate(all="ignore"):
            _, out = self._out(task, rows.inputs)
            lost = -np.log(out + 1e-12) * rows.wanted if task.classes else (out - rows.wanted) ** 2 / 2
            mean = float(lost.sum(axis=1).mean())
        return mean if mean < MOST_LOSS else math.nan

    def _out(self, task: RealTask, inputs: Array) -> tuple[Array, Array]:
        hidden = np.tanh(inputs @ self.weights[0] + self.weights[1])
        out = hidden @ self.weights[2] + self.weights[3]
        if task.classes:
            out = np.exp(out - out.max(axis=1, keepdims=True))
            out = out / out.sum(axis=1, keepdims=True)
        return hidden, out

    def _slopes(self, task: RealTask, inputs: Array, wanted: Array) -> list[Array]:
        hidden, out = self._out(task, inputs)
        above = (out - wanted) / len(inputs)
        below = above @ self.weights[2].T * (1 - hidden**2)
        return [inputs.T @ below, below.sum(axis=0)[None], hidden.T @ above, above.sum(axis=0)[None]]


@dataclass
class Trainings:
    """How the trials of one sweep train: each for real, as soon as it is known with what."""

    task: RealTask
    seed: int
    checkpoints: dict[TrialId, list[SmallNetwork]] = field(default_factory=dict)

    def trained(self, spec: TrialSpec, point: Point) -> TrialSpec:
        """Return ``spec`` as it trains with ``point`` from its beginning."""
        begun = SmallNetwork.begun(self.task, self.seed * 1000 + int(spec.id[1:]))
        return self._goes_on(spec, [begun], (), point)

    def followed(self, spec: TrialSpec, parent: TrialSpec, work_s: float, point: Point) -> TrialSpec:
        """Return ``spec`` as it goes on with ``point`` from a checkpoint of ``parent``."""
        step = round(work_s / STEP_S)
        return self._goes_on(spec, self.checkpoints[parent.id][: step + 1], parent.reports[:step], point)

    def _goes_on(
        self, spec: TrialSpec, before: list[SmallNetwork], reports: Sequence[CurvePoint], point: Point
    ) -> TrialSpec:
        known, values = list(before), {name: float(value) for name, value in point}
        made = list(reports)
        for step in range(len(known), STEPS + 1):
            network = known[-1].copied()
            network.train(self.task, values)
            known.append(network)
            made.append(CurvePoint(step * STEP_S, network.loss(self.task, self.task.judge)))
        self.checkpoints[spec.id] = known
        return replace(spec, work_s=STEPS * STEP_S, reports=tuple(made))

    def measured(self, trial: TrialId, judged: float) -> float:
        """Return the loss of a trial, where it was last ``judged`` so, on the rows that nobody was judged by."""
        losses = [network.loss(self.task, self.task.judge) for network in self.checkpoints[trial]]
        step = max(place for place, loss in enumerate(losses) if loss == judged)
        return self.checkpoints[trial][step].loss(self.task, self.task.measure)


@dataclass(frozen=True)
class Came:
    """What a sweep came to: the loss that counts, core hours, and seconds until its end."""

    loss: float
    core_hours: float
    ended_s: float


def run(task: RealTask, policy: str, trials: int, seed: int) -> Came:
    """Return what a sweep of so many trials under ``policy`` came to."""
    search = SearchSpec(sampler="random", seed=seed, space=SPACE).written()
    reports = tuple(CurvePoint(step * STEP_S, 1.0) for step in range(1, STEPS + 1))
    specs = tuple(
        TrialSpec(
            id=TrialId(f"t{number:03d}"),
            submitted_at=0.0,
            work_s=STEPS * STEP_S,
            reports=reports,
            cpu=1.0,
            search=search,
            checkpoint_every_s=STEP_S,
        )
        for number in range(trials)
    )
    nodes = tuple(NodeSpec(NodeName(f"n{number}"), 4.0) for number in range(3))
    trainings = Trainings(task, seed)
    done = simulate(Scenario(Workload(specs, nodes), Costs.argo(), seed), parse_policy(policy), surrogate=trainings)
    ends = [(trial.final_metric, trial.id) for trial in done.result.trials if trial.final_metric is not None]
    judged, best = min((value, name) for value, name in ends if math.isfinite(value))
    ended_s = max(trial.completed_s for trial in done.result.trials)
    return Came(trainings.measured(TrialId(best), judged), _core_hours(done.timeline), ended_s)


def _core_hours(timeline: Sequence[TimelineEvent]) -> float:
    """Return what all trials used, from the timeline's events that tell what each has used since its last one."""
    used, since = 0.0, dict[str, float]()
    for event in timeline:
        if event.kind is EventKind.USAGE and event.value is not None:
            used += event.value * (event.at - since.get(event.trial, 0.0))
            since[event.trial] = event.at
    return used / 3600


def interval(differences: Sequence[float]) -> tuple[float, float]:
    """Return the 95 % interval of the mean of ``differences``, by 10,000 bootstrap samples."""
    given = np.array(differences)
    chance = np.random.default_rng(1)
    means = given[chance.integers(0, len(given), (10_000, len(given)))].mean(axis=1)
    low, high = np.percentile(means, (2.5, 97.5))
    return float(low), float(high)


def table(name: str, came: Mapping[str, Sequence[Came]]) -> Table:
    """Return the table of a task."""
    made = Table(title=f"{name}: {len(came['search alone'])} seeds")
    for column in ("", "trials", "loss", "less than the search alone", "95 % interval", "core hours", "minutes"):
        made.add_column(column, justify="left" if not column else "right")
    alone = [one.loss for one in came["search alone"]]
    for title, runs in came.items():
        gained = [before - one.loss for before, one in zip(alone, runs, strict=True)]
        low, high = interval(gained)
        made.add_row(
            title,
            str(COMPARED[title][1]),
            f"{np.mean([one.loss for one in runs]):.4f}",
            f"{np.mean(gained):+.4f}",
            f"{low:+.4f} to {high:+.4f}",
            f"{np.mean([one.core_hours for one in runs]):.2f}",
            f"{np.mean([one.ended_s for one in runs]) / 60:.1f}",
        )
    return made


def main() -> None:
    """Run all sweeps, and print a table for each task."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--tasks", nargs="+", default=list(TASKS), choices=list(TASKS))
    given = parser.parse_args()
    console = Console(width=120)
    for name in given.tasks:
        task, came = TASKS[name](), dict[str, list[Came]]()
        for seed in range(given.seeds):
            for title, (policy, trials) in COMPARED.items():
                came.setdefault(title, []).append(run(task, policy, trials, seed))
        console.print(table(name, came))


if __name__ == "__main__":
    main()
