"""A sweep takes as many nodes as its means allow: the fewest that end it in time, or as many as its budget pays.

An elastic sweep at a deadline costs the least on few nodes that are full until the end (RubberBand: Misra et al.,
EuroSys 2021). How long trials take is measured as they train, so the number is worked out again and again.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final, Generic, TypeVar

from controllers.core.actions import Assessment, Decision
from controllers.core.means import Means
from controllers.core.model import Node, NodeKind, Snapshot, Trial, TrialId
from controllers.policies.kit.new_nodes import MOST, in_line
from controllers.policies.kit.outlays import Fleet, best, outlay, outlays
from controllers.policies.kit.work_left import Estimate, SweepMeasurements, estimate_work, measure_sweep, scaling_of
from controllers.policies.wrappers.wrapper import AroundOne

S = TypeVar("S")
INTERVAL_S: Final = 30.0
"""Seconds between two plans: lengths are known no better sooner."""
RESERVE: Final = 0.1
"""Part of the time that is left, and of the budget, that a plan keeps in reserve: lengths are estimates."""
WORTH: Final = 0.9
"""Nodes are given up where fewer would cost at most this part."""
FIRST: Final = 1
"""Nodes on which a sweep begins where nothing is known of its trials yet."""


@dataclass(frozen=True, slots=True)
class MeansState(Generic[S]):
    """The state of the policy within, what was measured, and the plan: so many ``nodes`` until ``due_at`` seconds."""

    policy: S
    known: SweepMeasurements = field(default_factory=SweepMeasurements)
    nodes: int | None = None
    due_at: float = 0.0
    told: str = ""


class WithinMeans(AroundOne):
    """Shows ``policy`` only as many of the nodes that can come as the sweep's ``means`` allow.

    With a time alone, they are the fewest that end the sweep by then; with a budget alone, as many as it pays, and no
    more than help. With both, the fewest that end it in time, as far as the budget pays for them. Nodes beyond that
    get no new trials, so that they empty. Nodes of no kind that can come are there in any case, and cost nothing more.
    The first trial starts on one node: nothing is known of lengths before it reports.
    """

    means: Means

    @property
    def state_type(self) -> type[MeansState[Any]]:
        """Type of the state."""
        inner = self.policy.state_type
        return MeansState[inner]  # type: ignore[valid-type]  # known at run time only

    def initial(self) -> MeansState[Any]:
        """Return the state before the first decision."""
        return MeansState(self.policy.initial())

    def decide(self, snapshot: Snapshot, state: MeansState[Any]) -> Decision[MeansState[Any]]:
        """Ask the policy within about what the means allow."""
        known = measure_sweep(snapshot, state.known)
        nodes, told, due_at = state.nodes, state.told, state.due_at
        if snapshot.now >= due_at:
            nodes, told = self._plan(snapshot, known)
            due_at = snapshot.now + INTERVAL_S
        wanted = self.policy.decide(_narrowed(snapshot, nodes), state.policy)
        return replace(
            wanted,
            state=MeansState(wanted.state, known, nodes, due_at, told),
            wake_at=min(at for at in (wanted.wake_at, due_at) if at is not None) if snapshot.unended else None,
            assessments=_told_to_those_that_wait(snapshot, wanted.assessments, told),
        )

    def _plan(self, snapshot: Snapshot, known: SweepMeasurements) -> tuple[int | None, str]:
        """Return how many elastic nodes the sweep may have, None for any number, and that in words."""
        kinds = [kind for kind in in_line(snapshot.kinds) if kind.name]
        trials = [trial for trial in snapshot.unended if any(kind.holds(trial) for kind in kinds)]
        if not trials:
            return None, ""
        here = [node for node in _elastic(snapshot) if node.ready]
        coming = sum(kind.coming for kind in kinds)
        most = min(MOST, len(trials), len(here) + coming + sum(min(kind.more, MOST) for kind in kinds))
        kind = next(kind for kind in kinds if any(kind.holds(trial) for trial in trials))
        if kind.price is None and self.means.by_s is None:
            return None, f"no price of {kind.name} is known, so the budget counts for nothing"
        power = scaling_of(known).power
        every = estimate_work(snapshot, known, power)
        estimates = [every[trial.id] for trial in trials]
        if not any(one.known for one in estimates):
            return max(FIRST, len(here)), "waits until the length of the first trials is known"
        fleet = _fleet(kind, trials, len(here), snapshot)
        return self._chosen(_lengths(estimates, kind.cpu / fleet.places, power), int(most), fleet, snapshot)

    def _chosen(self, lengths: Sequence[float], most: int, fleet: Fleet, snapshot: Snapshot) -> tuple[int | None, str]:
        """Return how many nodes the means allow, and why no more, in words."""
        by_s, budget = self.means.by_s, self.means.budget
        left = None if by_s is None else (1 - RESERVE) * (by_s - snapshot.now)
        # A budget says nothing of nodes that cost nothing.
        money = (1 - RESERVE) * budget - (snapshot.spent or 0.0) if budget is not None and fleet.price else None
        seen = outlays(lengths, 0 if fleet.free_places else 1, most, fleet)
        chosen = best(seen, left, money)
        stay = outlay(lengths, fleet.here, fleet)
        # Nodes that are given up hold their last trials half empty for long: it must be worth it.
        if chosen.nodes < stay.nodes and chosen.cost > WORTH * stay.cost:
            chosen = stay
        why = ["that is soon enough"] if left is not None and chosen.seconds <= left else []
        why += ["which is later than asked"] if left is not None and chosen.seconds > left else []
        why += ["for more than the budget"] if money is not None and chosen.cost > money else []
        nodes = "1 node" if chosen.nodes == 1 else f"{chosen.nodes} nodes"
        told = f"waits: on {nodes} all ends in about {chosen.seconds / 60:.0f} min"
        return chosen.nodes, ", ".join((told, *(why or ["as many as the budget pays"])))


def _elastic(snapshot: Snapshot) -> list[Node]:
    """Return the nodes of kinds that can come: they go again where nobody needs them."""
    names = {kind.name for kind in snapshot.kinds if kind.name}
    return [node for node in snapshot.nodes if node.kind in names]


def _fleet(kind: NodeKind, trials: Sequence[Trial], here: int, snapshot: Snapshot) -> Fleet:
    """Return the nodes of ``kind`` as places for trials like most of ``trials``."""
    cpu = sorted(trial.base_cpu for trial in trials)[len(trials) // 2]
    memory = sorted(trial.memory for trial in trials)[len(trials) // 2]
    elastic = {node.name for node in _elastic(snapshot)}
    fixed = [node for node in snapshot.nodes if node.name not in elastic and node.ready]
    free = sum(_places(node, cpu, memory, trials[0]) for node in fixed)
    return Fleet(max(1, _places(kind, cpu, memory, trials[0])), here, kind.boots_s, kind.price or 0.0, free)


def _places(node: Node | NodeKind, cpu: float, memory: float, trial: Trial) -> int:
    """Return how many trials that ask for so much find room on an empty node, with the devices of ``trial``."""
    parts = [node.cpu / cpu if cpu > 0 else node.cpu, node.memory / memory if memory > 0 else float("inf")]
    parts += [node.devices.count(kind) / count for kind, count in trial.devices.counts]
    return int(min(parts) + 1e-9)


def _lengths(estimates: Sequence[Estimate], cores: float, power: float) -> list[float]:
    """Return the seconds that each trial still takes with so many ``cores``; a gang counts for each of its workers."""
    return [
        one.work / max(min(one.most, max(cores, one.trial.base_cpu)), 1e-3) ** power
        for one in estimates
        for _ in range(one.trial.workers)
    ]


def _narrowed(snapshot: Snapshot, nodes: int | None) -> Snapshot:
    """Return ``snapshot`` with no more elastic nodes than ``nodes``: fewer that can come, and no room on others."""
    if nodes is None:
        return snapshot
    # Those with the fewest trials are the first to stand empty.
    busy = {node.name: len(snapshot.on(node.name)) for node in _elastic(snapshot)}
    elastic = sorted(_elastic(snapshot), key=lambda node: (-busy[node.name], node.name))
    spare = {node.name for node in elastic[nodes:]}
    left = max(0, nodes - len(elastic) - sum(kind.coming for kind in snapshot.kinds if kind.name))
    kinds = []
    for kind in in_line(snapshot.kinds):
        more = min(kind.more, left) if kind.name else kind.more
        left -= int(more) if kind.name else 0
        kinds.append(replace(kind, more=more))
    kept = tuple(replace(node, room=0.0) if node.name in spare else node for node in snapshot.nodes)
    return replace(snapshot, nodes=kept, kinds=tuple(kinds))


def _told_to_those_that_wait(
    snapshot: Snapshot, assessments: Mapping[TrialId, Assessment], told: str
) -> Mapping[TrialId, Assessment]:
    if not told:
        return assessments
    silent = [t.id for t in snapshot.unended if t.waits and not assessments.get(t.id, Assessment()).outlook]
    return {**assessments, **{trial: replace(assessments.get(trial, Assessment()), outlook=told) for trial in silent}}
