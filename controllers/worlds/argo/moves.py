"""What is to be done next for a trial, from what can be seen now.

The marks on the pods remember how far a move has come, so that a controller killed at any instant goes on from there.
"""

from dataclasses import dataclass

from controllers.core.model import Phase
from controllers.worlds.argo.deeds import Abandon, Ask, Deed, Force, Note, Open, Recreate, Remove, Withdraw
from controllers.worlds.argo.pods import MainState, PodRecord
from controllers.worlds.argo.resize import overdue
from controllers.worlds.argo.room import Room
from controllers.worlds.argo.trials import TrialState

_MOST_FORCE = 2
_MOST_UNCOUNTED = 10
"""Resizes that a controller which is killed may leave uncounted: each note is one more write."""


@dataclass(frozen=True, slots=True)
class Patience:
    """How long to wait for what, in seconds.

    ``deferred``: for the kubelet to grant a share. ``unschedulable``: for room on the node of a move.
    ``unreachable``: for a pod to take the request to leave. ``lost``: for a node that is not heard of, and for
    its pods after their own grace. ``force_every``: between two attempts to end a trainer by force.
    ``stale``: for news from the API server; older sights are not acted upon.
    """

    deferred: float = 10.0
    unschedulable: float = 20.0
    unreachable: float = 60.0
    lost: float = 60.0
    force_every: float = 6.0
    stale: float = 60.0


@dataclass(frozen=True, slots=True)
class Asked:
    """How the request to leave fares: when it was first tried, when it got there, and how often force was tried since.

    Times are Unix seconds.
    """

    tried_at: float
    at: float | None = None
    forced: int = 0


@dataclass(frozen=True, slots=True)
class Outlook:
    """All that a decision needs beside the trial: the nodes, the time in Unix seconds, how long to wait."""

    room: Room
    now: float
    patience: Patience


def due(state: TrialState, asked: Asked | None, outlook: Outlook) -> Deed | None:
    """Return what is to be done now, None where there is nothing.

    Args:
        state: the trial.
        asked: how the request to leave that was made of the newest pod fares, if one was.
        outlook: the rest.
    """
    pod = state.pod
    if pod is None or pod.over or state.phase.ended:
        return None
    if pod.deleted_at is not None:
        return _lost(pod, pod.deleted_at, outlook)
    if not pod.node:
        return _waiting(state, pod, outlook)
    if pod.marks.move_to and pod.main is MainState.RUNNING:
        return _leaving(pod, asked, outlook)
    if overdue(pod, outlook.now, outlook.patience.deferred):
        return Withdraw(pod)
    untold = state.moves > pod.marks.moves and not pod.marks.moved_from
    uncounted = state.known.resizes - pod.marks.resizes >= _MOST_UNCOUNTED
    return Note(pod) if (untold or uncounted) and state.phase is Phase.RUNNING else None


def _waiting(state: TrialState, pod: PodRecord, outlook: Outlook) -> Deed | None:
    if not pod.gated:
        return _stuck(state, pod, outlook)
    # The gate of a first attempt is the policy's to open.
    return _gated(state, pod, outlook) if pod.attempt > 1 else None


def _leaving(pod: PodRecord, asked: Asked | None, outlook: Outlook) -> Deed | None:
    patience = outlook.patience
    if asked is None:
        return Ask(pod)
    if asked.at is None:
        tried = outlook.now - asked.tried_at
        late = tried > patience.unreachable
        return Abandon(pod, f"the pod could not be asked to leave in {tried:.0f} s") if late else Ask(pod)
    waited = outlook.now - asked.at
    if waited <= pod.grace_s + asked.forced * patience.force_every:
        return None
    if asked.forced < _MOST_FORCE:
        return Force(pod, asked.forced)
    return Remove(pod, f"it neither left in {waited:.0f} s nor could be killed")


def _gated(state: TrialState, pod: PodRecord, outlook: Outlook) -> Deed:
    target, before = state.mark_before, state.known.before
    left = before.node if before is not None and target is not None else ""
    if target is None:
        return Open(pod, None, "it ended its last attempt by itself, with no node chosen for the next")
    why_not = outlook.room.unfit(target, pod.load)
    if why_not:
        return Open(pod, None, f"{why_not}; the scheduler finds another node", left)
    return Open(pod, outlook.room.nodes[target], f"it moves from {left} to {target}", left)


def _stuck(state: TrialState, pod: PodRecord, outlook: Outlook) -> Deed | None:
    """The affinity of an ungated pod can't be changed: where its node can't take it, only a new pod helps."""
    if not pod.marks.placed_on or pod.unschedulable_since is None:
        return None
    node = outlook.room.nodes.get(pod.marks.placed_on)
    waited = outlook.now - pod.unschedulable_since
    if node is not None and node.fit and waited <= outlook.patience.unschedulable:
        return None
    what = "there is no room" if node is not None and node.fit else "it takes no pods"
    return Recreate(pod, state.known.before, f"{what} on {pod.marks.placed_on}, which was chosen for it")


def _lost(pod: PodRecord, deleted_at: float, outlook: Outlook) -> Deed | None:
    """A pod on a lost node is never reported as gone, and Argo waits for that.

    Its containers may run on. That is safe, since an attempt that finds a newer one writes nothing.
    """
    if not pod.node:
        return None
    node, bound = outlook.room.nodes.get(pod.node), outlook.patience.lost
    silent = outlook.now - (node.unready_since if node and node.unready_since is not None else outlook.now)
    if outlook.now - deleted_at <= bound or (node is not None and silent <= bound):
        return None
    what = f"node {pod.node} is gone" if node is None else f"node {pod.node} was not heard of for {silent:.0f} s"
    return Remove(pod, f"{what}; its trial goes on elsewhere")
