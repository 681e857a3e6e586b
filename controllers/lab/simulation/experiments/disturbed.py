"""Sweeps on machines that others use too, X1 to X6: a laptop with a browser, neighbours on a cluster, stolen time.

All of them were fixed before any policy was measured on them. Requests say nothing of what is left: a node is as large
as ever, and its trials get less. X0 is the same sweep undisturbed.

In X1-blind to X5-blind, trials do not tell how long they wait for a CPU, as on macOS or with hooks of earlier versions.
So nothing says whether a trial can use no more, or others were in its way. They were made once policies had been
measured on X1 to X5.
"""

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from random import Random
from typing import Final

from controllers.core.model import NodeName, TrialId
from controllers.lab.simulation.experiments.arrivals import FixedInterval, generator
from controllers.lab.simulation.experiments.everyday import CURVES, NOISE
from controllers.lab.simulation.experiments.experiment import OwnExperiment
from controllers.lab.simulation.experiments.gang_experiments import gang_workload
from controllers.worlds.simulated.scenario import Costs
from controllers.worlds.simulated.workload import NodeSpec, TrialSpec, Workload

TRIALS, NODES, NODE_CORES = 14, 4, 0.4
STEPS: Final = (100, 600)
"""Fewest and most steps of a trial."""
STEP_S: Final = (0.13, 0.2)
"""Fewest and most core seconds of a step."""
REQUEST: Final = 0.05
ARRIVALS: Final = FixedInterval(4.0)
CPU_EVERY_S: Final = 1.0
END_S: Final = 36_000.0
"""Others' use is drawn for so many seconds; no sweep lasts longer. Afterwards it would stay as it was."""
DIP: Final = (50.0, 150.0, 0.5)
"""A dip begins and ends at these seconds, and leaves this part of each node."""
NOISY_S: Final = 10.0
NOISY: Final = (1.0, 1.0, 0.75, 0.5, 0.25)
"""Each node has one of these parts left, drawn again every ``NOISY_S`` seconds."""
SLOW: Final = 0.25
"""Part of the slow node's cores that is left."""
SLOW_FROM_S: Final = 30.0
"""Second from which on one node is slow."""
STOLEN: Final = 0.35
"""Part of every node's cores that is left while others steal the rest."""
SPELL_S: Final = (20.0, 120.0)
"""Fewest and most seconds of a spell of stealing, and of the quiet after it."""
GANGS_LATER: Final = 10.0
"""Gangs take ten times as long as the other trials, and so do the disturbances beside them."""

Disturb = Callable[[NodeSpec, Random, int], NodeSpec]
"""Returns a node with others on it, by its generator and its place among the nodes."""


def busy_workload(seed: int) -> Workload:
    """Return the sweep of ``seed``, undisturbed."""
    chance = generator(seed, "disturbed")
    trials = []
    for number, at in enumerate(ARRIVALS.times(TRIALS, chance), start=1):
        steps, step_s = chance.randint(*STEPS), chance.uniform(*STEP_S)
        reports = replace(chance.choice(CURVES), noise=NOISE).reports(steps * step_s, steps, chance)
        name = TrialId(f"job-{number:02d}")
        trials.append(TrialSpec(name, at, steps * step_s, reports, REQUEST, cpu_every_s=CPU_EVERY_S))
    nodes = (NodeSpec(NodeName(f"node-{place}"), NODE_CORES) for place in range(1, NODES + 1))
    return Workload(tuple(trials), tuple(nodes))


def disturbed(draw: Callable[[int], Workload], disturb: Disturb, seed: int) -> Workload:
    """Return the workload that ``draw`` gives, with others on its nodes."""
    workload = draw(seed)
    nodes = [
        disturb(node, generator(seed, "disturbed", "node", place), place) for place, node in enumerate(workload.nodes)
    ]
    return replace(workload, nodes=tuple(nodes))


def waits_untold(workload: Workload) -> Workload:
    """Return ``workload`` with trials that do not tell how long they wait for a CPU."""
    return replace(workload, trials=tuple(replace(trial, waits_untold=True) for trial in workload.trials))


