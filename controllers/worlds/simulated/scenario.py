"""One simulated run: what is simulated, at what cost, from which seed."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from controllers.core.model import NodeName, TrialId
from controllers.worlds.simulated.costs import Costs
from controllers.worlds.simulated.workload import Workload, WorkloadError


@dataclass(frozen=True)
class Scenario:
    """A workload, what things cost, and the seed of whatever is drawn by chance (ties between nodes).

    ``pinned`` names the node of a trial's first attempt, so that policies can be compared from the same initial
    placement; trials that it leaves out go where the default scheduler wants them.
    """

    workload: Workload
    costs: Costs = field(default_factory=Costs.argo)
    seed: int = 0
    pinned: Mapping[TrialId, NodeName] = field(default_factory=dict)

    def __post_init__(self) -> None:
        trials = {trial.id for trial in self.workload.trials}
        nodes = {node.name for node in self.workload.nodes}
        for trial, node in self.pinned.items():
            if trial not in trials or node not in nodes:
                message = f"pinned[{trial}] = {node}: no such {'trial' if trial not in trials else 'node'}"
                raise WorkloadError(message)
