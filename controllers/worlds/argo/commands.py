"""The commands that a trial's pods may need next, and the rules that choose one for a trial of a single worker.

The marks on the pods record how far a move has come, so a controller that is killed at any instant goes on from there.
"""

from dataclasses import dataclass, replace
from typing import Final

from controllers.core.failures import AT_ONCE_S, pause_s
from controllers.core.model import Phase, Point
from controllers.worlds.argo.attempts import allowance, idles_too_often, idling_of, leaves_alike
from controllers.worlds.argo.gangs import GangPlan
from controllers.worlds.argo.nodes import NodeRecord, NodeRoom
from controllers.worlds.argo.pods import MainState, PodRecord, ResizeState
from controllers.worlds.argo.trials import TrialState

ENDED_BY_ITSELF: Final = "its last attempt ended by itself, and no node was chosen for the next"
_MOST_KILLS = 2
_MOST_BETWEEN_S = 30.0
"""Seconds between two tries to reach a pod that count as in vain: for longer, nobody tried."""
_MOST_UNSAVED_RESIZES = 10
"""Resizes that a killed controller may lose count of: to save the count each time would double the writes."""


@dataclass(frozen=True, slots=True)
class AskToLeave:
    """Send SIGTERM to the trainer, so that it saves a checkpoint and exits."""

    pod: PodRecord


@dataclass(frozen=True, slots=True)
class Kill:
    """Kill the trainer, which did not leave in its grace period."""

    pod: PodRecord


@dataclass(frozen=True, slots=True)
class OpenGate:
    """Take the gate away and bind the pod to ``node``, or leave its place to the scheduler (None).

    ``point`` are hyperparameters that a search gave the trial.
    """

    pod: PodRecord
    node: NodeRecord | None
    reason: str
    moved_from: str = ""
    point: Point = ()


@dataclass(frozen=True, slots=True)
class OpenGates:
    """Take the gates of a gang's workers away, in order of rank: all that are still there.

    ``nodes`` has what each rank is bound to, None where the scheduler finds a place for it. ``token`` is the attempt's.
    """

    pod: PodRecord
    nodes: tuple[NodeRecord | None, ...]
    token: str
    reason: str
    moved_from: str = ""
    point: Point = ()


@dataclass(frozen=True, slots=True)
class ChoosePlace:
    """Note on a gang that waits at its gates where its workers shall go, so that it gets as many pods.

    ``point`` are hyperparameters that a search gave the trial.
    """

    pod: PodRecord
    nodes: tuple[str, ...]
    point: Point = ()


@dataclass(frozen=True, slots=True)
class Replan:
    """Write down how many workers this attempt of a gang and the next one have."""

    pod: PodRecord
    plan: GangPlan


@dataclass(frozen=True, slots=True)
class Hold:
    """Mark a gated pod as one that waits to go on after a suspension: the pod that was suspended may be deleted."""

    pod: PodRecord


@dataclass(frozen=True, slots=True)
class AbandonMove:
    """Give a move or a suspension up: take its mark from ``pod``, where the trial goes on."""

    pod: PodRecord
    reason: str


@dataclass(frozen=True, slots=True)
class Recreate:
    """Delete a pod that cannot start on the node it was bound to; Argo makes it anew, gated, as the same attempt.

    ``previous`` is the pod of the attempt before, whose mark goes too. Of a gang, the pods of ``ranks`` are meant.
    """

    pod: PodRecord
    previous: PodRecord | None
    reason: str
    ranks: frozenset[int] = frozenset()


@dataclass(frozen=True, slots=True)
class Remove:
    """Delete a pod for good, without waiting for its kubelet, so that Argo makes the next attempt.

    Of a gang, the pods of ``ranks`` are meant.
    """

    pod: PodRecord
    reason: str
    ranks: frozenset[int] = frozenset()


@dataclass(frozen=True, slots=True)
class WithdrawResize:
    """Take back the request for a share that the node cannot give."""

    pod: PodRecord


@dataclass(frozen=True, slots=True)
class SaveCounts:
    """Write the trial's moves, suspensions and resizes on its newest pod, so that they outlive the pods before."""

    pod: PodRecord


@dataclass(frozen=True, slots=True)
class HandOverRun:
    """Write the trial's run in MLflow on a pod that nothing holds back, in the seconds before its program starts.

    Of a gang it is the pod of rank 0: the other workers log nothing.
    """

    pod: PodRecord


@dataclass(frozen=True, slots=True)
class LimitTries:
    """Say on the workflow, by the annotation ``mark``, after how many attempts one that fails, or leaves, is the last.

    With None its author's limit holds again. ``reason`` is why it is given up, empty where it is not.
    """

    pod: PodRecord
    mark: str
    tries: int | None
    reason: str = ""


