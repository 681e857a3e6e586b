"""An attempt of a trial: the pods of its workers, and what holds of all of them together. Pure.

A trial of one worker is the common case, and needs no rules of its own: an attempt answers for all of its workers.
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Final

from controllers.core.after_attempt import Failure
from controllers.worlds.argo.calls.grants import Grants
from controllers.worlds.argo.reading.demands import Demands
from controllers.worlds.argo.reading.marks import Marks
from controllers.worlds.argo.reading.pod_ends import Leaving
from controllers.worlds.argo.reading.pods import MainState, PodRecord, ResizeState, Resources, Share

_WORST: Final = (ResizeState.INFEASIBLE, ResizeState.DEFERRED, ResizeState.GRANTED)


@dataclass(frozen=True)
class Attempt:
    """One attempt: the pods of its workers by rank, one at least.

    It is on its nodes and runs once all workers are there and have begun, and it is over once all are.
    """

    workers: tuple[PodRecord, ...]

    @property
    def lead(self) -> PodRecord:
        """The first pod, which bears what is written about the attempt."""
        return self.workers[0]

    @property
    def uid(self) -> str:
        """Uid of the first pod."""
        return self.lead.uid

    @property
    def number(self) -> int:
        """Its number among the trial's attempts, from 1."""
        return self.lead.attempt

    @property
    def marks(self) -> Marks:
        """Our annotations."""
        return self.lead.marks

    @property
    def gang(self) -> bool:
        """Whether it may have several workers."""
        return self.lead.gang

    @property
    def token(self) -> str:
        """What tells a gang's attempt from all others: the first gate that opens gives it to all workers."""
        return next((worker.token for worker in self.workers if not worker.gated), self.uid)

    @cached_property
    def size(self) -> int:
        """How many workers it has by now."""
        return max(worker.size for worker in self.workers)

    @cached_property
    def whole(self) -> bool:
        """Whether each of its workers has its pod."""
        return [worker.rank for worker in self.workers] == list(range(self.size))

    @cached_property
    def nodes(self) -> tuple[str, ...]:
        """Node of each worker, empty where a worker has none yet."""
        return tuple(worker.node for worker in self.workers)

    @cached_property
    def node(self) -> str:
        """Node of the first worker once all have theirs."""
        return self.lead.node if self.whole and all(self.nodes) else ""

    @cached_property
    def over(self) -> bool:
        """Whether nothing of it will run again."""
        return self.whole and all(worker.over for worker in self.workers)

    @property
    def succeeded(self) -> bool:
        """Whether it came to a good end."""
        return self.over and all(worker.phase == "Succeeded" for worker in self.workers)

    @property
    def on_nodes(self) -> bool:
        """Whether it takes room on its nodes."""
        return bool(self.node) and not self.over

    @cached_property
    def main(self) -> MainState:
        """How far the main containers have come."""
        states = {worker.main for worker in self.workers}
        if not self.whole or MainState.WAITING in states:
            return MainState.WAITING
        return MainState.OVER if states == {MainState.OVER} else MainState.RUNNING

    @cached_property
    def gated(self) -> bool:
        """Whether all its gates are closed."""
        return all(worker.gated for worker in self.workers)

    @property
    def queued(self) -> bool:
        """Whether Kueue has not admitted all of it yet: until then nobody knows which nodes will have room."""
        return any(worker.queueing is not None and worker.queueing.waits for worker in self.workers)

    @property
    def devices_pending(self) -> bool:
        """Whether Kubernetes has yet to make some of its resource claims: until then none of it can be scheduled."""
        return any(worker.devices_pending for worker in self.workers)

    @property
    def devices_unread(self) -> str:
        """Why it is not known which devices it claims, so that only the scheduler can find its nodes; else empty."""
        return next((worker.devices_unread for worker in self.workers if worker.devices_unread), "")

    @property
    def claims(self) -> bool:
        """Whether its containers name resource claims."""
        return any(worker.resource_claims.fixed for worker in self.workers)

    @property
    def why_no_shares(self) -> str | None:
        """Why its share must never change, None where it may."""
        held = (worker.queueing for worker in self.workers)
        return next((why for queueing in held if queueing is not None and (why := queueing.why_no_shares)), None)

    @property
    def deleted(self) -> bool:
        """Whether somebody has deleted a pod of it."""
        return any(worker.deleted_at is not None for worker in self.workers)

    @property
    def runs(self) -> bool:
        """Whether it runs and nobody makes any of it leave."""
        return self.main is MainState.RUNNING and not (self.deleted or any(pod.disrupted for pod in self.workers))

    @property
    def asked(self) -> bool:
        """Whether it was to leave: by a mark of ours, or since somebody deleted it."""
        return bool(self.marks.move_to or self.marks.rest or self.deleted)

    @property
    def was_asked(self) -> bool:
        """Whether its programs were asked to leave by an annotation, however long ago."""
        return any(worker.marks.leave == worker.attempt_name for worker in self.workers if worker.marks.leave)

    @cached_property
    def created_at(self) -> float:
        """When its last pod was made, in Unix seconds."""
        return max(worker.created_at for worker in self.workers)

    @cached_property
    def ends(self) -> bool:
        """Whether it was made only to end the step of a trial that was stopped."""
        return all(worker.ends for worker in self.workers)

    @property
    def why_no_signal(self) -> str | None:
        """Why no signal is sent to its trainers, None where one may be."""
        return next((worker.why_no_signal for worker in self.workers if worker.why_no_signal), None)

    def why_unasked(self, grants: Grants) -> str | None:
        """Return why its programs cannot be asked to leave in a way that is granted, None where they can."""
        if grants.signals:
            why = self.why_no_signal
            return f"no signal is sent to it: {why}" if why else None
        if all(worker.sees_asks for worker in self.workers):
            return None
        return (
            "this controller may not exec, and the pod has no volume that shows its program the request to leave: "
            "submit the sweep again with a hera-specon that writes it"
        )

    @cached_property
    def share(self) -> Share:
        """CPU of each worker's main container: all train at the pace of the one that has the least."""
        shares = [worker.share for worker in self.workers]
        worst = min(shares, key=lambda share: _WORST.index(share.state))
        return replace(worst, wanted=max(share.wanted for share in shares), has=min(share.has for share in shares))

    @property
    def requests(self) -> Resources:
        """What each worker requests."""
        return self.lead.requests

    @cached_property
    def demands(self) -> Demands:
        """What each worker demands of its node."""
        first = self.lead.demands
        # The template gives all workers the same. Where a node for one is none for another, it is a node for none.
        same = all(worker.demands == first for worker in self.workers)
        return first if same else replace(first, understood=False)

    @property
    def failure(self) -> Failure | None:
        """How it failed, None where it did not."""
        return next((worker.failure for worker in self.workers if worker.failure is not None), None)

    @property
    def leaving(self) -> Leaving | None:
        """How it left so that its trial goes on, None where it did not."""
        return self.lead.leaving

    @property
    def running(self) -> tuple[PodRecord, ...]:
        """The pods whose trainer runs; the first where none is seen to."""
        running = tuple(worker for worker in self.workers if worker.main is MainState.RUNNING and not worker.over)
        return running or self.workers[:1]


