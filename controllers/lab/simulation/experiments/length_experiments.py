"""Sweeps of ours for what a policy makes of hyperparameters (L1, L2): all at once, more trials than fit.

In L1 the length of a trial follows from its parameters: what a step takes grows as ``width ** 1.5``, and ``steps`` is
how many there are. Its learning rate and batch say nothing of it. ``L1-blind`` has the same trials without their
parameters, and in L2 the parameters are those of other trials, so that they explain nothing. In ``L1-narrow`` and
``L1-narrow-blind`` trials can use no more than the cores that they request: then the order is all that there is to win.
"""

import math
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from random import Random
from typing import Final

from controllers.core.model import TrialId
from controllers.lab.simulation.experiments.arrivals import generator
from controllers.lab.simulation.experiments.experiment import OwnExperiment, Published, equal_nodes
from controllers.lab.simulation.experiments.jobs import NODE_CORES, VAE
from controllers.worlds.simulated.workload import Speedup, TrialSpec, Workload

TRIALS, NODES, REQUEST = 60, 4, 4.0
WIDTHS: Final = (64, 128, 256, 512)
STEPS: Final = (50, 100, 200)
BATCHES: Final = (16, 32, 64)
RATES: Final = (1e-4, 1e-1)
STEP_S: Final = 1.0
"""Core seconds of a step at the least width, where a trial has one core."""
POWER: Final = 1.5
NOISE: Final = 0.1
"""Standard deviation of the logarithm of what a step takes beside its width."""


def wide_workload(seed: int, most: float = NODE_CORES) -> Workload:
    """Return the trials of ``seed``: however many cores they can use (``most``), they need the same core seconds."""
    chance = generator(seed, "lengths")
    trials = (_trial(number, chance, most) for number in range(1, TRIALS + 1))
    return Workload(tuple(trials), equal_nodes(NODES, NODE_CORES))


def _trial(number: int, chance: Random, most: float) -> TrialSpec:
    width, steps, batch = chance.choice(WIDTHS), chance.choice(STEPS), chance.choice(BATCHES)
    rate = math.exp(chance.uniform(*map(math.log, RATES)))
    step_s = STEP_S * (width / WIDTHS[0]) ** POWER * math.exp(chance.gauss(0.0, NOISE))
    work = steps * step_s / most
    return TrialSpec(
        id=TrialId(f"job-{number:02d}"),
        submitted_at=0.0,
        work_s=work,
        reports=VAE.reports(work, steps, chance),
        cpu=REQUEST,
        speedup=Speedup.linear(most),
        parameters=(("batch", float(batch)), ("rate", rate), ("steps", float(steps)), ("width", float(width))),
    )


def blind(draw: Callable[[int], Workload], seed: int) -> Workload:
    """Return what ``draw`` returns, without the trials' parameters."""
    workload = draw(seed)
    return replace(workload, trials=tuple(replace(trial, parameters=()) for trial in workload.trials))


def confuse(draw: Callable[[int], Workload], seed: int) -> Workload:
    """Return what ``draw`` returns, where each trial has the parameters of another, drawn by chance."""
    workload = draw(seed)
    given = [trial.parameters for trial in workload.trials]
    generator(seed, "lengths", "confused").shuffle(given)
    pairs = zip(workload.trials, given, strict=True)
    return replace(workload, trials=tuple(replace(trial, parameters=parameters) for trial, parameters in pairs))


def _experiment(name: str, told: str, draw: Callable[[int], Workload]) -> OwnExperiment:
    title = f"{TRIALS} trials at once, requests of {REQUEST:g} cores, {NODES} nodes: {told}"
    published = tuple(map(Published, ("default", "ahead", "shortest-remaining")))
    return OwnExperiment(name, title, draw, published=published)


_NARROW: Final = partial(wide_workload, most=REQUEST)
LENGTH_EXPERIMENTS: Final = (
    _experiment("L1", "lengths follow from parameters", wide_workload),
    _experiment("L1-blind", "L1 without the parameters", partial(blind, wide_workload)),
    _experiment("L2", "parameters explain nothing", partial(confuse, wide_workload)),
    _experiment("L1-narrow", "L1 where trials can use no more than they request", _NARROW),
    _experiment("L1-narrow-blind", "L1-narrow without the parameters", partial(blind, _NARROW)),
)