Command = (
    AskToLeave
    | Kill
    | OpenGate
    | OpenGates
    | ChoosePlace
    | Replan
    | Hold
    | AbandonMove
    | Recreate
    | Remove
    | WithdrawResize
    | SaveCounts
    | HandOverRun
    | LimitTries
)


@dataclass(frozen=True, slots=True)
class Timeouts:
    """How long to wait for what, in seconds.

    ``deferred``: for the kubelet to grant a share. ``unschedulable``: for room on the node of a move.
    ``unreachable``: for a pod to take the request to leave. ``lost``: for a node that is silent, and for its pods
    after their own grace period. ``kill_every``: between two attempts to kill a trainer. ``stale``: for news from the
    API server; nothing is done by an older view.
    """

    deferred: float = 10.0
    unschedulable: float = 20.0
    unreachable: float = 60.0
    lost: float = 60.0
    kill_every: float = 6.0
    stale: float = 60.0


@dataclass(frozen=True, slots=True)
class LeaveRequest:
    """How the request to leave fares that this process made of a pod. Times are Unix seconds.

    ``tried_at`` is when it was last tried at an API server that answered, and ``vain_s`` for how many seconds by then
    in vain: what was asked for while that server or this process was away has not been tried. ``delivered_at`` is None
    until the pod has taken it; ``kills`` counts the attempts to kill the trainer since.
    """

    tried_at: float | None = None
    vain_s: float = 0.0
    delivered_at: float | None = None
    kills: int = 0

    def tried(self, now: float) -> "LeaveRequest":
        """Return it as tried once more."""
        since = 0.0 if self.tried_at is None else min(_MOST_BETWEEN_S, max(0.0, now - self.tried_at))
        return replace(self, tried_at=now, vain_s=self.vain_s + since)