def attempts_of(pods: Iterable[PodRecord], known: Iterable[Attempt | None]) -> list[Attempt]:
    """Return the attempts that a trial's pods are of.

    Args:
        pods: The trial's pods that are there now.
        known: Attempts from the look before. One of the very same workers is returned again. Of one whose pods vanish
            while others run, they count as failed: Argo or its collector took them away.
    """
    by_number: dict[int, dict[int, PodRecord]] = {}
    for pod in sorted(pods, key=lambda pod: pod.created_at):
        by_number.setdefault(pod.attempt, {})[pod.rank] = pod
    before = {attempt.number: attempt for attempt in known if attempt is not None}
    return [_attempt(ranks, before.get(number)) for number, ranks in by_number.items()]


def _attempt(ranks: dict[int, PodRecord], before: Attempt | None) -> Attempt:
    here = {pod.uid for pod in ranks.values()}
    if before is not None and any(worker.uid in here for worker in before.workers):
        for worker in before.workers:
            began = worker.node and worker.main is not MainState.WAITING
            if worker.rank not in ranks and began:
                ranks[worker.rank] = worker if worker.over else replace(worker, phase="Failed", main=MainState.OVER)
    workers = tuple(ranks[rank] for rank in sorted(ranks))
    return before if before is not None and before.workers == workers else Attempt(workers)