def with_a_dip(node: NodeSpec, _: Random, __: int) -> NodeSpec:
    """Return ``node`` with half of it left for 100 seconds."""
    begins, ends, part = DIP
    return replace(node, supply=((begins, part * node.cpu), (ends, node.cpu)))


def with_noise(node: NodeSpec, chance: Random, _: int) -> NodeSpec:
    """Return ``node`` with another part of it left every ten seconds."""
    times = (NOISY_S * turn for turn in range(1, int(END_S / NOISY_S)))
    return replace(node, supply=tuple((at, chance.choice(NOISY) * node.cpu) for at in times))


def slow(since_s: float, node: NodeSpec, _: Random, place: int) -> NodeSpec:
    """Return the first node with a quarter of it left from ``since_s`` on, any other as it is."""
    return node if place else replace(node, supply=((since_s, SLOW * node.cpu),))


def stolen_now_and_then(node: NodeSpec, _: Random, __: int) -> NodeSpec:
    """Return ``node`` with spells in which others take two thirds of it: the same spells on all nodes."""
    chance = generator(0, "disturbed", "spells")
    at, taken, supply = 0.0, False, list[tuple[float, float]]()
    while at < END_S:
        at, taken = at + chance.uniform(*SPELL_S), not taken
        supply.append((at, (STOLEN if taken else 1.0) * node.cpu))
    return replace(node, supply=tuple(supply))


def both_later(node: NodeSpec, chance: Random, place: int) -> NodeSpec:
    """Return a node of gangs: the first turns slow, the others have a dip, and then now more, now less of them left."""
    if not place:
        return slow(SLOW_FROM_S * GANGS_LATER, node, chance, place)
    begins, ends, part = DIP
    times = (NOISY_S * GANGS_LATER * turn for turn in range(2, int(END_S / NOISY_S / GANGS_LATER)))
    noise = [(ends * GANGS_LATER + at, chance.choice(NOISY) * node.cpu) for at in times]
    return replace(node, supply=((begins * GANGS_LATER, part * node.cpu), (ends * GANGS_LATER, node.cpu), *noise))


_COMPARED: Final = ("default", "specon+flowcon", "ahead")
_SWEEP: Final = f"{TRIALS} trials, one every 4 s, on {NODES} nodes of {NODE_CORES} core"
_EVERY: Final[tuple[tuple[str, str, Disturb], ...]] = (
    ("X1", "others take half of each node from second 50 to 150", with_a_dip),
    ("X2", "every 10 s another part of each node is left, a quarter to all", with_noise),
    ("X3", "a quarter is left of one node of four", partial(slow, 0.0)),
    ("X4", "a quarter is left of one node of four from second 30 on", partial(slow, SLOW_FROM_S)),
    ("X5", "others take two thirds of all nodes, in spells of 20 to 120 s", stolen_now_and_then),
)
_UNTOLD: Final = "; waits are not told"


def _experiment(name: str, others: str, draw: Callable[[int], Workload]) -> OwnExperiment:
    return OwnExperiment(name, f"{_SWEEP}; {others}", draw, costs=Costs.local(), compared=_COMPARED)


def _blind(disturb: Disturb, seed: int) -> Workload:
    return waits_untold(disturbed(busy_workload, disturb, seed))


DISTURBED_EXPERIMENTS: Final = (
    _experiment("X0", "nobody else", busy_workload),
    *(_experiment(name, others, partial(disturbed, busy_workload, disturb)) for name, others, disturb in _EVERY),
    OwnExperiment(
        "X6",
        "E1's 40 elastic gangs on 6 nodes; one turns slow at second 300, the others have a dip, and then noise",
        partial(disturbed, gang_workload, both_later),
        compared=("default", "gang-fifo", "dragon+ahead", "ahead"),
    ),
    *(_experiment(f"{name}-blind", others + _UNTOLD, partial(_blind, disturb)) for name, others, disturb in _EVERY),
)
