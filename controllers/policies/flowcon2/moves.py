"""FlowCon 2.0's move rule: trials that grow slowly leave those that wait on CPU."""

from collections.abc import Iterator, Mapping, Sequence

from controllers.core.model import Category, Migrate, Node, Proposal, Trial, TrialId
from controllers.policies.flowcon.state import TrialMemo
from controllers.policies.kit.category_weights import WEIGHTS
from controllers.policies.kit.occupancy import Occupancy
from controllers.policies.kit.single_moves import SingleMoves

BUSY = 0.8
"""Part of a node's cores in use from which on its trials are taken to wait on CPU."""

Memos = Mapping[TrialId, TrialMemo]


def weight_per_core(node: Node, trials: Sequence[Trial], memos: Memos) -> float:
    """Return the categories' weights of ``trials`` in sum, per core of ``node``; one that is not known yet is new."""
    return sum(WEIGHTS[memos.get(trial.id, TrialMemo()).category] for trial in trials) / node.cpu


def reliefs(occupancy: Occupancy, memos: Memos, moves: SingleMoves) -> Iterator[Proposal]:
    """Yield at most one move from each crowded node to one that has only completing trials; ``occupancy`` is kept up.

    A node is crowded while at least two trials share it and its CPU is busy. The crowded node of most weight per core
    comes first; its trial of least growth efficiency goes to where the weight per core, with it, becomes least, if that
    is below what it leaves. Without new trials to make room for, only a node that is idle takes one.
    """
    nodes = {node.name: node for node in occupancy.ready()}
    weights = {name: weight_per_core(node, occupancy.on(name), memos) for name, node in nodes.items()}
    crowded = [name for name, node in nodes.items() if _crowded(node, occupancy.on(name))]
    calm = [name for name in nodes if _completing(occupancy.on(name), memos)]
    for source in sorted(crowded, key=lambda name: (-weights[name], name)):
        trial = _least_efficient(occupancy.on(source), memos, moves)
        if trial is None:
            continue
        new = any(_is_new(one, memos) for one in occupancy.on(source))
        roomy = [name for name in calm if (new or not occupancy.on(name)) and occupancy.ledger.fits(trial, name)]
        after = {name: weight_per_core(nodes[name], (*occupancy.on(name), trial), memos) for name in roomy}
        target = min(after, key=lambda name: (after[name], name), default=None)
        if target is None or after[target] >= weights[source]:
            continue
        reason = _reason(memos[trial.id], source, target, idle=not occupancy.on(target))
        occupancy.move(trial, target)
        calm = [name for name in calm if name != target or _completing(occupancy.on(name), memos)]
        yield Proposal(Migrate(trial.id, target), reason)


def _crowded(node: Node, trials: Sequence[Trial]) -> bool:
    return len(trials) > 1 and node.cpu_used >= BUSY * node.cpu


def _is_new(trial: Trial, memos: Memos) -> bool:
    return memos.get(trial.id, TrialMemo()).category is Category.PROGRESSING


def _completing(trials: Sequence[Trial], memos: Memos) -> bool:
    """Whether all of a node's trials are completing; so are those of an idle one."""
    return all(trial.id in memos and memos[trial.id].category is Category.CONVERGED for trial in trials)


def _least_efficient(trials: Sequence[Trial], memos: Memos, moves: SingleMoves) -> Trial | None:
    measured = [
        (memo.efficiency, trial.id, trial)
        for trial in trials
        if moves.allows(trial) and (memo := memos[trial.id]).efficiency is not None and not memo.stale
    ]
    return min(measured)[2] if measured else None


def _reason(memo: TrialMemo, source: str, target: str, *, idle: bool) -> str:
    why = "is idle" if idle else "has completing trials only"
    least = f"growth efficiency {memo.efficiency:.3g} is the least on {source}, where trials wait on CPU"
    return f"making room: {least}; {target} {why}"
