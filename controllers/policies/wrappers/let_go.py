"""Trials that find no room ask for new nodes, as many as these can hold: a pod at our gate asks an autoscaler for none.

A trial that is let go without a node is in the hands of the default scheduler from then on. So no more of them are let
go than the nodes that come can hold, and only those that the policy within would start there.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from controllers.core.actions import Decision, Place, Proposal
from controllers.core.devices import Devices
from controllers.core.model import NodeKind, NodeName, Snapshot, Trial, TrialId
from controllers.core.node_kinds import patience
from controllers.core.progress import latest_end
from controllers.policies.kit.capacity import Capacity
from controllers.policies.kit.new_nodes import NewNodes
from controllers.policies.kit.places import nodes_placed_on, roomiest_nodes, waiting
from controllers.policies.wrappers.wrapper import AroundOne

TRIES_AFTER_S: Final = 15.0
"""Seconds that a trial waits before it tries whether unknown nodes come, where nothing else runs,"""
TRIES_AMONG_OTHERS_AFTER_S: Final = 600.0
"""and where something does: that will make room at some time."""


class LetGo(AroundOne):
    """Lets waiting trials go without a node where nodes can come (``Snapshot.kinds``) and those here have no room.

    They are the trials that ``policy`` would start if the new nodes were there by now, in its order, as many as these
    hold beside those let go before. Where running trials will have made room before a node can be there, nobody asks
    for one. Where no kind is known that would do, one trial tries whether any node comes: after 15 s if nothing of the
    sweep runs, else after ten minutes. Gangs are never let go: their workers would start apart.

    ``policy`` sees those let go on the nodes that have room for them by now: the scheduler is about to put them there.
    """

    def decide(self, snapshot: Snapshot, state: Any) -> Decision[Any]:  # noqa: ANN401 - each policy has its own state
        """Ask the policy within, then let go as many as new nodes are wanted for."""
        if not snapshot.kinds:
            return self.policy.decide(snapshot, state)
        seen, asking = _with_let_go_placed(snapshot)
        wanted = self.policy.decide(seen, state)
        places = nodes_placed_on(wanted.proposals)
        after = _placed(seen, {name: node for name, node in places.items() if node is not None})
        acted_on = {proposal.action.trial for proposal in wanted.proposals}
        left = [trial for trial in waiting(after) if trial.id not in acted_on and self._held_back(trial)]
        if not left:
            return wanted
        queue = _Queue(after, sorted(left, key=lambda trial: (trial.submitted_at, trial.id)), asking)
        return replace(wanted, proposals=(*wanted.proposals, *self._asks(queue, state)))

    def _held_back(self, trial: Trial) -> bool:
        """Whether a trial of one worker waits for room: under a policy that gives no places, only a search's does."""
        return not trial.gang and (Place in self.policy.needs or bool(trial.search and not trial.parameters))

    def _asks(self, queue: "_Queue", state: Any) -> Iterator[Proposal]:  # noqa: ANN401 - as above
        named = [kind for kind in queue.seen.kinds if kind.name]
        unfit = queue.without_room(min((kind.boots_s for kind in named), default=0.0))
        new = queue.on_new_nodes(named, unfit)
        if any(trial.id in new.places for trial in unfit):
            yield from self._started(queue, new, state)
            return
        strange = [trial for trial in unfit if not any(kind.holds(trial) for kind in named)]
        unknown = next((kind for kind in queue.seen.kinds if not kind.name and kind.more), None)
        if unknown is not None and strange and queue.may_try(strange[0]):
            new = queue.on_new_nodes([_as_large_as_asked(unknown, strange)], strange)
            yield from list(self._started(queue, new, state))[:1]

    def _started(self, queue: "_Queue", new: NewNodes, state: Any) -> Iterator[Proposal]:  # noqa: ANN401 - as above
        """Yield what lets those go that the policy within would start on the ``new`` nodes."""
        there, left = queue.with_nodes(new), {trial.id for trial in queue.left}
        places: Mapping[TrialId, NodeName | None] = new.places
        if Place in self.policy.needs:
            places = nodes_placed_on(self.policy.decide(there, state).proposals)
        capacity = Capacity.of(there)
        for name, chosen in places.items():
            # A policy may leave it to the scheduler: here it had no room, so it would go to a new one.
            nodes = (chosen,) if chosen is not None else (new.places.get(name), *new.kinds)
            fitting = (
                Place(name, (node,)) for node in nodes if name in left and node is not None and node in new.kinds
            )
            place = next(filter(capacity.allows, fitting), None)
            if place is not None and place.node is not None:
                capacity.apply(place)
                yield Proposal(Place(name), _reason(new.kinds[place.node]))


