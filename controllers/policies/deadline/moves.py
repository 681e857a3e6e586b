"""Moves of trials whose deadlines their own nodes can't keep."""

from collections.abc import Iterable, Iterator, Mapping, Sequence

from controllers.core.model import Migrate, NodeName, Phase, Snapshot
from controllers.policies.deadline.forecast import Forecast
from controllers.policies.deadline.words import about
from controllers.policies.kit.capacity import Ledger


def moves(
    missing: Iterable[Forecast], ledger: Ledger, spare: Mapping[NodeName, float], cost: float
) -> Iterator[tuple[Migrate, str]]:
    """Yield moves that keep a deadline although they cost time, each with its reason, the earliest deadline first.

    Args:
        missing: Trials that may move and won't keep their deadlines where they are.
        ledger: What is requested of each node; kept up.
        spare: Cores of each node that nobody on it needs.
        cost: Seconds for which a trial that moves does not train.
    """
    left = dict(spare)
    for one in sorted(missing, key=lambda one: (one.left, one.trial.id)):
        time = one.left - cost
        need = one.pace.cores_for(one.steps / time) if time > 0 and one.pace.measured else float("inf")
        roomy = {
            name: cores
            for name, cores in left.items()
            if name != one.trial.node and cores >= max(need, one.trial.base_cpu) and ledger.fits(one.trial, name)
        }
        if roomy:
            node = min(roomy, key=lambda name: (-roomy[name], name))
            move = Migrate(one.trial.id, node)
            ledger.take(move)
            left[node] -= max(need, one.trial.base_cpu)
            yield move, f"deadline: {node} has the {need:.2g} cores that keep it in {about(one.left)}"


def to_idle_nodes(
    crowded: Sequence[Sequence[Forecast]], snapshot: Snapshot, ledger: Ledger, cost: float
) -> Iterator[tuple[Migrate, str]]:
    """Yield moves of late trials to nodes that nobody needs, each with its reason; none while any trial is to start.

    From the node with the most late trials goes the one with the most to do, if it has others beside it and more to do
    than the move costs: it is late in any case, but the sweep need not be.

    Args:
        crowded: For each node that has others beside them, the late trials that may move.
        snapshot: What is there.
        ledger: What is requested of each node; kept up.
        cost: Seconds for which a trial that moves does not train.
    """
    if any(trial.phase is Phase.PENDING for trial in snapshot.unended):
        return
    taken = {node for trial in snapshot.unended for node in (*trial.nodes, trial.moving_to)}
    idle = [node for node in ledger.nodes.values() if node.ready and node.name not in taken]
    sources = sorted(crowded, key=len, reverse=True)
    for node in sorted(idle, key=lambda node: (-node.cpu, node.name)):
        for place, late in enumerate(sources):
            worth = [one for one in late if one.fastest > cost and ledger.fits(one.trial, node.name)]
            if worth:
                move = Migrate(max(worth, key=lambda one: (one.fastest, one.trial.id)).trial.id, node.name)
                ledger.take(move)
                del sources[place]
                yield move, f"late in any case: {node.name} is idle"
                break
