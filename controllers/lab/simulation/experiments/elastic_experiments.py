"""Sweeps on clusters that grow from nothing and shrink back to it, Z1 to Z4, and on spot nodes, Y1 to Y3.

All of them were fixed before any policy was measured on them. Nodes are of one group of 8 cores; an hour costs 0.34, or
0.12 from the spot market, as US prices of compute-optimised machines of that size are. A node takes trials two minutes
after it was asked for, which is usual on all three clouds. The autoscaler has Karpenter's manners. Trials are those of
the everyday sweeps, half an hour long as a rule, and keep a checkpoint every five minutes of training.

How long spot nodes live is from https://github.com/skypilot-org/spot-traces, the data of Wu et al., "Can't Be Late",
NSDI 2024: in its week of April 2023, an AWS machine with a V100 stayed for 2.24 h on average in us-west-2c, and it took
0.82 h until there was one again. Their machines are lost one by one in our model, and asked for again at once.
"""

from dataclasses import dataclass, field, replace
from typing import Final

from controllers.core.model import NodeName
from controllers.lab.simulation.experiments.arrivals import AllAtOnce, ArrivalPattern, Poisson
from controllers.lab.simulation.experiments.everyday import HeavyTailed
from controllers.lab.simulation.experiments.experiment import OwnExperiment
from controllers.lab.simulation.measures import COSTS, LOSSES, NODES
from controllers.worlds.simulated.scaling import SpotMarket
from controllers.worlds.simulated.workload import NodeGroup, NodeSpec, Workload

CORES: Final = 8.0
PRICE: Final = 0.34
SPOT_PRICE: Final = 0.12
USUAL_S: Final = 1800.0
CHECKPOINT_S: Final = 300.0
LIFE_S: Final = 2.24 * 3600
RETRIES: Final = 1000
"""A trial whose nodes are taken again and again is not given up for that."""
POLICIES: Final = ("default", "fifo", "promote:rungs=best", "ahead")


@dataclass(frozen=True, slots=True)
class ElasticSweep:
    """A sweep whose nodes come and go: ``trials`` of heavy-tailed lengths that request a core each.

    ``most`` cores is what each can use; ``nodes`` is how many there can be, ``spot`` how the market takes them.
    ``fixed`` nodes are there all the time instead.
    """

    trials: int
    nodes: int
    most: float = 1.0
    arrivals: ArrivalPattern = field(default_factory=AllAtOnce)
    spot: SpotMarket | None = None
    fixed: bool = False

    def workload(self, seed: int) -> Workload:
        """Return the workload of ``seed``."""
        drawn = HeavyTailed(self.trials, USUAL_S, 1.0, self.most, self.nodes, CORES, self.arrivals).workload(seed)
        trials = tuple(replace(trial, checkpoint_every_s=CHECKPOINT_S, retries=RETRIES) for trial in drawn.trials)
        price = PRICE if self.spot is None else SPOT_PRICE
        if self.fixed:
            return Workload(trials, tuple(replace(node, price=price) for node in drawn.nodes))
        node = NodeSpec(NodeName("node"), CORES, price=price)
        return Workload(trials, (), groups=(NodeGroup(node, self.nodes, spot=self.spot),))


def _experiment(name: str, title: str, sweep: ElasticSweep) -> OwnExperiment:
    measures = (*NODES, *COSTS, *(LOSSES if sweep.spot else ()))
    return OwnExperiment(name, title, sweep.workload, measures=measures, compared=POLICIES)


_FROM_ZERO: Final = "nodes of 8 cores come and go, from none to"
_SPOT: Final = "spot nodes, taken after 2.24 h on average with"
ELASTIC_EXPERIMENTS: Final = (
    _experiment("Z1", f"40 trials at once, {_FROM_ZERO} 5: room for all", ElasticSweep(40, 5)),
    _experiment("Z2", f"100 trials at once, {_FROM_ZERO} 5", ElasticSweep(100, 5)),
    _experiment("Z3", f"40 trials within two hours, {_FROM_ZERO} 5", ElasticSweep(40, 5, arrivals=Poisson(180.0))),
    _experiment("Z4", f"40 trials at once that can use 4 cores each, {_FROM_ZERO} 5", ElasticSweep(40, 5, 4.0)),
    *(
        _experiment(
            f"Y{number}",
            f"100 trials on up to 5 {_SPOT} {told}",
            ElasticSweep(100, 5, spot=SpotMarket(notice_s, drains=False, mean_life_s=LIFE_S)),
        )
        for number, (told, notice_s) in enumerate(
            (("no notice", 0.0), ("15 s of notice", 15.0), ("120 s of notice", 120.0)), start=1
        )
    ),
)
