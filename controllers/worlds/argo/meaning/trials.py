"""One trial over all its attempts, put together from Argo's record of its step and from its pods. Pure."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Final, assert_never

from controllers.core.actions import Action, Clone, Migrate, Place, Resize, Stop, Suspend
from controllers.core.after_attempt import LEFT
from controllers.core.model import NodeName, Phase, TrialId
from controllers.worlds.argo.meaning.attempts import Attempt, attempts_of
from controllers.worlds.argo.reading.definitions import TrialDefinition
from controllers.worlds.argo.reading.demands import ANY_NODE, Demands
from controllers.worlds.argo.reading.idling import NO_IDLING, Idling
from controllers.worlds.argo.reading.marks import Counts, written_nodes
from controllers.worlds.argo.reading.plans import GangPlan
from controllers.worlds.argo.reading.pods import NO_RESOURCES, MainState, PodRecord, Resources
from controllers.worlds.argo.reading.workflows import NO_NOTES, Step, TrialNotes
from mlflow_hooks.contract import EXIT_MIGRATE

_LEAST_CPU: Final = 0.001


@dataclass(frozen=True, slots=True)
class PodHistory:
    """What is known of a trial's attempts even when their pods are gone: the newest, the one before, and the counts.

    ``first_at`` is when the oldest attempt seen was made, in Unix seconds; ``gone`` tells that the newest is gone.
    ``resizes`` counts the changes of the trial's share that were seen to take effect. ``params`` are the
    hyperparameters that a search gave the trial; ``lineage`` are the trials whose checkpoints it went on
    from. ``pods`` are those that it follows from.
    """

    newest: Attempt | None = None
    previous: Attempt | None = None
    first_at: float = 0.0
    gone: bool = False
    moves: int = 0
    resizes: int = 0
    suspensions: int = 0
    params: str = ""
    lineage: tuple[TrialId, ...] = ()
    pods: tuple[PodRecord, ...] = field(default=(), compare=False)

    @property
    def just_before(self) -> Attempt | None:
        """The attempt that the newest followed, None where it is not known."""
        newest, previous = self.newest, self.previous
        return previous if newest and previous and previous.number == newest.number - 1 else None

    @property
    def idling(self) -> Idling:
        """How often the trial left for nothing, before its newest attempt."""
        if self.newest is not None and self.newest.marks.idling is not None:
            return self.newest.marks.idling
        before = self.just_before
        if before is None:
            return NO_IDLING
        return (before.marks.idling or NO_IDLING).after(before.leaving, asked=before.asked)

    def after(self, pods: Sequence[PodRecord]) -> "PodHistory":
        """Return the history after a look at those of the trial's pods that are there now; itself if nothing changed.

        The newest attempt counts, even where an older one still runs: a node that is silent keeps its containers
        running, and fencing keeps the older attempt from writing.
        """
        if not pods:
            return self if self.gone or self.newest is None else replace(self, gone=True)
        if self.pods == tuple(pods) and not self.gone:
            return self  # as most of thousands do at each look
        # Argo's retry of a whole workflow counts attempts from the first again, so the time of creation comes first.
        attempts = attempts_of(pods, (self.newest, self.previous))
        attempts.sort(key=lambda attempt: (attempt.created_at, attempt.number))
        newest = attempts[-1]
        earlier = next((attempt for attempt in reversed(attempts[:-1]) if attempt.number < newest.number), None)
        if self.newest is newest and not self.gone and (earlier is None or earlier is self.previous):
            return self
        if earlier is None:
            # Seen before, and gone by now: the mark of the move that brought the newest is on it alone.
            seen = (self.newest, self.previous)
            earlier = next(
                (attempt for attempt in seen if attempt is not None and attempt.number == newest.number - 1), None
            )
        return PodHistory(
            newest=newest,
            first_at=self.first_at or attempts[0].created_at,
            previous=earlier,
            moves=max(self.moves, *(_moves_of(attempt) for attempt in attempts)),
            suspensions=max(self.suspensions, *(attempt.marks.suspensions for attempt in attempts)),
            resizes=max(self.resizes, *(attempt.marks.resizes for attempt in attempts)) + self._was_resized(newest),
            params=next((params for attempt in reversed(attempts) if (params := _params_of(attempt))), self.params),
            lineage=max((self.lineage, *map(_lineage_of, attempts)), key=len),
            pods=tuple(pods),
        )

    def _was_resized(self, newest: Attempt) -> bool:
        before = self.newest
        if before is None or before.uid != newest.uid or before.share.has == newest.share.has:
            return False
        # What a container has is only known while it runs: its start changes it, too.
        return before.main is MainState.RUNNING and newest.main is MainState.RUNNING


@dataclass(frozen=True, slots=True)
class TrialState:
    """A trial as it is now.

    ``over_since`` is when its workflow ended, in Unix seconds, None while that runs; ``notes`` are what the workflow
    says of it. ``pending`` is an action that was just taken on, before the API server has shown it.
    """

    definition: TrialDefinition
    step: Step | None
    history: PodHistory
    over_since: float | None
    notes: TrialNotes = NO_NOTES
    pending: Action | None = None

    @property
    def attempt(self) -> Attempt | None:
        """Its newest attempt, None where that is gone."""
        return None if self.history.gone else self.history.newest

    @property
    def stopped(self) -> str:
        """Why it was stopped, empty where it was not."""
        return self.notes.stopped

    @property
    def phase(self) -> Phase:
        """Where it stands."""
        if self._succeeded:
            return Phase.STOPPED if self.stopped else Phase.SUCCEEDED
        if self._failed:
            return Phase.FAILED
        if self.stopped or isinstance(self.pending, Stop):
            return Phase.STOPPING
        if self.suspended:
            return Phase.SUSPENDED
        if self.targets:
            return Phase.MOVING
        attempt = self.attempt
        asked_to_rest = self.history.newest is not None and self.history.newest.marks.rest
        if asked_to_rest or isinstance(self.pending, Suspend):
            return Phase.SUSPENDING
        started = attempt is not None and attempt.on_nodes and attempt.main is not MainState.WAITING
        return Phase.RUNNING if started else Phase.PENDING

    @property
    def waits_to_begin(self) -> bool:
        """Whether its newest attempt waits for the trial's first place, or for what a search gives the trial."""
        attempt = self.attempt
        if attempt is None or not attempt.gated or attempt.marks.place:
            return False
        # A gang that there is a plan for has begun before: Argo was told to run it again.
        return self.definition.asks or (attempt.number == 1 and not self.notes.plan.sizes)

    @property
    def suspended(self) -> bool:
        """Whether its newest attempt waits to go on after a suspension."""
        attempt = self.attempt
        if attempt is None or not attempt.gated or attempt.marks.place:
            return False
        before = self.history.just_before
        return attempt.marks.suspended or bool(before and before.marks.rest)

    @property
    def goes_on(self) -> bool:
        """Whether the attempt before the newest saved what the newest goes on with, as its exit code says."""
        before = self.history.just_before
        return before is not None and before.leaving is not None and before.leaving.how.code == EXIT_MIGRATE

    @property
    def suspensions(self) -> int:
        """How often it has been suspended."""
        newest = self.history.newest
        return self.history.suspensions + bool(self.suspended and newest is not None and not newest.marks.suspended)

    @property
    def fails_alike(self) -> str:
        """How its newest two attempts failed, where both did so at once and alike; else empty."""
        attempt, before = self.attempt, self.history.just_before
        if attempt is None or before is None or attempt.failure is None or before.failure is None:
            return ""
        return attempt.failure.at_once if attempt.failure.at_once == before.failure.at_once else ""

    @property
    def targets(self) -> tuple[NodeName, ...]:
        """The node of each worker of the move that is under way, by rank; empty where there is none."""
        if isinstance(self.pending, Migrate):
            return self.pending.nodes
        attempt = self.history.newest
        if attempt is None:
            return ()
        # First the old attempt is asked to leave; even gone, it says where to until its successor is there.
        if attempt.marks.move_to:
            return node_names(attempt.marks.move_to)
        if self.history.gone or attempt.over or attempt.queued:
            return ()  # one that Kueue has to admit first may wait for hours: nothing is kept for it all the while
        # Then the new one waits at its gates,
        if attempt.gated and (targets := self.targets_of_previous):
            return targets
        # and starts where the opened gates sent it.
        starting = attempt.main is MainState.WAITING and attempt.marks.moved_from and attempt.marks.placed_on
        chosen = (worker.marks.placed_on for worker in attempt.workers)
        return node_names(node for node in chosen if node) if starting else ()

    @property
    def targets_of_previous(self) -> tuple[NodeName, ...]:
        """The node of each worker that the attempt before was asked to leave for."""
        before = self.history.just_before
        return () if before is None else node_names(before.marks.move_to)

    @property
    def workers(self) -> int:
        """How many workers it has; where it waits for a place, how many it had, or would begin with."""
        attempt, previous = self.history.newest, self.history.previous
        if not self.definition.gang:
            return 1
        if attempt is None or (attempt.gated and not attempt.marks.place):
            return self.definition.workers if attempt is None or previous is None else previous.size
        return max(attempt.size, len(attempt.marks.place))

    @property
    def moves(self) -> int:
        """How many moves it has completed: by its pods, or by Argo's record where these are all gone."""
        if self.history.newest is not None:
            return self.history.moves
        attempts = () if self.step is None else self.step.attempts
        pairs = pairwise(attempts)
        return sum(
            attempt.exit_code in LEFT and bool(other.node) and other.node != attempt.node for attempt, other in pairs
        )

    @property
    def counts(self) -> Counts:
        """What its newest pod is to keep."""
        return Counts(self.moves, self.suspensions, self.history.resizes, self.history.idling)

    @property
    def asked(self) -> Resources:
        """What its author asked for each worker."""
        if self.history.newest is not None:
            lead = self.history.newest.lead
            return Resources(lead.base_cpu, lead.memory, lead.requests.devices)
        return NO_RESOURCES if self.step is None else self.step.asked

    @property
    def demands(self) -> Demands:
        """What its author demands of its nodes."""
        return ANY_NODE if self.history.newest is None else self.history.newest.demands

    @property
    def next_requests(self) -> Resources:
        """What each worker of its next attempt will request: what its author asked for, whatever it has now."""
        asked = self.asked
        if self.history.newest is None:
            return asked
        lead = self.history.newest.lead
        sidecars = lead.requests.cpu - max(lead.share.wanted, lead.share.has)
        return Resources(asked.cpu + max(0.0, sidecars), lead.requests.memory, asked.devices)

    @property
    def attempts(self) -> int:
        """How many attempts there have been."""
        recorded = 0 if self.step is None else len(self.step.attempts)
        return max(recorded, 0 if self.attempt is None else self.attempt.number)

    @property
    def submitted_at(self) -> float:
        """When Argo began the step, or made its first pod, in Unix seconds."""
        if self.step is not None and self.step.started_at is not None:
            return self.step.started_at
        return self.history.first_at

    def planned(self, attempt: Attempt, next_size: int | None = None, *, leaves: bool | None = None) -> GangPlan:
        """Return the plan that fits what is seen of a gang.

        Args:
            attempt: Its newest.
            next_size: How many workers the next one gets; by default what the marks say.
            leaves: Whether this one is asked to leave; by default what the marks say.
        """
        marks, least = attempt.marks, self.definition.min_workers
        # The pods that only end the step of a stopped trial need not be many.
        after = 1 if self.stopped else len(marks.move_to) or least
        asked = bool(self.stopped or marks.move_to or marks.rest)
        recorded = () if self.step is None else self.step.attempts
        return self.notes.plan.at(
            attempt.number - 1,
            max(attempt.size, len(marks.place)),
            after if next_size is None else next_size,
            leaves=asked if leaves is None else leaves,
            left=[number for number, record in enumerate(recorded) if record.exit_code in LEFT],
        )

    def shows(self, action: Action) -> bool:
        """Return whether its newest attempt shows that ``action`` was carried out."""
        attempt = self.attempt
        if attempt is None or isinstance(action, Stop):
            return bool(self.stopped)
        match action:
            case Resize(cpu=cpu):
                return abs(attempt.share.wanted - cpu) < _LEAST_CPU
            case Migrate():
                return bool(attempt.marks.move_to)
            case Place():
                return not attempt.gated or bool(attempt.marks.place)
            case Suspend():
                return bool(attempt.marks.rest)
            case Clone(parent=parent):
                return bool(self.history.lineage) and self.history.lineage[-1] == parent
            case _:
                assert_never(action)

    @property
    def _succeeded(self) -> bool:
        newest = self.history.newest
        # The pod shows its end seconds before Argo's record does. Once it is gone, the record knows better, if there is
        # one: Argo may have been told to run the step again.
        if newest is not None and newest.succeeded and (self.step is None or not self.history.gone):
            return True
        return self.step is not None and self.step.succeeded and not self._revived(self.step.finished_at)

    @property
    def _failed(self) -> bool:
        if self.over_since is not None and not self._revived(self.over_since):
            return True
        return self.step is not None and self.step.failed and not self._revived(self.step.finished_at)

    def _revived(self, ended_at: float | None) -> bool:
        """Whether a pod was made after that end: somebody had Argo retry, and its record is not here yet."""
        attempt = self.attempt
        return attempt is not None and not attempt.over and ended_at is not None and attempt.created_at > ended_at


def _params_of(attempt: Attempt) -> str:
    definition = attempt.lead.definition
    return definition.params if definition is not None and definition.search else ""


def _lineage_of(attempt: Attempt) -> tuple[TrialId, ...]:
    definition = attempt.lead.definition
    return definition.lineage if definition is not None and definition.search else ()


def _moves_of(attempt: Attempt) -> int:
    marks = attempt.marks
    arrived = marks.moved_from and attempt.node and attempt.main is not MainState.WAITING
    return marks.moves + bool(arrived and written_nodes(attempt.nodes) != marks.moved_from)


def node_names(nodes: Iterable[str]) -> tuple[NodeName, ...]:
    """Return the names as those of nodes."""
    return tuple(NodeName(node) for node in nodes)


def group_by_trial(pods: Sequence[PodRecord]) -> Mapping[TrialId, list[PodRecord]]:
    """Return the pods that have a trial's definition, by the id of their trial."""
    by_trial: dict[TrialId, list[PodRecord]] = {}
    for pod in pods:
        if pod.definition is not None:
            by_trial.setdefault(pod.definition.id, []).append(pod)
    return by_trial