@dataclass(frozen=True, slots=True)
class Planner:
    """Chooses the next command for a trial by the nodes' ``room``, at ``now`` (Unix seconds)."""

    room: NodeRoom
    now: float
    timeouts: Timeouts

    def next_command(self, state: TrialState, asked: LeaveRequest | None) -> Command | None:
        """Return what to do now, None where there is nothing.

        Args:
            state: the trial.
            asked: the request to leave that was made of its newest pod, if there was one.
        """
        pod = state.pod
        if pod is None or pod.over or pod.ends or state.phase.ended:
            return limit_tries(state)
        if pod.deleted_at is not None:
            return self.for_deleted(pod, pod.deleted_at)
        if not pod.node and state.stopped:
            # Argo makes it anew, as one that only ends.
            return Remove(pod, "its trial is stopped")
        if not pod.node:
            return (
                self._for_gated(state, pod) if pod.gated else self.for_unscheduled(state, pod) or hand_over(state, pod)
            )
        if (pod.marks.move_to or pod.marks.rest or state.stopped) and pod.main is MainState.RUNNING:
            return self.for_leaving(state, pod, asked)
        if self.resize_is_overdue(pod):
            return WithdrawResize(pod)
        return hand_over(state, pod) or self.for_steady(state, pod)

    def for_steady(self, state: TrialState, pod: PodRecord) -> Command | None:
        """Return what a pod needs that runs where it shall."""
        # A pod that says where it came from implies that move, and needs no write for it.
        unsaved_move = state.moves > pod.marks.moves and not pod.marks.moved_from
        unsaved_resizes = state.history.resizes - pod.marks.resizes >= _MOST_UNSAVED_RESIZES
        if (unsaved_move or unsaved_resizes) and state.phase is Phase.RUNNING:
            return SaveCounts(pod)
        allowed = allowance(state)
        settled = pod.runs_since is not None and self.now - pod.runs_since > AT_ONCE_S
        # Once it did not fail again at once, whatever comes now is another failure.
        if allowed != state.tries and (settled or state.tries is None):
            return LimitTries(pod, state.definition.tries_mark, allowed)
        return None

    def for_leaving(self, state: TrialState, pod: PodRecord, asked: LeaveRequest | None) -> Command | None:
        """Return what brings a pod that runs to its end: it is asked, then killed, then removed."""
        if pod.shares_processes:
            return None if state.stopped else AbandonMove(pod, f"it is not asked to leave: {pod.shares_processes}")
        if asked is None:
            return AskToLeave(pod)
        if asked.delivered_at is None:
            in_vain = asked.vain_s > self.timeouts.unreachable
            if in_vain and not state.stopped:  # a stop is on the workflow, and stays there
                return AbandonMove(pod, f"the pod could not be asked to leave in {asked.vain_s:.0f} s")
            return AskToLeave(pod)
        waited = self.now - asked.delivered_at
        if waited <= pod.grace_s + asked.kills * self.timeouts.kill_every:
            return None
        if asked.kills < _MOST_KILLS:
            return Kill(pod)
        return Remove(pod, f"it did not leave in {waited:.0f} s, and could not be killed")

    def _for_gated(self, state: TrialState, pod: PodRecord) -> Command | None:
        if state.suspended and not pod.marks.suspended:
            return Hold(pod)
        if state.waits_to_begin or state.suspended:
            return None  # only the policy opens the gate, by a Place
        if limit := self._limit_before(state, pod):
            return limit
        targets, previous = state.targets_of_previous, state.history.previous
        point = state.definition.point
        if not targets:
            if self.now < pod.created_at + pause_s(idling_of(state).barren):
                return None
            return OpenGate(pod, None, ENDED_BY_ITSELF, point=point)
        target, left = targets[0], previous.node if previous is not None else ""
        why_not = self.room.why_unfit(target, pod.requests, pod.demands, state.definition.id)
        if why_not:
            return OpenGate(pod, None, f"{why_not}; the scheduler finds another node", left, point)
        return OpenGate(pod, self.room.nodes[target], f"it moves from {left} to {target}", left, point)

    def _limit_before(self, state: TrialState, pod: PodRecord) -> LimitTries | None:
        """Return what Argo is to know before an attempt begins: by its end, that may be too late."""
        why = idles_too_often(state)
        if why and (state.idle is None or state.idle >= pod.attempt):
            return LimitTries(pod, state.definition.idle_mark, pod.attempt - 1, why)
        allowed = allowance(state)
        return None if allowed in {None, state.tries} else LimitTries(pod, state.definition.tries_mark, allowed)

    def for_unscheduled(self, state: TrialState, pod: PodRecord) -> Recreate | None:
        """Return what a pod needs that was let go and is on no node yet."""
        if not pod.marks.placed_on or pod.unschedulable_since is None:
            return None
        node = self.room.nodes.get(pod.marks.placed_on)
        takes_pods = node is not None and node.fit and node.allows(pod.demands)
        if takes_pods and self.now - pod.unschedulable_since <= self.timeouts.unschedulable:
            return None
        # Kubernetes allows no change of an ungated pod's node selector, so only a new pod can go elsewhere.
        why = "there is no room" if takes_pods else "it takes no pods"
        return Recreate(pod, state.history.previous, f"{why} on {pod.marks.placed_on}, which was chosen for it")

    def for_deleted(self, pod: PodRecord, deleted_at: float) -> Command | None:
        """Remove a pod whose node is lost: its end is never reported otherwise, and Argo waits for that."""
        if not pod.node:
            return None
        node, bound = self.room.nodes.get(pod.node), self.timeouts.lost
        silent = self.now - (node.unready_since if node and node.unready_since is not None else self.now)
        if self.now - deleted_at <= bound or (node is not None and silent <= bound):
            return None
        # Its containers may still run there. That is safe: an attempt that finds a newer one writes nothing.
        why = f"node {pod.node} is gone" if node is None else f"node {pod.node} has been silent for {silent:.0f} s"
        return Remove(pod, f"{why}; its trial goes on elsewhere")

    def resize_is_overdue(self, pod: PodRecord) -> bool:
        """Return whether to take a resize of ours back: the scheduler counts a deferred one in full all the while."""
        share = pod.share
        # Without our note of the first request the resize is somebody else's, and theirs to take back.
        if pod.marks.base_cpu is None or share.state is ResizeState.GRANTED or share.wanted <= share.has:
            return False
        return share.state is ResizeState.INFEASIBLE or self.now - (share.since or 0.0) > self.timeouts.deferred


def limit_tries(state: TrialState) -> LimitTries | None:
    """Return what makes Argo give up a trial that fails again and again, as it would with a mistake in its program.

    Argo's expressions see only the newest attempt. It may have begun another by now: that is the last, then.
    """
    pod, failure, left = state.pod, state.fails_alike, leaves_alike(state)
    if pod is None or not (failure or left) or state.phase.ended:
        return None
    if left:
        why = f"it left twice alike at once, unasked, and came no further (exit code {left})"
        known = state.idle is not None and state.idle < pod.attempt
        return None if known else LimitTries(pod, state.definition.idle_mark, pod.attempt - 1, why)
    tries = pod.attempt - 1 - len(state.plan.left)
    if state.tries is not None and state.tries <= tries:
        return None
    return LimitTries(pod, state.definition.tries_mark, tries, f"it failed twice alike at once (exit code {failure})")


def hand_over(state: TrialState, pod: PodRecord) -> Command | None:
    """Return what tells a program its run that is about to start and was not told it at a gate."""
    told = pod.is_told_a_run(goes_on=state.goes_on) and not pod.marks.run
    return HandOverRun(pod) if told and pod.main is MainState.WAITING else None
