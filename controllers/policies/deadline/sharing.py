"""How deadlines share a node and who leaves it: the fewest cores that keep each, and moves where a node can't."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from controllers.core.actions import Migrate
from controllers.core.model import NodeName, Phase, Snapshot, Trial, TrialId
from controllers.policies.deadline.forecast import Prospect, TrialOutlook, about
from controllers.policies.kit.capacity import Capacity


@dataclass(frozen=True, slots=True)
class CoreSplit:
    """Cores of each trial of a node; ``given_up`` are within reach of their deadlines alone, not beside the others."""

    shares: Mapping[TrialId, float]
    given_up: frozenset[TrialId]


@dataclass(frozen=True, slots=True)
class Floors:
    """What trials get that no deadline says anything about: those without any hope, and new ones.

    ``floor`` is a part of what a trial asked for, but at least ``min_cpu`` cores; ``probe`` is in cores.
    """

    floor: float
    min_cpu: float
    probe: float

    def least(self, trial: Trial) -> float:
        """Return the cores that ``trial`` keeps in any case."""
        return max(self.floor * trial.base_cpu, self.min_cpu)


def split(forecasts: Sequence[TrialOutlook], cores: float, floors: Floors) -> CoreSplit:
    """Return the shares of a node's trials, which sum to ``cores`` at most where the floors do.

    Everybody keeps the floor, and what can't be decided on keeps what it has. Then those that can be kept together
    get what they need, the one with the least slack first; then new trials; then those without a deadline.
    """
    shares = {
        one.trial.id: one.trial.cpu if one.prospect is Prospect.STALE else floors.least(one.trial) for one in forecasts
    }
    left = cores - sum(shares.values())

    def give(one: TrialOutlook, want: float) -> None:
        nonlocal left
        more = min(max(0.0, want - shares[one.trial.id]), max(0.0, left))
        shares[one.trial.id] += more
        left -= more

    hopeful = [one for one in forecasts if one.prospect is Prospect.WITHIN_REACH]
    kept = together(hopeful, left + sum(floors.least(one.trial) for one in hopeful))
    new = [one for one in forecasts if one.prospect is Prospect.UNKNOWN]
    free = [one for one in forecasts if one.prospect is Prospect.FREE]
    for one in sorted(kept, key=lambda one: (one.slack, one.trial.id)):
        give(one, one.need)
    even = max(0.0, left) / len(new) if new else 0.0
    for one in sorted(new, key=_urgency):
        give(one, max(one.trial.base_cpu, min(floors.probe, even)))
    for one in sorted(free, key=_urgency):
        give(one, one.trial.base_cpu)
    return CoreSplit(shares, frozenset(one.trial.id for one in hopeful) - {one.trial.id for one in kept})


def together(hopeful: Sequence[TrialOutlook], cores: float) -> list[TrialOutlook]:
    """Return the most trials that can all keep their deadlines on ``cores`` cores.

    In the order of deadlines, all that is due by each must be done by then; where it can't be, the trial with the
    greatest demand so far is given up (Moore, Management Science 15(1), 1968: the fewest late jobs on one machine;
    exact where every trial can use all cores, else an approximation).
    """
    kept: list[TrialOutlook] = []
    demand = 0.0
    for one in sorted(hopeful, key=lambda one: (one.left, one.trial.id)):
        kept.append(one)
        demand += one.demand
        if demand > max(0.0, cores) * one.left:
            worst = max(kept, key=lambda one: (one.demand, one.trial.id))
            kept.remove(worst)
            demand -= worst.demand
    return kept


def rescues(
    missing: Iterable[TrialOutlook], capacity: Capacity, spare: Mapping[NodeName, float], cost: float
) -> Iterator[tuple[Migrate, str]]:
    """Yield moves that keep a deadline although they cost time, each with its reason, the earliest deadline first.

    Args:
        missing: Trials that may move and won't keep their deadlines where they are.
        capacity: What is requested of each node; kept up.
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
            if name != one.trial.node and cores >= max(need, one.trial.base_cpu) and capacity.fits(one.trial, name)
        }
        if roomy:
            node = min(roomy, key=lambda name: (-roomy[name], name))
            move = Migrate.to(node, one.trial)
            capacity.apply(move)
            left[node] -= max(need, one.trial.base_cpu)
            yield move, f"deadline: {node} has the {need:.2g} cores that keep it in {about(one.left)}"


def to_idle_nodes(
    crowded: Sequence[Sequence[TrialOutlook]], snapshot: Snapshot, capacity: Capacity, cost: float
) -> Iterator[tuple[Migrate, str]]:
    """Yield moves of late trials to nodes that nobody needs, each with its reason; none while any trial is to start.

    From the node with the most late trials goes the one with the most to do, if it has others beside it and more to do
    than the move costs: it is late in any case, but the sweep need not be.

    Args:
        crowded: For each node that has others beside them, the late trials that may move.
        snapshot: What is there.
        capacity: What is requested of each node; kept up.
        cost: Seconds for which a trial that moves does not train.
    """
    if any(trial.phase is Phase.PENDING for trial in snapshot.unended):
        return
    taken = {node for trial in snapshot.unended for node in (*trial.nodes, trial.moving_to)}
    idle = [node for node in capacity.nodes.values() if node.ready and node.name not in taken]
    sources = sorted(crowded, key=len, reverse=True)
    for node in sorted(idle, key=lambda node: (-node.cpu, node.name)):
        for place, late in enumerate(sources):
            worth = [one for one in late if one.fastest > cost and capacity.fits(one.trial, node.name)]
            if worth:
                move = Migrate.to(node.name, max(worth, key=lambda one: (one.fastest, one.trial.id)).trial)
                capacity.apply(move)
                del sources[place]
                yield move, f"late in any case: {node.name} is idle"
                break


def _urgency(one: TrialOutlook) -> tuple[float, float, str]:
    return one.left, one.trial.submitted_at, one.trial.id
