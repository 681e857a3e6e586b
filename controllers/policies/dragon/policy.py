"""DRAGON: all-or-nothing admission, locality, and workers that come and go.

After Lin, Yeh and Chou, "DRAGON: A dynamic scheduling and scaling controller for managing distributed deep learning
jobs in Kubernetes cluster", CLOSER 2019. Beyond it: room that was made for a gang is reserved for it and given back
where it cannot be filled, a scale-down that fails holds up nobody, and a restart must be worth what it costs.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import ClassVar, Final

from pydantic import Field

from controllers.core.actions import Action, Decision, Migrate, Place, Proposal
from controllers.core.model import NodeName, Phase, Snapshot, Trial, TrialId
from controllers.core.policy import CLOCK_SLACK
from controllers.policies.dragon.scaling import StartingRoom, grown, near, room_for
from controllers.policies.kit.capacity import Capacity
from controllers.policies.kit.places import waiting
from controllers.policies.kit.settings import PolicySettings

MOST_PLACED: Final = 64
"""Trials of the queue that are looked at in one decision."""


@dataclass(frozen=True, slots=True)
class Begun:
    """An attempt, and the newest step and its time when it was first seen to run."""

    attempt: int
    step: int
    at: float


@dataclass(frozen=True, slots=True)
class Reservation:
    """Room that is kept for a starving gang: its nodes, and until when (seconds)."""

    trial: TrialId
    nodes: tuple[NodeName, ...]
    until: float


@dataclass(frozen=True, slots=True)
class DragonState:
    """Since when trials wait, what is reserved, when reservations were given back, attempts, and the last action."""

    waiting: Mapping[TrialId, float] = field(default_factory=dict)
    reserved: Reservation | None = None
    given_back: Mapping[TrialId, float] = field(default_factory=dict)
    begun: Mapping[TrialId, Begun] = field(default_factory=dict)
    acted_at: float = 0.0


class Dragon(PolicySettings):
    """Starts each gang whole and near together, shrinks others for one that starves, and lets gangs grow when quiet.

    **Admission.** First come, first served; a trial whose least workers do not fit holds up nobody. Those that start
    together all get their least workers first, then in turn as many as fit up to their most.

    **Shrinking.** The first of the queue that has waited ``starving`` seconds gets the room that others have above
    their minimum, as far as that lets it start. The room is kept for it alone, for ``patience`` seconds at most.

    **Growing.** While nobody waits and nothing was done for ``quiet`` seconds, gangs grow, each by what one more node
    of its zone holds; the one that has the most left goes first.

    A gang that is nearly done, or was scaled just now, is left alone: a restart costs ``cost`` seconds.
    """

    name: ClassVar[str] = "dragon"
    summary: ClassVar[str] = (
        "starts gangs whole and near together, shrinks them for one that starves, grows them when quiet"
    )
    source: ClassVar[str] = "after Lin, Yeh and Chou, CLOSER 2019 (DRAGON)"
    state_type: ClassVar[type[DragonState]] = DragonState
    needs: ClassVar[frozenset[type[Action]]] = frozenset({Place, Migrate})
    scales_gangs: ClassVar[bool] = True
    placement: ClassVar[str] = "in order, all workers at once: on one node, else in one zone, else on as few as can be"
    moves: ClassVar[str] = "workers away from gangs for one that starves, and more workers when it is quiet"
    most_moves: ClassVar[int | None] = None

    interval: float = Field(default=10.0, gt=0, description="seconds between two looks while gangs wait or may grow")
    starving: float = Field(default=30.0, ge=0, description="seconds after which the first in line makes others shrink")
    quiet: float = Field(default=60.0, gt=0, description="seconds without any action after which gangs may grow")
    patience: float = Field(default=120.0, gt=0, description="seconds for which room is kept for one that starves")
    cost: float = Field(default=20.0, ge=0, description="seconds of training that a restart costs a gang")
    payback: float = Field(default=2.0, ge=1, description="how many times its cost a restart must gain")

    def decide(self, snapshot: Snapshot, state: DragonState) -> Decision[DragonState]:
        """Make room for the first in line, place what fits, and let gangs grow where nobody waits."""
        now, queue = snapshot.now, sorted(waiting(snapshot), key=lambda trial: (trial.submitted_at, trial.id))
        since = {trial.id: state.waiting.get(trial.id, now) for trial in queue}
        state = replace(
            state,
            waiting=dict(sorted(since.items())),
            begun=_begun(snapshot, state.begun),
            given_back={name: at for name, at in state.given_back.items() if name in since},
        )
        capacity = Capacity.of(snapshot)
        state, shrinking = self._for_the_starving(snapshot, queue, state, capacity)
        placing = list(self._admitted(queue, state, capacity))
        proposals = [*shrinking, *placing]
        if not queue and now >= state.acted_at + self.quiet - CLOCK_SLACK:
            proposals += list(self._growing(snapshot, state, capacity))
        if proposals:
            state = replace(state, acted_at=now)
        elastic = any(trial.live and trial.max_workers > 1 for trial in snapshot.unended)
        placed = {proposal.action.trial for proposal in placing}
        hidden = {
            trial.id: replace(trial, gated=False) if trial.id in placed else replace(trial, withheld=True)
            for trial in queue
        }
        return Decision(
            state,
            tuple(proposals),
            now + self.interval if queue or elastic else None,
            narrowed=_with(snapshot, hidden) if hidden else None,
        )

    def _for_the_starving(
        self, snapshot: Snapshot, queue: list[Trial], state: DragonState, capacity: Capacity
    ) -> tuple[DragonState, list[Proposal]]:
        """Return the state with a reservation for the first in line that starves, and the shrinks that fill it.

        What is reserved is counted in ``capacity``, unless the one that it is for fits by now.
        """
        now, kept = snapshot.now, state.reserved
        if kept is not None and (kept.trial not in state.waiting or now >= kept.until - CLOCK_SLACK):
            back = {**state.given_back, kept.trial: now} if kept.trial in state.waiting else state.given_back
            state, kept = replace(state, reserved=None, given_back=dict(sorted(back.items()))), None
        head = next((trial for trial in queue if kept is None or trial.id == kept.trial), None)
        if head is None or capacity.gathered(head, head.min_workers):
            return replace(state, reserved=None), []
        if now < state.waiting[head.id] + self.starving - CLOCK_SLACK:
            return state, []
        if now < state.given_back.get(head.id, -self.patience) + self.patience - CLOCK_SLACK:
            return state, []
        leaving = [trial for trial in snapshot.unended if trial.phase is Phase.MOVING and trial.gang]
        room = None if leaving else room_for(head, self._may_scale(snapshot, state), capacity)
        if room is None and kept is None:
            return state, []
        nodes = room.nodes if room is not None else kept.nodes if kept is not None else ()
        capacity.apply(Place(head.id, nodes))
        until = kept.until if kept is not None else now + self.patience
        shrinking = list(_shrinks(head, room)) if room is not None else []
        return replace(state, reserved=Reservation(head.id, nodes, until)), shrinking

    def _admitted(self, queue: list[Trial], state: DragonState, capacity: Capacity) -> Iterator[Proposal]:
        """Yield a place for each trial that can start; ``capacity`` is kept up."""
        reserved = None if state.reserved is None else state.reserved.trial
        least: dict[TrialId, tuple[NodeName, ...]] = {}
        minimal = capacity.copy()
        starting = [trial for trial in islice(queue, MOST_PLACED) if trial.id != reserved]
        for trial in starting:
            if nodes := minimal.gathered(trial, trial.min_workers):
                least[trial.id] = nodes
                minimal.apply(Place(trial.id, nodes))
        for trial in starting:
            if trial.id not in least:
                continue
            # The others keep room for their least workers, so that this one's more make none of them wait.
            minimal.release(trial, least[trial.id])
            most = max(trial.min_workers, minimal.most_workers(trial) if trial.gang else 1)
            nodes = near(trial, most, trial.min_workers, minimal) or least[trial.id]
            place = Place(trial.id, nodes)
            minimal.apply(place)
            capacity.apply(place)
            yield Proposal(place, f"placing: {len(nodes)} workers on {len(set(nodes))} nodes, all at once")

    def _growing(self, snapshot: Snapshot, state: DragonState, capacity: Capacity) -> Iterator[Proposal]:
        """Yield the growth of those gangs for which it is worth a restart; who has the most left goes first."""
        left = {trial.id: self._left(trial, state, snapshot.now) for trial in self._may_scale(snapshot, state)}
        for name in sorted(left, key=lambda name: (-left[name], name)):
            trial = snapshot.named[name]
            nodes = grown(trial, capacity) if len(trial.nodes) < trial.max_workers else ()
            gain = left[name] * (1 - len(trial.nodes) / len(nodes)) if nodes else 0.0
            if gain > self.payback * self.cost:
                move = Migrate(name, nodes)
                capacity.apply(move)
                reason = f"growing: from {len(trial.nodes)} to {len(nodes)} workers, which may save {gain:.0f} s"
                yield Proposal(move, reason)

    def _may_scale(self, snapshot: Snapshot, state: DragonState) -> list[Trial]:
        """Return the gangs that may be scaled: they run, report, were not scaled just now, and are not nearly done."""
        now = snapshot.now
        return [
            trial
            for trial in snapshot.unended
            if trial.whole
            and trial.gang
            and trial.progress is not None
            and trial.id in state.begun
            and now - state.begun[trial.id].at >= min(self.quiet, self.payback * self.cost) - CLOCK_SLACK
            and self._left(trial, state, now) > self.payback * self.cost
        ]

    def _left(self, trial: Trial, state: DragonState, now: float) -> float:
        """Return for how many seconds a gang will train on as it does; as long as it has where it does not tell."""
        begun, known = state.begun.get(trial.id), trial.progress
        if begun is None or known is None:
            return 0.0
        if known.steps_total is None or known.step <= begun.step or known.at <= begun.at:
            return now - begun.at
        return max(0, known.steps_total - known.step) * (known.at - begun.at) / (known.step - begun.step)


def _begun(snapshot: Snapshot, before: Mapping[TrialId, Begun]) -> dict[TrialId, Begun]:
    """Return when each attempt was first seen to run, and at which step it was then."""
    begun: dict[TrialId, Begun] = {}
    for trial in snapshot.unended:
        if trial.live and trial.gang:
            known = before.get(trial.id)
            fresh = known is None or known.attempt != trial.attempt
            step = trial.progress.step if trial.progress is not None else 0
            begun[trial.id] = Begun(trial.attempt, step, snapshot.now) if fresh or known is None else known
    return begun


def _shrinks(head: Trial, room: StartingRoom) -> Iterator[Proposal]:
    for name, nodes in sorted(room.kept.items()):
        reason = (
            f"shrinking: {head.id} starves, and starts with {len(room.nodes)} workers where this keeps {len(nodes)}"
        )
        yield Proposal(Migrate(name, nodes), reason)


def _with(snapshot: Snapshot, changed: Mapping[TrialId, Trial]) -> Snapshot:
    trials, unended = (
        tuple(changed.get(trial.id, trial) for trial in all_) for all_ in (snapshot.trials, snapshot.unended)
    )
    return Snapshot.in_order(
        snapshot.now,
        trials,
        unended,
        snapshot.nodes,
        snapshot.asked,
        kinds=snapshot.kinds,
        let_go=snapshot.let_go,
        spent=snapshot.spent,
        earlier=snapshot.earlier,
    )
