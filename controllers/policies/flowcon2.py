"""FlowCon 2.0: FlowCon's shares over a cluster, with placement (Sharma, Fordham University 2022).

Only the abstract is public: it tells of placement decisions over homogeneous and heterogeneous nodes and what they
bring. The rules of placement and moves are our own, made of what FlowCon measures anyway.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import ClassVar

from controllers.core.actions import Action, Decision, Migrate, Place, Proposal, Resize
from controllers.core.model import Category, Node, NodeName, Snapshot, Trial, TrialId
from controllers.core.policy import CLOCK_SLACK
from controllers.policies.flowcon import FlowConRule
from controllers.policies.flowcon.measuring import FlowConMemo, FlowConState
from controllers.policies.kit.asked_moves import AskedMoves, with_destinations
from controllers.policies.kit.capacity import reconcile
from controllers.policies.kit.occupancy import Occupancy, weight
from controllers.policies.kit.places import places, still_starting, with_places

BUSY = 0.8
"""Part of a node's cores in use from which on its trials are taken to wait on CPU."""

Memos = Mapping[TrialId, FlowConMemo]

_NEW = FlowConMemo()


@dataclass(frozen=True, slots=True)
class FlowCon2State:
    """FlowCon's own state, where trials were placed that have yet to start, the moves, and when to look for more."""

    shares: FlowConState = field(default_factory=FlowConState)
    starting: Mapping[TrialId, NodeName] = field(default_factory=dict)
    moves: AskedMoves = field(default_factory=AskedMoves)
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
    state_type: ClassVar[type[FlowCon2State]] = FlowCon2State
    needs: ClassVar[frozenset[type[Action]]] = frozenset({Place, Resize, Migrate})
    placement: ClassVar[str] = "least weight of categories per core"
    shares: ClassVar[str] = "by growth efficiency, as flowcon"
    moves: ClassVar[str] = "the least efficient trial, from where new ones wait to where all are completing"
    most_moves: ClassVar[int | None] = 1

    def decide(self, snapshot: Snapshot, state: FlowCon2State) -> Decision[FlowCon2State]:
        """Share out, place what waits, and look for moves where that is due."""
        shares = self.share(snapshot, state.shares)
        memos, moves = shares.state.trials, state.moves.answered(snapshot)
        starting = still_starting(snapshot, state.starting)
        occupancy = Occupancy.of(with_destinations(snapshot, moves.asked), starting)

        def with_new_trial(node: Node, trials: Sequence[Trial]) -> float:
            return weight_per_core(node, trials, memos) + weight([Category.PROGRESSING]) / node.cpu

        def because(node: Node, cost: float) -> str:
            return f"placing: {node.name} has the least that still grows per core ({cost:.3g} with it)"

        placing = list(places(snapshot, occupancy, with_new_trial, because))
        due = snapshot.now >= state.due_at - CLOCK_SLACK
        moving = list(reliefs(occupancy, memos, moves)) if due else []
        kept, clashing = reconcile((*placing, *moving, *shares.proposals), snapshot)
        for proposal in kept:
            if isinstance(proposal.action, Migrate):
                moves = moves.with_asked(occupancy.capacity.trials[proposal.action.trial], proposal.action.node)
        due_at = snapshot.now + self.interval if due else state.due_at
        return Decision(
            FlowCon2State(shares.state, with_places(starting, kept), moves, due_at),
            kept,
            None if shares.wake_at is None else min(due_at, shares.wake_at),
            shares.assessments,
            clashing,
        )


def weight_per_core(node: Node, trials: Sequence[Trial], memos: Memos) -> float:
    """Return the categories' weights of ``trials`` in sum, per core of ``node``; one that is not known yet is new."""
    return weight(memos.get(trial.id, _NEW).category for trial in trials) / node.cpu


def reliefs(occupancy: Occupancy, memos: Memos, moves: AskedMoves) -> Iterator[Proposal]:
    """Yield at most one move from each crowded node to one that has only completing trials; ``occupancy`` is kept up.

    A node is crowded while at least two trials share it and its CPU is busy. The crowded node of most weight per core
    comes first; its trial of least growth efficiency goes to where the weight per core, with it, becomes least, if that
    is below what it leaves. Without new trials to make room for, only a node that is idle takes one.
    """
    nodes = {node.name: node for node in occupancy.ready()}
    weights = {name: weight_per_core(node, occupancy.on(name), memos) for name, node in nodes.items()}
    crowded = [name for name, node in nodes.items() if occupancy.count(name) > 1 and node.cpu_used >= BUSY * node.cpu]
    calm = [name for name in nodes if _completing(occupancy.on(name), memos)]
    for source in sorted(crowded, key=lambda name: (-weights[name], name)):
        trial = _least_efficient(occupancy.on(source), memos, moves)
        if trial is None:
            continue
        new = any(memos.get(member.id, _NEW).category is Category.PROGRESSING for member in occupancy.on(source))
        roomy = [name for name in calm if (new or not occupancy.on(name)) and occupancy.capacity.fits(trial, name)]
        after = {name: weight_per_core(nodes[name], (*occupancy.on(name), trial), memos) for name in roomy}
        target = min(after, key=lambda name: (after[name], name), default=None)
        if target is None or after[target] >= weights[source]:
            continue
        least = f"growth efficiency {memos[trial.id].efficiency:.3g} is the least on {source}, where trials wait on CPU"
        why = "has completing trials only" if occupancy.on(target) else "is idle"
        occupancy.move(trial, target)
        calm = [name for name in calm if name != target or _completing(occupancy.on(name), memos)]
        yield Proposal(Migrate.to(target, trial), f"making room: {least}; {target} {why}")


def _completing(trials: Sequence[Trial], memos: Memos) -> bool:
    """Whether all of a node's trials are completing; so are those of an idle one."""
    return all(trial.id in memos and memos[trial.id].category is Category.CONVERGED for trial in trials)


def _least_efficient(trials: Sequence[Trial], memos: Memos, moves: AskedMoves) -> Trial | None:
    measured = [
        (memo.efficiency, trial.id, trial)
        for trial in trials
        if moves.allows(trial) and (memo := memos[trial.id]).efficiency is not None and not memo.stale
    ]
    return min(measured)[2] if measured else None
