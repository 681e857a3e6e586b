"""Sweeps on clusters of 30 and 100 nodes, N1 to N4: what works on four nodes need not work on a hundred.

Lengths are heavy-tailed, as in the everyday sweeps. Starts and moves cost what we measured on Argo. All four were fixed
before any policy was measured on them.
"""

from dataclasses import replace
from functools import partial
from typing import Final

from controllers.core.model import NodeName
from controllers.lab.simulation.experiments.arrivals import UniformWindow, generator
from controllers.lab.simulation.experiments.everyday import Draw, HeavyTailed, changed
from controllers.lab.simulation.experiments.experiment import OwnExperiment, Published
from controllers.lab.simulation.experiments.jobs import NODE_CORES
from controllers.worlds.simulated.scenario import Costs
from controllers.worlds.simulated.workload import NodeSpec, Speedup, Workload

POLICIES: Final = ("default", "specon+flowcon", "ahead", "shortest-remaining")
NODE_SIZES: Final = (8.0, 16.0, 32.0, 64.0)
"""Cores."""
USABLE: Final = (4.0, 8.0, 16.0)
"""Cores that a trial can use."""
FEW, MANY = 30, 100
"""Nodes."""
TRIALS_OF_A_NODE: Final = 4


def on_unlike_nodes(number: int, seed: int, workload: Workload) -> Workload:
    """Return ``workload`` on so many nodes of sizes that the seed draws; the first four are one of each."""
    chance = generator(seed, "many nodes", "sizes")
    sizes = [*NODE_SIZES, *chance.choices(NODE_SIZES, k=number - len(NODE_SIZES))]
    chance.shuffle(sizes)
    return replace(
        workload, nodes=tuple(NodeSpec(NodeName(f"worker-{place}"), size) for place, size in enumerate(sizes, start=1))
    )


def with_unlike_trials(seed: int, workload: Workload) -> Workload:
    """Return ``workload`` with trials that can use few or many cores, which the seed draws."""
    chance = generator(seed, "many nodes", "usable")
    trials = (replace(trial, speedup=Speedup.linear(chance.choice(USABLE))) for trial in workload.trials)
    return replace(workload, trials=tuple(trials))


def _sweep(nodes: int) -> HeavyTailed:
    return HeavyTailed(trials=TRIALS_OF_A_NODE * nodes, usual_s=120.0, request=1.0, most=NODE_CORES, nodes=nodes)


def _unlike(nodes: int, draw: Draw) -> Draw:
    return changed(changed(draw, partial(on_unlike_nodes, nodes)), with_unlike_trials)


_EVERY: Final[tuple[tuple[str, str, Draw], ...]] = (
    ("N1", "120 trials all at once on 30 nodes, lengths heavy-tailed", _sweep(FEW).workload),
    (
        "N2",
        "120 trials in [0, 300] s on 30 nodes of 8 to 64 cores, each can use 4 to 16 cores",
        _unlike(FEW, replace(_sweep(FEW), arrivals=UniformWindow(300.0)).workload),
    ),
    (
        "N3",
        "400 all at once on 100 nodes of 8 to 64 cores, each can use 4 to 16 cores",
        _unlike(MANY, _sweep(MANY).workload),
    ),
    (
        "N4",
        "400 in [0, 600] s on 100 nodes, each can use 4 to 16 cores",
        changed(replace(_sweep(MANY), arrivals=UniformWindow(600.0)).workload, with_unlike_trials),
    ),
)
MANY_NODES_EXPERIMENTS: Final = tuple(
    OwnExperiment(name, title, draw, published=tuple(map(Published, POLICIES)), costs=Costs.argo())
    for name, title, draw in _EVERY
)
"""N1 to N4. Nothing was published of any: ``published`` only names the policies that they are run under."""
