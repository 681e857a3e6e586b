"""The rules that choose the next command for a trial from what can be seen now. Pure.

An attempt's gates are opened together, once every worker has its pod and a node with room. The workflow's annotations
say how many pods each attempt of a gang gets; pods can be added to an attempt that waits, and never taken away. So one
that nobody has chosen a size for begins with the least number of workers, and grows before its gates open. A trial of
one worker needs no others, so the scheduler may find its node.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from controllers.core import labels
from controllers.core.after_attempt import AT_ONCE_S, pause_s
from controllers.core.model import Phase, Point, TrialId
from controllers.core.parameters import point_annotations
from controllers.worlds.argo.calls.grants import Grants
from controllers.worlds.argo.deciding.commands import (
    Annotate,
    AskToLeave,
    Command,
    Evict,
    HandOverRun,
    KeepNodes,
    Kill,
    LeaveRequest,
    OpenGates,
    Told,
    WithdrawShare,
    bound_to,
)
from controllers.worlds.argo.meaning.attempts import Attempt
from controllers.worlds.argo.meaning.limits import allowance, leaves_alike, why_no_more_leaving
from controllers.worlds.argo.meaning.room import NodeRoom
from controllers.worlds.argo.meaning.trials import TrialState
from controllers.worlds.argo.reading.marks import NO_MOVE, written_nodes
from controllers.worlds.argo.reading.pods import MainState, PodRecord, ResizeState

_SUSPENDED: Final = "its checkpoint is kept, and it waits for a place to go on"
_ENDED_BY_ITSELF: Final = "its last attempt ended by itself, and no node was chosen for the next"
_MOST_KILLS: Final = 2
_MOST_UNSAVED_RESIZES: Final = 10
"""Resizes that a killed controller may lose count of: to save the count each time would double the writes."""


@dataclass(frozen=True, slots=True)
class Timeouts:
    """How long to wait for what, in seconds.

    ``deferred``: for the kubelet to grant a share. ``unschedulable``: for room on the node of a move.
    ``unreachable``: for a pod to take the request to leave. ``shown``: for a kubelet to show an annotation to a
    program. ``lost``: for a node that is silent, and for its pods after their own grace period. ``kill_every``: between
    two attempts to kill a trainer. ``stale``: for news from the API server; nothing is done by an older view.
    """

    deferred: float = 10.0
    unschedulable: float = 20.0
    unreachable: float = 60.0
    lost: float = 60.0
    shown: float = 90.0
    kill_every: float = 6.0
    stale: float = 60.0


def choice(state: TrialState, attempt: Attempt, nodes: tuple[str, ...], point: Point = ()) -> Annotate:
    """Return what notes where the workers of a gang shall go that waits at its gates, so that it gets as many pods.

    ``point`` are hyperparameters that a search gave the trial.
    """
    # With the counts: once it has a place, nothing tells any more that a suspension brought it here.
    marks = {labels.ANNOTATION_PLACE: written_nodes(nodes), **state.counts.annotations()}
    return Annotate(attempt, {**point_annotations(point), **marks} if point else marks, reserves=nodes)


@dataclass(frozen=True, slots=True)
class Planner:
    """Chooses the next command for a trial by the nodes' ``room`` and what is granted, at ``now`` (Unix seconds).

    ``ends_soon`` tells whether a trial has less left to do than another attempt would take to begin.
    """

    room: NodeRoom
    now: float
    timeouts: Timeouts
    grants: Grants
    ends_soon: Callable[[TrialId], bool] = lambda _: False

    def next_command(self, state: TrialState, asked: LeaveRequest | None) -> Command | None:
        """Return what to do now, None where there is nothing.

        Args:
            state: the trial.
            asked: the request to leave that was made of its newest attempt, if there was one.
        """
        attempt = state.attempt
        if attempt is None or attempt.over or attempt.ends or state.phase.ended:
            return _limit_alike(state)
        there = [worker for worker in attempt.workers if not worker.over]
        lost = next(((worker, why) for worker in there if (why := self._why_lost(worker))), None)
        if lost and self.grants.evicts:
            return _removal(attempt, lost[:1], lost[1])
        staying = [worker for worker in there if worker.deleted_at is None]
        unplaced = tuple(worker for worker in staying if not worker.node)
        if state.stopped and unplaced and self.grants.evicts:
            # Argo makes others in their place, which only end.
            return _removal(attempt, unplaced, "its trial is stopped")
        if staying and _shall_leave(state, attempt) and any(worker.main is MainState.RUNNING for worker in there):
            return self._for_leaving(state, attempt, asked)
        return self._for_staying(state, attempt, staying) if staying else None

    def _for_staying(self, state: TrialState, attempt: Attempt, staying: Sequence[PodRecord]) -> Command | None:
        """Return what an attempt needs to start, and to go on; ``staying`` are the pods that nobody has deleted."""
        if attempt.gang and not state.waits_to_begin and (plan := state.planned(attempt)) != state.notes.plan:
            return Annotate(attempt, on_workflow=plan.annotations(state.definition))
        if any(worker.gated for worker in staying):
            return self._for_gated(state, attempt)
        if not all(worker.node for worker in staying):
            return self._for_unscheduled(state, attempt, staying) or _hand_over(state, attempt, staying)
        if any(self._resize_is_overdue(worker) for worker in staying):
            return WithdrawShare(attempt)
        return _hand_over(state, attempt, staying) or self._for_steady(state, attempt)

    def _why_lost(self, worker: PodRecord) -> str | None:
        """Return why a deleted pod is to be removed, None where it is not: its node is lost.

        Its end is never reported otherwise, and Argo waits for that.
        """
        if not worker.node or worker.deleted_at is None:
            return None
        node, bound = self.room.nodes.get(worker.node), self.timeouts.lost
        silent = self.now - (node.unready_since if node and node.unready_since is not None else self.now)
        if self.now - worker.deleted_at <= bound or (node is not None and silent <= bound):
            return None
        # Its containers may still run there. That is safe: an attempt that finds a newer one writes nothing.
        lost = (
            f"node {worker.node} is gone" if node is None else f"node {worker.node} has been silent for {silent:.0f} s"
        )
        return f"{lost}; its trial goes on elsewhere"

    def _for_leaving(self, state: TrialState, attempt: Attempt, asked: LeaveRequest | None) -> Command | None:
        """Return what brings an attempt that runs to its end: it is asked, then killed, then removed."""
        if why_not := attempt.why_unasked(self.grants):
            return self._given_up(state, attempt, why_not)
        ask = AskToLeave(attempt, self.grants.signals)
        if asked is None:
            return ask
        if asked.delivered_at is None:
            in_vain = asked.vain_s > self.timeouts.unreachable
            why = f"the pod could not be asked to leave in {asked.vain_s:.0f} s"
            return (self._given_up(state, attempt, why) if in_vain else None) or ask
        return self._for_deaf(state, attempt, asked.kills, self.now - asked.delivered_at)

    def _for_deaf(self, state: TrialState, attempt: Attempt, kills: int, waited: float) -> Command | None:
        """Return what becomes of an attempt that was asked ``waited`` seconds ago and is still there."""
        why = f"it did not leave in {waited:.0f} s"
        if not self.grants.signals:
            if waited <= attempt.lead.grace_s + self.timeouts.shown:
                return None
            # The kubelet sends it the signal that nobody else may send.
            evict = _removal(attempt, _left(attempt), why, waits=True)
            return evict if self.grants.evicts else self._given_up(state, attempt, why)
        if waited <= attempt.lead.grace_s + kills * self.timeouts.kill_every:
            return None
        if kills < _MOST_KILLS:
            return Kill(attempt)
        why = f"{why}, and could not be killed"
        return _removal(attempt, _left(attempt), why) if self.grants.evicts else self._given_up(state, attempt, why)

    def _given_up(self, state: TrialState, attempt: Attempt, reason: str) -> Annotate | Evict | None:
        """Return what becomes of an attempt that cannot be made to leave; None where it is stopped, and stays so."""
        if state.stopped:
            return None
        if attempt.marks.move_to or attempt.marks.rest:
            return Annotate(attempt, NO_MOVE, told=Told("MoveFailed", reason, warning=True))
        why = f"one of its workers failed, and {reason}"
        return _removal(attempt, _left(attempt), why) if self.grants.evicts else None

    def _for_gated(self, state: TrialState, attempt: Attempt) -> Command | None:
        """Return what an attempt needs that waits at its gates, or at some of them."""
        if not attempt.gated:
            return self._opening_the_rest(state, attempt)
        if state.stopped:
            # Nobody may evict its pods. Its program is asked to leave as soon as it runs.
            return self._opening(state, attempt, (), "its trial is stopped, and ends once it has started")
        if state.suspended and not attempt.marks.suspended:
            # The pod that was suspended, and says so, may be deleted.
            marks = {**state.counts.annotations(), labels.ANNOTATION_SUSPENDED: "true"}
            return Annotate(attempt, marks, told=Told("Suspended", _SUSPENDED))
        if state.waits_to_begin or state.suspended:
            return None  # only the policy opens the gates, by a Place
        if limit := _limit_before(state, attempt):
            return limit
        if attempt.queued or attempt.devices_pending:
            return None  # Kueue takes its own gates away once it has admitted it, and claims are made within seconds
        chosen = state.targets_of_previous or attempt.marks.place
        if not chosen and self.now < attempt.created_at + pause_s(state.history.idling.barren):
            return None
        return self._gathering(state, attempt) if attempt.gang else self._opening_for_one(state, attempt)

    def _gathering(self, state: TrialState, attempt: Attempt) -> Annotate | OpenGates | None:
        """Return what brings the workers of a gang together: part of it would hold room for nothing."""
        targets, place = state.targets_of_previous, attempt.marks.place
        nodes = self._nodes_for(state, attempt)
        if nodes and nodes != place and (nodes != targets or len(nodes) > attempt.size):
            # What is noted is reserved: of two gangs that wait for the same room, one gets all of it.
            return choice(state, attempt, nodes)
        if not nodes or not attempt.whole or len(nodes) != attempt.size:
            return None
        written = written_nodes(nodes)
        why = f"as its policy wants: {written}" if place and not targets else _moved(state, written)
        return self._opening(state, attempt, nodes, why)

    def _opening_for_one(self, state: TrialState, attempt: Attempt) -> OpenGates:
        """Open the gate of a single worker: for the node of its move, or wherever the scheduler finds room for it."""
        targets = state.targets_of_previous[:1]
        if why_not := self._why_unfit(state, attempt, targets):
            return self._opening(state, attempt, (), f"{why_not}; the scheduler finds another node")
        return self._opening(state, attempt, targets, _moved(state, written_nodes(targets)))

    def _opening(self, state: TrialState, attempt: Attempt, nodes: Sequence[str], why: str) -> OpenGates:
        left, known = _left_nodes(state), self.room.nodes
        bound = bound_to(attempt, [known.get(name) for name in nodes]) or (None,) * len(attempt.workers)
        return OpenGates(attempt, bound, why, left, state.definition.point)

    def _nodes_for(self, state: TrialState, attempt: Attempt) -> tuple[str, ...]:
        """Return where the workers of a gang's attempt go that waits at its gates: all of them, or none yet."""
        trial, previous = state.definition, state.history.previous
        chosen = attempt.marks.place or state.targets_of_previous
        if len(chosen) >= attempt.size and not self._why_unfit(state, attempt, chosen):
            return chosen
        before = chosen or (() if previous is None else previous.nodes)
        most = max(attempt.size, min(len(before), trial.workers))
        for workers in range(most, max(attempt.size, trial.min_workers) - 1, -1):
            if nodes := self.room.places(workers, attempt.requests, attempt.demands, trial.id, before):
                return nodes
        return ()

    def _why_unfit(self, state: TrialState, attempt: Attempt, nodes: Sequence[str]) -> str | None:
        return self.room.why_unfit(nodes, attempt.requests, attempt.demands, state.definition.id)

    def _opening_the_rest(self, state: TrialState, attempt: Attempt) -> OpenGates:
        """Open the gates that are still there: a controller ended while it opened them, or Argo replaced pods."""
        chosen, known = attempt.marks.place or state.targets_of_previous, self.room.nodes
        nodes = []
        for worker in attempt.workers:
            name = chosen[worker.rank] if worker.rank < len(chosen) else ""
            fits = worker.gated and not self._why_unfit(state, attempt, [name])
            nodes.append(known[name] if fits else None)
        why = "the others of its gang have started"
        return OpenGates(attempt, bound_to(attempt, nodes), why, point=state.definition.point)

    def _for_unscheduled(self, state: TrialState, attempt: Attempt, staying: Iterable[PodRecord]) -> Evict | None:
        """Return what pods need that were let go, are on no node yet, and cannot start where they were sent."""
        if not self.grants.evicts:
            return None
        unplaced = (worker for worker in staying if not worker.node)
        stuck = [(worker, why) for worker in unplaced if (why := self._why_unscheduled(worker))]
        # Kubernetes allows no change of an ungated pod's node selector, so only a new pod can go elsewhere.
        pods = tuple(worker for worker, _ in stuck)
        unmarked = (attempt,) if (previous := state.history.previous) is None else (attempt, previous)
        return Evict(attempt, pods, Told("MoveFailed", stuck[0][1], warning=True), unmarked) if stuck else None

    def _why_unscheduled(self, worker: PodRecord) -> str | None:
        """Return why a pod cannot start where it was sent, None where it may yet."""
        if not worker.marks.placed_on or worker.unschedulable_since is None:
            return None
        node = self.room.nodes.get(worker.marks.placed_on)
        takes_pods = node is not None and node.fit and node.allows(worker.demands)
        if takes_pods and self.now - worker.unschedulable_since <= self.timeouts.unschedulable:
            return None
        why = "there is no room" if takes_pods else "it takes no pods"
        return f"{why} on {worker.marks.placed_on}, which was chosen for it"

    def _resize_is_overdue(self, worker: PodRecord) -> bool:
        """Return whether to take a resize of ours back: the scheduler counts a deferred one in full all the while."""
        share = worker.share
        # Without our note of the first request the resize is somebody else's, and theirs to take back.
        if worker.marks.base_cpu is None or share.state is ResizeState.GRANTED:
            return False
        if share.state is ResizeState.INFEASIBLE:
            return share.wanted != share.has
        return share.wanted > share.has and self.now - (share.since or 0.0) > self.timeouts.deferred

    def _for_steady(self, state: TrialState, attempt: Attempt) -> Command | None:
        """Return what an attempt needs that runs where it shall."""
        marks, lead = attempt.marks, attempt.lead
        # A pod that says where it came from implies that move, and needs no write for it.
        unsaved_move = state.moves > marks.moves and not marks.moved_from
        unsaved_resizes = state.history.resizes - marks.resizes >= _MOST_UNSAVED_RESIZES
        if (unsaved_move or unsaved_resizes) and state.phase is Phase.RUNNING:
            # It is counted from now on: the mark of the move that brought the pod here would count it again.
            return Annotate(attempt, {**state.counts.annotations(), labels.ANNOTATION_MOVED_FROM: None})
        allowed, said = allowance(state), state.notes.tries
        settled = lead.runs_since is not None and self.now - lead.runs_since > AT_ONCE_S
        # Once it did not fail again at once, whatever comes now is another failure.
        if allowed != said and (settled or said is None):
            return _limit(state, attempt, labels.ANNOTATION_TRIES, allowed)
        return self._keep_nodes(state, attempt)

    def _keep_nodes(self, state: TrialState, attempt: Attempt) -> KeepNodes | None:
        """Return what keeps Karpenter from removing an attempt's nodes while it ends soon, and no longer."""
        if any(worker.marks.own_stay for worker in attempt.workers):
            return None
        nodes = [self.room.nodes.get(name) for name in attempt.nodes]
        stay = any(node and node.karpenters for node in nodes) and self.ends_soon(state.definition.id)
        return None if stay == attempt.marks.stays else KeepNodes(attempt, stay)


