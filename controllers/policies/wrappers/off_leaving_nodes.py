"""Trials leave a node that goes, before it does, whatever policy steers them."""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any, Final

from controllers.core.actions import Action, Decision, Migrate, Place, Proposal, Resize, Suspend
from controllers.core.model import NodeName, Snapshot, Trial, TrialId
from controllers.core.progress import latest_end
from controllers.policies.kit.capacity import Capacity
from controllers.policies.wrappers.wrapper import AroundOne

LEAST_S: Final = 3.0
"""With fewer seconds left, a request to save hardly comes to anything: the cluster's own is on its way."""
LAST_CALL_S: Final = 30.0
"""Seconds before the deadline at which a trial stops waiting for room elsewhere, and is suspended."""


class OffLeavingNodes(AroundOne):
    """Moves trials off nodes that go (``Node.leaves_at``) to nodes with room, and leaves the rest to ``policy``.

    Room goes first to those that are the shortest to save: by the memory that they ask for, which is what bounds a
    checkpoint, then by the time that they have left. Where there is none, a trial trains on until 30 s before the
    deadline. Then it is suspended, if ``policy`` gives places, so that its next attempt waits for one; under any other
    policy the cluster evicts it. One that ends by itself before the deadline stays, and so does one that has less time
    left than a request takes. Where a node outlives its deadline, its trials still move once there is room.

    What ``policy`` wants for such a trial goes first, unless it would stay where it is.
    """

    def decide(self, snapshot: Snapshot, state: Any) -> Decision[Any]:  # noqa: ANN401 - each policy has its own state
        """Ask the policy within, and put what saves trials before what it wants."""
        wanted = self.policy.decide(snapshot, state)
        deadlines = {node.name: node.leaves_at for node in snapshot.nodes if node.leaves_at is not None}
        if not deadlines:
            return wanted
        leaving = {one.action.trial for one in wanted.proposals if not isinstance(one.action, Resize)}
        endangered = {
            trial.id: deadline
            for trial in snapshot.unended
            if trial.whole
            and trial.id not in leaving
            and (deadline := _deadline(trial, deadlines)) is not None
            and not 0 <= deadline - snapshot.now < LEAST_S
            and latest_end(trial) > deadline
        }
        ours = {one.action.trial: one for one in self._savings(snapshot, endangered)}
        theirs = (one for one in wanted.proposals if one.action.trial not in ours)
        calls = [at - LAST_CALL_S for name, at in endangered.items() if name not in ours]
        wakes = [at for at in calls if at > snapshot.now]
        wakes += [] if wanted.wake_at is None else [wanted.wake_at]
        return replace(wanted, proposals=(*ours.values(), *theirs), wake_at=min(wakes, default=None))

    def _savings(self, snapshot: Snapshot, endangered: Mapping[TrialId, float]) -> Iterator[Proposal]:
        """Yield what saves each of the ``endangered`` trials, whose deadlines these are, as far as anything does."""
        capacity = Capacity.of(snapshot)
        for trial in sorted((snapshot.named[name] for name in endangered), key=_rank):
            left = endangered[trial.id] - snapshot.now
            action = self._saving(trial, capacity, left)
            if action is not None:
                capacity.apply(action)
                when = f"in {left:.0f} s" if left > 0 else "any moment"
                yield Proposal(action, f"its node goes {when}")

    def _saving(self, trial: Trial, capacity: Capacity, left: float) -> Action | None:
        if nodes := _roomiest(trial, capacity):
            return Migrate(trial.id, nodes)
        waits_for_place = Place in self.policy.needs and LEAST_S <= left <= LAST_CALL_S
        return Suspend(trial.id) if waits_for_place else None


def _deadline(trial: Trial, deadlines: Mapping[NodeName, float]) -> float | None:
    """Return by when a trial must have left, in seconds of the sweep's clock; None where none of its nodes goes."""
    return min((deadlines[node] for node in trial.nodes if node in deadlines), default=None)


def _rank(trial: Trial) -> tuple[float, float, TrialId]:
    return trial.memory * trial.workers, latest_end(trial), trial.id


def _roomiest(trial: Trial, capacity: Capacity) -> tuple[NodeName, ...]:
    """Return the nodes that stay and have room for all workers of a trial: one with the most cores left if there is."""
    free = {
        name: node.cpu - capacity.requested(name)
        for name, node in capacity.nodes.items()
        if capacity.holds(trial, name, trial.workers)
    }
    if free:
        return (min(free, key=lambda name: (-free[name], name)),) * trial.workers
    return capacity.gathered(trial, trial.workers) if trial.gang else ()
