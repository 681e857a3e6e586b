"""What the default scheduler does, for comparison: the real one, and the thesis's account of it."""

from hashlib import sha256
from typing import ClassVar

from pydantic import Field

from controllers.core.actions import Action, Decision, Place, Proposal
from controllers.core.model import Snapshot
from controllers.policies.kit.capacity import Capacity
from controllers.policies.kit.places import waiting
from controllers.policies.kit.settings import NoState, Stateless


class Default(Stateless):
    """The baseline, as the thesis's NA (ch. 6.1) and DS (ch. 6.2): trials stay where the scheduler put them.

    Each keeps the share that its author asked for.
    """

    name: ClassVar[str] = "default"
    summary: ClassVar[str] = "leaves every trial where the scheduler placed it, with the CPU it asked for"
    source: ClassVar[str] = "thesis ch. 6 (NA, DS)"
    needs: ClassVar[frozenset[type[Action]]] = frozenset()

    def decide(self, snapshot: Snapshot, state: NoState) -> Decision[NoState]:  # noqa: ARG002 - Policy's shape
        """Return no action, whatever happens."""
        return Decision(state)


class LeastUsed(Stateless):
    """Places each first attempt where the least of the CPU is busy; does nothing else.

    kube-scheduler looks at requests. Where the thesis's Fig. 6.21 shows nodes that it left unevenly filled, it says
    that "the default scheduler purely based on the current resource usage" (ch. 6.2.3); this is that rule, to see what
    follows from it.
    """

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
        capacity = Capacity.of(snapshot)
        used = {node.name: node.cpu_used / node.cpu for node in snapshot.nodes if node.ready and node.cpu > 0}
        proposals: list[Proposal] = []
        for trial in sorted(waiting(snapshot), key=lambda trial: (trial.submitted_at, trial.id)):
            roomy = [name for name in used if capacity.fits(trial, name)]
            if not roomy:
                continue
            least = min(used[name] for name in roomy)
            alike = sorted(name for name in roomy if used[name] <= least + self.told_apart)
            # Drawn by a hash, not by a generator: the same trial goes to the same node in every run of a seed.
            drawn = int.from_bytes(sha256(f"{self.seed}:{trial.id}".encode()).digest())
            node = alike[drawn % len(alike)]
            place = Place.on(node, trial)
            proposals.append(Proposal(place, f"{used[node]:.0%} of {node} in use"))
            capacity.apply(place)
            used[node] += trial.base_cpu / capacity.nodes[node].cpu
        return Decision(state, tuple(proposals))