def _shall_leave(state: TrialState, attempt: Attempt) -> bool:
    """Return whether an attempt was told to leave, or cannot go on, since it has lost a worker."""
    told = attempt.marks.move_to or attempt.marks.rest or state.stopped
    return bool(told) or any(worker.phase == "Failed" for worker in attempt.workers)


def _removal(attempt: Attempt, pods: tuple[PodRecord, ...], reason: str, *, waits: bool = False) -> Evict:
    """Return what removes pods for good, so that Argo makes the next attempt."""
    return Evict(attempt, pods, Told("Removed", reason, warning=True), waits=waits)


def _left(attempt: Attempt) -> tuple[PodRecord, ...]:
    return tuple(worker for worker in attempt.workers if not worker.over)


def _left_nodes(state: TrialState) -> str:
    """Return the nodes that the attempt before left in a move, as annotations have them; empty where it did not."""
    before = state.history.just_before
    return written_nodes(before.nodes) if before is not None and before.marks.move_to else ""


def _moved(state: TrialState, to: str) -> str:
    left = _left_nodes(state)
    return f"it moves from {left} to {to}" if left else _ENDED_BY_ITSELF


def _hand_over(state: TrialState, attempt: Attempt, staying: Iterable[PodRecord]) -> HandOverRun | None:
    """Return what tells a program its run that is about to start and was not told it at a gate."""
    first = next((worker for worker in staying if worker.rank == 0), None)
    if first is None or first.main is not MainState.WAITING or first.marks.run:
        return None
    return HandOverRun(attempt) if first.is_told_a_run(goes_on=state.goes_on) else None


