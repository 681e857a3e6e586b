"""Sweeps to train kais on, to choose among its checkpoints by, and to test it on: nothing in common.

They differ in how many nodes there are and how large these are, in how trials arrive, in how their lengths are
distributed, and in their learning curves. Within a kind, the seed draws all of these.
"""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from random import Random
from typing import Final

from controllers.core.model import NodeName, TrialId
from controllers.lab.simulation.experiments.arrivals import (
    AllAtOnce,
    ArrivalPattern,
    FixedInterval,
    Poisson,
    Trace,
    UniformWindow,
    generator,
)
from controllers.lab.simulation.experiments.jobs import BI_RNN, GRU, VAE, Curve
from controllers.worlds.simulated.workload import NodeSpec, Speedup, TrialSpec, Workload

NOISE: Final = 0.002
TRAINING_REPORTS: Final = 8
"""Reports of a trial in training: few, so that a simulated sweep takes a tenth of a second."""
REPORTS: Final = 60
"""Reports of a trial in the test."""
PER_NODE: Final = (2, 5)
"""Trials that there are for each node, at least and at most."""
MOST_TRIALS: Final = 48
BURSTS: Final = 4


@dataclass(frozen=True, slots=True)
class Shape:
    """What is drawn of a sweep, beside its trials: ``usual_s`` is the median length alone on a node."""

    nodes: int
    cores: tuple[float, ...]
    trials: int
    usual_s: float
    curve: Curve
    request: float
    reports: int


def training(seed: int) -> Workload:
    """Return a sweep to train on: 2 to 16 nodes, lengths lognormal, arrivals by chance or all at once."""
    chance = generator(seed, "kais", "training")
    nodes, size = chance.choice((2, 3, 5, 6, 7, 9, 12, 16)), chance.choice((2.0, 3.0, 6.0, 12.0, 20.0, 24.0, 48.0))
    unlike = chance.choice(((1.0,), (0.25, 0.5, 1.0, 1.5, 2.0)))
    sizes = tuple(size * chance.choice(unlike) for _ in range(nodes))
    spread = chance.uniform(0.2, 1.2)
    trials = _trials(nodes, chance, MOST_TRIALS)
    shape = Shape(
        nodes, sizes, trials, math.exp(chance.uniform(math.log(30), math.log(400))), chance.choice((VAE, BI_RNN)),
        chance.choice((0.02, 0.05, 0.1, 0.2, 0.3)), TRAINING_REPORTS,
    )  # fmt: skip
    gap = shape.usual_s / nodes * chance.uniform(0.2, 1.5)
    arrivals = chance.choice((AllAtOnce(), Poisson(gap), UniformWindow(gap * trials)))
    return _workload(shape, arrivals, lambda: math.exp(chance.gauss(0.0, spread)), chance)


def validation(seed: int) -> Workload:
    """Return a sweep to choose a checkpoint by: 10 to 14 nodes, lengths of a gamma distribution, a trial at a time."""
    chance = generator(seed, "kais", "validation")
    nodes, size = chance.choice((10, 11, 14)), chance.choice((5.0, 10.0, 18.0))
    trials = _trials(nodes, chance, MOST_TRIALS)
    shape = Shape(
        nodes, (size,) * nodes, trials, chance.uniform(60, 300), Curve(early=0.8), chance.choice((0.06, 0.12, 0.25)),
        TRAINING_REPORTS,
    )  # fmt: skip
    arrivals = FixedInterval(shape.usual_s / nodes * chance.uniform(0.1, 0.6))
    return _workload(shape, arrivals, lambda: max(0.05, chance.gammavariate(0.8, 1.25)), chance)


def test(nodes: int, seed: int) -> Workload:
    """Return a sweep of the test: short and long trials, which come in bursts to nodes of 16 cores, or of 8 and 32."""
    chance = generator(seed, "kais", "test", nodes)
    cores = (16.0,) * nodes if seed % 2 == 0 else tuple(chance.choice((8.0, 32.0)) for _ in range(nodes))
    trials = 4 * nodes
    shape = Shape(nodes, cores, trials, 150.0, chance.choice((GRU, VAE)), 0.0625, REPORTS)
    bursts = sorted(chance.uniform(0.0, 300.0) for _ in range(BURSTS - 1))
    times = sorted(chance.choice((0.0, *bursts)) + chance.uniform(0.0, 20.0) for _ in range(trials))

    def length() -> float:
        return chance.uniform(0.2, 0.6) if chance.random() < 0.7 else chance.uniform(2.0, 5.0)  # noqa: PLR2004

    return _workload(shape, Trace(tuple(times)), length, chance)


KINDS: Final[Mapping[str, Callable[[int], Workload]]] = {"training": training, "validation": validation}


def _trials(nodes: int, chance: Random, most: int) -> int:
    return max(4, min(most, round(nodes * chance.uniform(*PER_NODE))))


def _workload(shape: Shape, arrivals: ArrivalPattern, length: Callable[[], float], chance: Random) -> Workload:
    """Return the sweep of ``shape``; ``length`` draws that of a trial as a multiple of the usual one."""
    usual_cores = sum(shape.cores) / shape.nodes
    curve = replace(shape.curve, noise=NOISE)
    trials = []
    for number, at in enumerate(arrivals.times(shape.trials, chance)):
        most = max(0.1, usual_cores * chance.choice((0.25, 0.5, 0.8, 1.0)))
        work = shape.usual_s * length()
        trials.append(
            TrialSpec(
                TrialId(f"t{number:03d}"),
                at,
                work,
                curve.reports(work, shape.reports, chance),
                min(usual_cores * shape.request, *shape.cores),
                Speedup.linear(most),
            )
        )
    nodes = tuple(NodeSpec(NodeName(f"n{number:03d}"), cores) for number, cores in enumerate(shape.cores))
    return Workload(tuple(trials), nodes)
