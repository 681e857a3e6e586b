"""FlowCon 2.0: FlowCon's shares over a cluster, with placement (Sharma, Fordham University 2022).

Only the abstract is public: it tells of placement decisions over homogeneous and heterogeneous nodes and what they
bring. The rules of placement and moves are our own, made of what FlowCon measures anyway.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import ClassVar

from controllers.core.model import Action, Category, Decision, Migrate, Node, NodeName, Place, Resize, Snapshot, TrialId
from controllers.core.policy import CLOCK_SLACK
from controllers.policies.flowcon.rule import FlowConRule
from controllers.policies.flowcon.state import FlowConState
from controllers.policies.flowcon2.moves import Memos, reliefs, weight_per_core
from controllers.policies.kit.category_weights import WEIGHTS
from controllers.policies.kit.first_places import NodeCost, places, starting, with_places
from controllers.policies.kit.occupancy import Occupancy
from controllers.policies.kit.reconciled import reconciled
from controllers.policies.kit.single_moves import SingleMoves, answered, headed


@dataclass(frozen=True, slots=True)
class FlowCon2State:
    """FlowCon's own state, where trials were placed that have yet to start, the moves, and when to look for more."""

    shares: FlowConState = field(default_factory=FlowConState)
    starting: Mapping[TrialId, NodeName] = field(default_factory=dict)
    moves: SingleMoves = field(default_factory=SingleMoves)
    due_at: float = 0.0


class FlowCon2(FlowConRule):
    """Places by categories' weights per core, shares as FlowCon 1.0, and moves slow trials away from new ones.

    **Placement.** With S = 2 |New| + 1.5 |Watching| + 1 |Completing| of the trials on a node of c cores, heading there
    or placed there, a new trial goes to the node of least (S + 2) / c that has room: itself counts as new, so that of
    empty nodes the largest is the first.

    **Moves.** Every ``interval``, from each node where trials wait on CPU (several of them, and 80 % of its cores in
    use), the trial of least growth efficiency goes to an idle node, or, where one of those that wait is new, to a node
    whose trials are all completing: if the weight per core there, with it, is below that of the node it leaves. Each
    trial moves at most once.
    """

    name: ClassVar[str] = "flowcon2"
    summary: ClassVar[str] = "places trials by how much is still growing on each node, then shares and moves by growth"
    source: ClassVar[str] = "Sharma 2022 (abstract; rules of placement and moves are ours); shares as flowcon"
    needs: ClassVar[frozenset[type[Action]]] = frozenset({Place, Resize, Migrate})
    placement: ClassVar[str] = "least weight of categories per core"
    shares: ClassVar[str] = "by growth efficiency, as flowcon"
    moves: ClassVar[str] = "the least efficient trial, from where new ones wait to where all are completing"
    most_moves: ClassVar[int | None] = 1

    @property
    def state_type(self) -> type[FlowCon2State]:
        """Type of the state."""
        return FlowCon2State

    def initial(self) -> FlowCon2State:
        """Return the state before the first decision."""
        return FlowCon2State()

    def decide(self, snapshot: Snapshot, state: FlowCon2State) -> Decision[FlowCon2State]:
        """Share out, place what waits, and look for moves where that is due."""
        shares = self.share(snapshot, state.shares)
        memos, moves = shares.state.trials, answered(snapshot, state.moves)
        placed = starting(snapshot, state.starting)
        occupancy = Occupancy.of(headed(snapshot, moves), placed)
        placing = list(places(snapshot, occupancy, _with_new(memos), _placed_because))
        due = snapshot.now >= state.due_at - CLOCK_SLACK
        moving = list(reliefs(occupancy, memos, moves)) if due else []
        kept, clashing = reconciled((*placing, *moving, *shares.proposals), snapshot)
        for proposal in kept:
            if isinstance(proposal.action, Migrate):
                moves = moves.with_asked(occupancy.ledger.trials[proposal.action.trial], proposal.action.node)
        due_at = snapshot.now + self.interval if due else state.due_at
        return Decision(
            FlowCon2State(shares.state, with_places(placed, kept), moves, due_at),
            kept,
            None if shares.wake_at is None else min(due_at, shares.wake_at),
            shares.assessments,
            clashing,
        )


def _with_new(memos: Memos) -> NodeCost:
    """Return the cost of a node: its weight per core with a new trial on it."""
    return lambda node, trials: weight_per_core(node, trials, memos) + WEIGHTS[Category.PROGRESSING] / node.cpu


def _placed_because(node: Node, cost: float) -> str:
    return f"placing: {node.name} has the least that still grows per core ({cost:.3g} with it)"