def _limit_before(state: TrialState, attempt: Attempt) -> Annotate | None:
    """Return what Argo is to know before an attempt begins: by its end, that may be too late."""
    said, allowed, why = state.notes, allowance(state), why_no_more_leaving(state)
    if why and (said.idle is None or said.idle >= attempt.number):
        return _limit(state, attempt, labels.ANNOTATION_IDLE, attempt.number - 1, why)
    return None if allowed in {None, said.tries} else _limit(state, attempt, labels.ANNOTATION_TRIES, allowed)


def _limit_alike(state: TrialState) -> Annotate | None:
    """Return what makes Argo give up a trial that fails again and again, as it would with a mistake in its program.

    Argo's expressions see only the newest attempt. It may have begun another by now: that is the last, then.
    """
    attempt, said, failure, left = state.attempt, state.notes, state.fails_alike, leaves_alike(state)
    if attempt is None or not (failure or left) or state.phase.ended:
        return None
    if left:
        why = f"it left twice alike at once, unasked, and came no further (exit code {left})"
        known = said.idle is not None and said.idle < attempt.number
        return None if known else _limit(state, attempt, labels.ANNOTATION_IDLE, attempt.number - 1, why)
    tries = attempt.number - 1 - len(said.plan.left)
    if said.tries is not None and said.tries <= tries:
        return None
    why = f"it failed twice alike at once (exit code {failure})"
    return _limit(state, attempt, labels.ANNOTATION_TRIES, tries, why)


def _limit(state: TrialState, attempt: Attempt, kind: str, tries: int | None, reason: str = "") -> Annotate:
    """Return what says on the workflow after how many attempts one is the last; with None its author's limit holds.

    ``reason`` is why the trial is given up, empty where it is not.
    """
    told = Told("GivenUp", f"{reason}, and is not tried again", warning=True) if reason else None
    said = None if tries is None else str(tries)
    return Annotate(attempt, on_workflow={state.definition.mark(kind): said}, told=told)
