"""First placement by measured use, as the thesis says that its default scheduler chose (ch. 6.2.3).

kube-scheduler looks at requests. Where the thesis's Fig. 6.21 shows nodes that it left unevenly filled, it says that
"the default scheduler purely based on the current resource usage"; this is that rule, to see what follows from it.
"""

from hashlib import sha256
from typing import ClassVar

from pydantic import Field

from controllers.core.model import Action, Decision, NodeName, Place, Proposal, Snapshot, Trial
from controllers.policies.kit.capacity import Ledger
from controllers.policies.kit.stateless import NoState, Stateless
from controllers.policies.wrappers.pinned import waits


class LeastUsed(Stateless):
    """Places each first attempt where the least of the CPU is busy; does nothing else."""

    name: ClassVar[str] = "least-used"
    summary: ClassVar[str] = "starts every trial on the node with the least of its CPU in use, and leaves it there"
    source: ClassVar[str] = "thesis ch. 6.2.3, on Fig. 6.21 (its account of DS); for comparison"
    needs: ClassVar[frozenset[type[Action]]] = frozenset({Place})
    placement: ClassVar[str] = "least of the CPU in use"

    told_apart: float = Field(
        default=0.01, ge=0, le=1, description="difference in use, as a share of a node, that counts; with 1, none does"
    )
    seed: int = Field(default=0, description="breaks ties between nodes that are used alike")

    def decide(self, snapshot: Snapshot, state: NoState) -> Decision[NoState]:
        """Place what waits, in the order of submission; trials placed together are seen to use what they ask for."""
        ledger = Ledger.of(snapshot)
        used = {node.name: node.cpu_used / node.cpu for node in snapshot.nodes if node.ready and node.cpu > 0}
        proposals: list[Proposal] = []
        for trial in sorted(filter(waits, snapshot.trials), key=lambda trial: (trial.submitted_at, trial.id)):
            roomy = [name for name in used if ledger.fits(trial, name)]
            if not roomy:
                continue
            least = min(used[name] for name in roomy)
            node = self._drawn(trial, sorted(name for name in roomy if used[name] <= least + self.told_apart))
            proposals.append(Proposal(Place(trial.id, node), f"{used[node]:.0%} of {node} in use"))
            ledger.take(proposals[-1].action)
            used[node] += trial.base_cpu / ledger.nodes[node].cpu
        return Decision(state, tuple(proposals))

    def _drawn(self, trial: Trial, names: list[NodeName]) -> NodeName:
        drawn = int.from_bytes(sha256(f"{self.seed}:{trial.id}".encode()).digest())
        return names[drawn % len(names)]
