"""One trial over all its attempts, put together from Argo's record of its step and from its pods. Pure."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from controllers.core.expressions import LEFT
from controllers.core.model import NodeName, Phase, Trial
from controllers.worlds.argo.facts import TrialFacts
from controllers.worlds.argo.pods import MainState, PodRecord
from controllers.worlds.argo.workflows import Step


@dataclass(frozen=True, slots=True)
class Remembered:
    """What is known of a trial's newest pods even when they are gone, and its tally so far.

    ``first_at`` is when the oldest pod seen was made, in Unix seconds. ``resizes`` counts the changes of its share
    that were seen to take effect.
    """

    pod: PodRecord | None = None
    before: PodRecord | None = None
    first_at: float = 0.0
    gone: bool = False
    moves: int = 0
    resizes: int = 0


@dataclass(frozen=True, slots=True)
class TrialState:
    """A trial as it is now. ``pod`` is the newest, ``before`` that of the attempt before; either may be gone.

    ``over_since`` is when its workflow ended, in Unix seconds, None while that runs. ``wish`` is a node that it was
    just asked to move to, before the API server has shown it.
    """

    facts: TrialFacts
    step: Step | None
    known: Remembered
    over_since: float | None
    wish: NodeName | None = None

    @property
    def pod(self) -> PodRecord | None:
        """Its newest pod, None where that is gone."""
        return None if self.known.gone else self.known.pod

    @property
    def phase(self) -> Phase:
        """Where it stands."""
        if self._succeeded:
            return Phase.SUCCEEDED
        if self._failed:
            return Phase.FAILED
        if self.target is not None:
            return Phase.MOVING
        pod = self.pod
        started = pod is not None and pod.holds and pod.main is not MainState.WAITING
        return Phase.RUNNING if started else Phase.PENDING

    @property
    def target(self) -> NodeName | None:
        """The node of the move that is under way."""
        if self.wish is not None:
            return self.wish
        pod = self.known.pod
        if pod is None:
            return None
        if pod.marks.move_to:
            return NodeName(pod.marks.move_to)
        if self.known.gone or pod.over:
            return None
        if pod.gated and (mark := self.mark_before) is not None:
            return mark
        starting = pod.main is MainState.WAITING and pod.marks.moved_from and pod.marks.placed_on
        return NodeName(pod.marks.placed_on) if starting else None

    @property
    def mark_before(self) -> NodeName | None:
        """The node that the attempt before was asked to leave for."""
        pod, before = self.known.pod, self.known.before
        if pod is None or before is None or before.attempt != pod.attempt - 1 or not before.marks.move_to:
            return None
        return NodeName(before.marks.move_to)

    @property
    def moves(self) -> int:
        """How many moves it has completed."""
        if self.known.pod is not None:
            return self.known.moves
        return 0 if self.step is None else _moves_recorded(self.step)

    @property
    def base_cpu(self) -> float:
        """Cores that its author asked for."""
        if self.known.pod is not None:
            return self.known.pod.base_cpu
        return 0.0 if self.step is None else self.step.cpu

    @property
    def memory(self) -> float:
        """Bytes that its author asked for."""
        if self.known.pod is not None:
            return self.known.pod.memory
        return 0.0 if self.step is None else self.step.memory

    @property
    def attempt(self) -> int:
        """How many attempts there have been."""
        recorded = 0 if self.step is None else len(self.step.attempts)
        return max(recorded, 0 if self.pod is None else self.pod.attempt)

    @property
    def submitted_at(self) -> float:
        """When Argo began the step, or made its first pod, in Unix seconds."""
        if self.step is not None and self.step.started_at is not None:
            return self.step.started_at
        return self.known.first_at

    @property
    def _succeeded(self) -> bool:
        pod = self.known.pod
        if pod is not None and pod.phase == "Succeeded" and (self.step is None or not self.known.gone):
            return True
        return self.step is not None and self.step.succeeded and not self._revived(self.step.finished_at)

    @property
    def _failed(self) -> bool:
        if self.over_since is not None and not self._revived(self.over_since):
            return True
        return self.step is not None and self.step.failed and not self._revived(self.step.finished_at)

    def _revived(self, ended_at: float | None) -> bool:
        """Whether a pod was made after that end: somebody had Argo retry, and its record is not here yet."""
        pod = self.pod
        return pod is not None and not pod.over and ended_at is not None and pod.created_at > ended_at

    def shown(self, origin: float, *, opened: bool) -> Trial:
        """Return the trial for policies; ``origin`` is the sweep's beginning in Unix seconds.

        ``opened`` tells that its gate was just asked to be opened.
        """
        phase, pod = self.phase, self.pod
        submitted_at = max(0.0, self.submitted_at - origin)
        held = pod if pod is not None and pod.holds and phase in {Phase.RUNNING, Phase.MOVING} else None
        return Trial(
            id=self.facts.id,
            phase=phase,
            cpu=self.base_cpu if held is None else held.share.has,
            base_cpu=self.base_cpu,
            memory=self.memory,
            direction=self.facts.direction,
            submitted_at=submitted_at,
            nodes=() if held is None else (NodeName(held.node),),
            attempt=self.attempt,
            moves=self.moves,
            workers=self.facts.workers,
            min_workers=self.facts.workers,
            max_workers=self.facts.workers,
            moving_to=self.target if phase is Phase.MOVING else None,
            gated=phase is Phase.PENDING and pod is not None and pod.gated and pod.attempt == 1 and not opened,
            goals=self.facts.goals.since(submitted_at),
        )


def remember(known: Remembered, pods: Sequence[PodRecord]) -> Remembered:
    """Return what is known of a trial after a look at those of its pods that are there now.

    Its newest pod counts, even where an older one still runs: a node that is not heard of any more keeps its
    containers running, and fencing keeps the older attempt from writing.
    """
    if not pods:
        return known if known.gone or known.pod is None else replace(known, gone=True)
    if len(pods) == 1 and known.pod is pods[0] and not known.gone:
        return known
    in_order = sorted(pods, key=_age)
    newest = in_order[-1]
    earlier = next((pod for pod in reversed(in_order[:-1]) if pod.attempt < newest.attempt), None)
    if known.pod is newest and not known.gone and (earlier is None or earlier is known.before):
        return known
    changed = known.pod is not None and known.pod.uid == newest.uid and known.pod.share.has != newest.share.has
    settled = newest.main is MainState.RUNNING and known.pod is not None and known.pod.main is MainState.RUNNING
    return Remembered(
        pod=newest,
        first_at=known.first_at or in_order[0].created_at,
        before=earlier or _remembered_before(known, newest),
        moves=max(known.moves, *(_moves_of(pod) for pod in pods)),
        resizes=max(known.resizes, *(pod.marks.resizes for pod in pods)) + (changed and settled),
    )


def _age(pod: PodRecord) -> tuple[float, int]:
    """Newer pods are greater. Argo's retry begins to count attempts anew, so the time of creation comes first."""
    return pod.created_at, pod.attempt


def _remembered_before(known: Remembered, newest: PodRecord) -> PodRecord | None:
    """Return the pod of the attempt before ``newest`` where it was seen but is gone by now."""
    seen = (known.pod, known.before)
    return next((pod for pod in seen if pod is not None and pod.attempt == newest.attempt - 1), None)


def _moves_of(pod: PodRecord) -> int:
    arrived = pod.marks.moved_from and pod.node and pod.main is not MainState.WAITING
    return pod.marks.moves + bool(arrived and pod.node != pod.marks.moved_from)


def _moves_recorded(step: Step) -> int:
    """Count the moves in Argo's record, for a trial whose pods are all gone."""
    pairs = zip(step.attempts, step.attempts[1:], strict=False)
    return sum(before.exit_code in LEFT and bool(after.node) and after.node != before.node for before, after in pairs)


def group_by_trial(pods: Sequence[PodRecord]) -> Mapping[str, list[PodRecord]]:
    """Return the pods that keep the contract, by the id of their trial."""
    found: dict[str, list[PodRecord]] = {}
    for pod in pods:
        if pod.facts is not None:
            found.setdefault(pod.facts.id, []).append(pod)
    return found