@dataclass(frozen=True, slots=True)
class _Queue:
    """The trials that are ``left`` without a place in ``seen``, by submission, and those ``asking`` for a node."""

    seen: Snapshot
    left: Sequence[Trial]
    asking: Sequence[Trial]

    def without_room(self, within_s: float) -> list[Trial]:
        """Return those for which there is no room, nor will be within ``within_s`` seconds, when others have ended."""
        until = self.seen.now + within_s
        staying = tuple(trial for trial in self.seen.unended if not trial.steady or latest_end(trial) > until)
        nodes = roomiest_nodes(self.seen.of_trials(staying, staying), self.left)
        return [trial for trial in self.left if nodes[trial.id] is None]

    def on_new_nodes(self, kinds: Sequence[NodeKind], trials: Sequence[Trial]) -> NewNodes:
        """Return new nodes with those asking already and, as far as there is room besides, ``trials``."""
        new = NewNodes(kinds)
        for trial in (*self.asking, *trials):
            new.take(trial)
        return new

    def with_nodes(self, new: NewNodes) -> Snapshot:
        """Return what would be seen if the ``new`` nodes were there, with those on them that ask for them already."""
        asking = {trial.id: new.places[trial.id] for trial in self.asking if trial.id in new.places}
        there = _placed(self.seen, asking)
        choosy = [trial for trial in self.left if trial.may_use is not None]
        allowed = {
            trial.id: replace(trial, may_use=(trial.may_use or frozenset()) | new.open_to(trial)) for trial in choosy
        }
        return replace(_changed(there, allowed), nodes=(*there.nodes, *new.nodes))

    def may_try(self, trial: Trial) -> bool:
        """Return whether ``trial`` may try whether an unknown node comes."""
        if self.asking:
            return False
        idle = all(other.waits or other.withheld for other in self.seen.unended)
        return self.seen.now - trial.submitted_at > (TRIES_AFTER_S if idle else TRIES_AMONG_OTHERS_AFTER_S)


def _with_let_go_placed(snapshot: Snapshot) -> tuple[Snapshot, list[Trial]]:
    """Return ``snapshot`` with the trials let go where there is room for them, and those for which there is none.

    One that has waited for longer than a node takes waits for something else: it counts no more.
    """
    oldest = snapshot.now - patience(max(kind.boots_s for kind in snapshot.kinds))
    asking = [
        trial
        for name, since in sorted(snapshot.let_go.items(), key=lambda one: (one[1], one[0]))
        if since >= oldest and (trial := snapshot.named.get(name)) is not None and not trial.gang
    ]
    nodes = roomiest_nodes(snapshot, asking)
    placed = {name: node for name, node in nodes.items() if node is not None}
    return _placed(snapshot, placed), [trial for trial in asking if trial.id not in placed]


def _placed(snapshot: Snapshot, nodes: Mapping[TrialId, NodeName]) -> Snapshot:
    """Return ``snapshot`` with trials on ``nodes``, for which they wait no more."""
    named = snapshot.named
    return _changed(snapshot, {name: replace(named[name], nodes=(nodes[name],), gated=False) for name in nodes})


def _changed(snapshot: Snapshot, trials: Mapping[TrialId, Trial]) -> Snapshot:
    if not trials:
        return snapshot
    every, unended = (
        tuple(trials.get(trial.id, trial) for trial in all_) for all_ in (snapshot.trials, snapshot.unended)
    )
    return snapshot.of_trials(every, unended)


def _as_large_as_asked(unknown: NodeKind, trials: Sequence[Trial]) -> NodeKind:
    """Return the unknown kind as one node that would hold any of ``trials``."""
    devices: dict[str, int] = {}
    for trial in trials:
        for kind, count in trial.devices.counts:
            devices[kind] = max(count, devices.get(kind, 0))
    cpu = max(max(trial.cpu, trial.base_cpu) for trial in trials)
    memory = max(trial.memory for trial in trials)
    return replace(unknown, cpu=cpu, memory=memory, devices=Devices.of(devices), more=1)


def _reason(kind: NodeKind) -> str:
    if not kind.name:
        return "no node has room for it: it tries whether a new one comes"
    return f"no node has room for it: it asks for one of kind {kind.name}, which takes about {kind.boots_s:.0f} s"
