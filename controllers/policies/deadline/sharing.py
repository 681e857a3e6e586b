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
        foreseen.trial.id: foreseen.trial.cpu if foreseen.prospect is Prospect.STALE else floors.least(foreseen.trial)
        for foreseen in forecasts
    }
    left = cores - sum(shares.values())

    def give(foreseen: TrialOutlook, want: float) -> None:
        nonlocal left
        more = min(max(0.0, want - shares[foreseen.trial.id]), max(0.0, left))
        shares[foreseen.trial.id] += more
        left -= more

    hopeful = [foreseen for foreseen in forecasts if foreseen.prospect is Prospect.WITHIN_REACH]
    kept = together(hopeful, left + sum(floors.least(foreseen.trial) for foreseen in hopeful))
    new = [foreseen for foreseen in forecasts if foreseen.prospect is Prospect.UNKNOWN]
    free = [foreseen for foreseen in forecasts if foreseen.prospect is Prospect.FREE]
    for foreseen in sorted(kept, key=lambda foreseen: (foreseen.slack, foreseen.trial.id)):
        give(foreseen, foreseen.need)
    even = max(0.0, left) / len(new) if new else 0.0
    for foreseen in sorted(new, key=_urgency):
        give(foreseen, max(foreseen.trial.base_cpu, min(floors.probe, even)))
    for foreseen in sorted(free, key=_urgency):
        give(foreseen, foreseen.trial.base_cpu)
    return CoreSplit(
        shares, frozenset(foreseen.trial.id for foreseen in hopeful) - {foreseen.trial.id for foreseen in kept}
    )


def together(hopeful: Sequence[TrialOutlook], cores: float) -> list[TrialOutlook]:
    """Return the most trials that can all keep their deadlines on ``cores`` cores.

    In the order of deadlines, all that is due by each must be done by then; where it can't be, the trial with the
    greatest demand so far is given up (Moore, Management Science 15(1), 1968: the fewest late jobs on one machine;
    exact where every trial can use all cores, else an approximation).
    """
    kept: list[TrialOutlook] = []
    demand = 0.0
    for foreseen in sorted(hopeful, key=lambda foreseen: (foreseen.left, foreseen.trial.id)):
        kept.append(foreseen)
        demand += foreseen.demand
        if demand > max(0.0, cores) * foreseen.left:
            worst = max(kept, key=lambda foreseen: (foreseen.demand, foreseen.trial.id))
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
    for foreseen in sorted(missing, key=lambda foreseen: (foreseen.left, foreseen.trial.id)):
        time = foreseen.left - cost
        need = foreseen.pace.cores_for(foreseen.steps / time) if time > 0 and foreseen.pace.measured else float("inf")
        roomy = {
            name: cores
            for name, cores in left.items()
            if name != foreseen.trial.node
            and cores >= max(need, foreseen.trial.base_cpu)
            and capacity.fits(foreseen.trial, name)
        }
        if roomy:
            node = min(roomy, key=lambda name: (-roomy[name], name))
            move = Migrate.to(node, foreseen.trial)
            capacity.apply(move)
            left[node] -= max(need, foreseen.trial.base_cpu)
            yield move, f"deadline: {node} has the {need:.2g} cores that keep it in {about(foreseen.left)}"


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
    if any(trial.phase is Phase.PENDING and not trial.withheld for trial in snapshot.unended):
        return
    taken = {node for trial in snapshot.unended for node in (*trial.nodes, trial.moving_to)}
    idle = [node for node in capacity.nodes.values() if node.ready and node.name not in taken]
    sources = sorted(crowded, key=len, reverse=True)
    for node in sorted(idle, key=lambda node: (-node.cpu, node.name)):
        for place, late in enumerate(sources):
            worth = [
                foreseen for foreseen in late if foreseen.fastest > cost and capacity.fits(foreseen.trial, node.name)
            ]
            if worth:
                move = Migrate.to(
                    node.name, max(worth, key=lambda foreseen: (foreseen.fastest, foreseen.trial.id)).trial
                )
                capacity.apply(move)
                del sources[place]
                yield move, f"late in any case: {node.name} is idle"
                break


def _urgency(foreseen: TrialOutlook) -> tuple[float, float, str]:
    return foreseen.left, foreseen.trial.submitted_at, foreseen.trial.id
