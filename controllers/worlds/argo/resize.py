"""Changing a trial's share in place, and taking back a wish that its node can't fulfil."""

from controllers.core import labels
from controllers.worlds.argo import patches
from controllers.worlds.argo.api import KubeApi
from controllers.worlds.argo.pods import MainState, PodRecord, ResizeState
from controllers.worlds.argo.room import Room


def objection(pod: PodRecord, cpu: float, room: Room) -> str:
    """Return why the main container of ``pod`` can't have ``cpu`` cores, nothing where it can."""
    share = pod.share
    if pod.main is not MainState.RUNNING or pod.deleted_at is not None:
        return "the trial is not running"
    if patches.milli(cpu) < 1:
        return f"{cpu:g} cores are too few: the least is 0.001"
    if pod.quality != "Burstable" or not share.wanted:
        return f"a pod of quality of service {pod.quality} would lose it with a request of {cpu:g} cores"
    if share.limit is not None and cpu > share.limit:
        return f"{cpu:g} cores are more than the container's limit of {share.limit:g}"
    if room.too_much(pod.node, cpu - max(share.wanted, share.has)):
        return f"{cpu:g} cores do not fit on {pod.node}"
    return ""


def carry_out(api: KubeApi, pod: PodRecord, cpu: float, resizes: int) -> None:
    """Ask for the share; before the first time, note what the pod was created with.

    Raises:
        ApiError: the API server refused: ``ForbiddenError`` where the node could never give as much.
    """
    if pod.marks.base_cpu is None:
        base, before = f"{pod.share.wanted:g}", str(resizes)
        patches.annotate(api, pod, {labels.ANNOTATION_BASE_CPU: base, labels.ANNOTATION_RESIZES: before})
    patches.resize(api, pod, cpu)


def overdue(pod: PodRecord, now: float, deferred_after_s: float) -> bool:
    """Whether a wish of ours should be taken back: a deferred one counts in full with the scheduler all the while.

    Args:
        pod: the pod.
        now: Unix seconds.
        deferred_after_s: how long a deferred wish may wait.
    """
    if pod.marks.base_cpu is None or pod.share.state is ResizeState.SETTLED or pod.share.wanted <= pod.share.has:
        return False
    waited = now - (pod.share.since or 0.0)
    return pod.share.state is ResizeState.INFEASIBLE or waited > deferred_after_s
