"""Carries out commands and actions on other threads, so that no decision waits for an API server, and tells of them."""

import logging
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, Protocol, assert_never

from controllers.core import labels
from controllers.core.parameters import point_annotations
from controllers.worlds.argo import pod_changes
from controllers.worlds.argo.api import (
    WORKFLOWS,
    ApiError,
    KubeApi,
    NotAllowedNowError,
    NotFoundError,
    TooManyRequestsError,
)
from controllers.worlds.argo.commands import (
    AbandonMove,
    AskToLeave,
    ChoosePlace,
    Command,
    HandOverRun,
    Hold,
    Kill,
    LeaveRequest,
    LimitTries,
    OpenGate,
    OpenGates,
    Recreate,
    Remove,
    Replan,
    SaveCounts,
    WithdrawResize,
)
from controllers.worlds.argo.events import EventSink
from controllers.worlds.argo.gangs import GangPlan, written_nodes
from controllers.worlds.argo.idling import NO_IDLING, Idling
from controllers.worlds.argo.pods import PodRecord
from controllers.worlds.argo.write_queue import WriteQueue

_LOG = logging.getLogger(__name__)
_SHOWS_WITHIN_S = 5.0
_AGAIN_AFTER_S = 1.0
_MOST_NOTE: Final = 900
"""Letters of an Event's note; Kubernetes takes 1024."""
Annotations = Mapping[str, str | None]


class RunOf(Protocol):
    """Tells the run in MLflow that an attempt shall log to."""

    def __call__(self, trial: str, params: Mapping[str, Any], *, may_make: bool) -> str:
        """Return its id; empty where there is none, or MLflow is away.

        Args:
            trial: id of the trial.
            params: its hyperparameters.
            may_make: whether to make one; else it is one that the trial's script has made before.
        """
        ...


@dataclass(frozen=True, slots=True)
class Counts:
    """How often a trial was moved, suspended and resized so far, and how often it left for nothing.

    ``goes_on`` tells that the attempt before its newest left so that this one goes on with its run.
    """

    moves: int
    suspensions: int
    resizes: int
    idling: Idling = NO_IDLING
    goes_on: bool = False

    def annotations(self) -> dict[str, str | None]:
        """Return the annotations that keep them."""
        return {
            labels.ANNOTATION_MOVES: str(self.moves),
            labels.ANNOTATION_SUSPENSIONS: str(self.suspensions),
            labels.ANNOTATION_RESIZES: str(self.resizes),
            **({labels.ANNOTATION_IDLING: str(self.idling)} if self.idling != NO_IDLING else {}),
        }


class Executor:
    """Carries out commands and actions, and remembers of each pod what was sent to it.

    Args:
        api: of the cluster.
        writes: makes its calls.
        events: told of what was done.
        run_of: called on a thread of ``writes``, which may wait for it a few seconds.
        epoch: Unix seconds of a clock that nobody sets: that by which the planner tells how long a pod has had.
    """

    def __init__(
        self, api: KubeApi, writes: WriteQueue, events: EventSink, run_of: RunOf, epoch: Callable[[], float]
    ) -> None:
        self._epoch = epoch
        self._run_of = run_of
        self._api = api
        self._writes = writes
        self._events = events
        self._asked: dict[str, LeaveRequest] = {}
        self._done: dict[str, tuple[PodRecord, float]] = {}
        self._planned: dict[str, tuple[GangPlan, float]] = {}

    def asked(self, pod: PodRecord | None) -> LeaveRequest | None:
        """Return how the request to leave made of ``pod`` fares, None where this process made none."""
        return None if pod is None else self._asked.get(pod.uid)

    def forget_all_but(self, uids: frozenset[str]) -> None:
        """Drop what is remembered of pods that are gone."""
        for memory in (self._asked, self._done, self._planned):
            for uid in memory.keys() - uids:
                del memory[uid]

    def move(self, pod: PodRecord, nodes: Sequence[str], plan: Annotations, given_up: Callable[[], None]) -> bool:
        """Mark ``pod`` for a move, then ask it to leave.

        Args:
            pod: the newest.
            nodes: where it goes; of a gang, a node for each worker.
            plan: annotations of the workflow, none but for a gang. A controller that is killed before the pod is marked
                finds a plan that does not fit, and takes it back.
            given_up: called if the pod stays unmarked.
        """
        to = written_nodes(nodes)
        marks = {labels.ANNOTATION_MOVE_TO: to, labels.ANNOTATION_MOVE_ASKED_AT: f"{time.time():.3f}"}
        self._events.tell(pod, "Moving", f"asked to save and leave {written_nodes(pod.nodes)} for {to}"[:_MOST_NOTE])
        return self._mark_and_ask(pod, lambda: self._annotate_both(pod, plan, marks), given_up)

    def suspend(self, pod: PodRecord, plan: Annotations, given_up: Callable[[], None]) -> bool:
        """Mark ``pod`` so that the next one waits, then ask it to leave; ``plan`` and ``given_up`` as for a move."""
        marks = {labels.ANNOTATION_REST: "suspend"}
        told = f"asked to save and leave {written_nodes(pod.nodes)}, and to wait"
        self._events.tell(pod, "Suspending", told[:_MOST_NOTE])
        return self._mark_and_ask(pod, lambda: self._annotate_both(pod, plan, marks), given_up)

    def _annotate_both(self, pod: PodRecord, plan: Annotations, marks: Annotations) -> None:
        if plan:
            self._annotate_workflow(pod, plan)
        pod_changes.annotate(self._api, pod, {**marks})

    def _annotate_workflow(self, pod: PodRecord, annotations: Annotations) -> None:
        body = {"metadata": {"uid": pod.workflow_uid, "annotations": {**annotations}}}
        self._api.patch(WORKFLOWS.path(pod.namespace, pod.workflow), body)

    def stop(self, pod: PodRecord, notes: Annotations, why: str, given_up: Callable[[], None]) -> bool:
        """Mark the workflow so that the next pod of a trial only ends, then let the newest one go.

        Args:
            pod: the newest.
            notes: annotations of the workflow: the mark, and of a gang its plan.
            why: a few words.
            given_up: called if the mark could not be made.
        """
        self._events.tell(pod, "Stopping", f"the trial ends early: {why}")
        ask = not any(one.gated for one in pod.pods)
        return self._mark_and_ask(pod, lambda: self._annotate_workflow(pod, notes), given_up, ask=ask)

    def _mark_and_ask(
        self, pod: PodRecord, mark: Callable[[], object], given_up: Callable[[], None], *, ask: bool = True
    ) -> bool:
        marked = False

        def call() -> None:
            nonlocal marked
            # First the mark: a controller that is killed between the two finds it, and asks again.
            mark()
            marked = True
            if ask:
                self._ask_to_leave(pod)

        def done(failure: ApiError | None) -> None:
            # Once it is marked, a request that did not get there is a command to be tried again, no failure.
            if failure is not None and not marked:
                given_up()
                self._tell_failure(pod, "MoveFailed", "it could not be marked", failure)

        return self._writes.submit(pod.uid, call, done, namespace=pod.namespace, kind="signals" if ask else "writes")

    def resize(self, pod: PodRecord, cpu: float, resizes: int, given_up: Callable[[], None]) -> bool:
        """Ask for ``cpu`` cores, after ``resizes`` before; ``given_up`` is called if that is refused."""

        def done(failure: ApiError | None) -> None:
            if failure is not None:
                given_up()
                self._tell_failure(pod, "ResizeFailed", f"{cpu:g} cores were refused", failure)

        def call() -> None:
            pod_changes.resize_all(self._api, pod.pods, cpu, resizes)

        return self._writes.submit(pod.uid, call, done, namespace=pod.namespace, kind="shares")

    def carry_out(self, command: Command, counts: Counts, done: Callable[[ApiError | None], None]) -> bool:
        """Begin ``command`` unless one for the same record of the pod was begun; return whether it was begun."""
        if self._writes.busy(command.pod.uid) or self._begun(command):
            return False

        def finished(failure: ApiError | None) -> None:
            # Other commands change the pod, so its next record brings news of them; a signal changes nothing yet.
            again = _AGAIN_AFTER_S if failure or isinstance(command, AskToLeave | Kill) else _SHOWS_WITHIN_S
            if isinstance(command, Replan):
                self._planned[command.pod.uid] = (command.plan, time.monotonic() + again)
            else:
                self._done[command.pod.uid] = (command.pod, time.monotonic() + again)
            self._tell(command, failure)
            done(failure)

        return self._writes.submit(
            command.pod.uid,
            lambda: self._do(command, counts),
            finished,
            namespace=command.pod.namespace,
            kind="signals" if isinstance(command, AskToLeave | Kill) else "writes",
        )

    def _begun(self, command: Command) -> bool:
        """Whether ``command`` was carried out a moment ago, and may not show yet."""
        if isinstance(command, Replan):
            # Its news comes with the workflow, and the pod waits for no news of it.
            planned = self._planned.get(command.pod.uid)
            return planned is not None and planned[0] == command.plan and time.monotonic() < planned[1]
        last = self._done.get(command.pod.uid)
        return last is not None and last[0] is command.pod and time.monotonic() < last[1]

    def _do(self, command: Command, counts: Counts) -> None:
        pod = command.pod
        match command:
            case AskToLeave():
                self._ask_to_leave(pod)
            case Kill():
                self._note_asked(pod, lambda asked: replace(asked, kills=asked.kills + 1))
                pod_changes.of_each(pod_changes.running(pod), self._kill)
            case OpenGates() | ChoosePlace() | Replan():
                self._do_for_gang(command, counts)
            case OpenGate(node=node, moved_from=left, point=point):
                marks = counts.annotations() | ({labels.ANNOTATION_MOVED_FROM: left} if left else {})
                given: dict[str, str | None] = {**point_annotations(point)} if point else {}
                pod_changes.open_gate(self._api, pod, node, marks | given | self._run_mark(pod, counts, dict(point)))
            case Hold() | SaveCounts():
                # A saved move is counted from now on: the mark of the move that brought the pod here would count again.
                name, value = (
                    (labels.ANNOTATION_SUSPENDED, "true")
                    if isinstance(command, Hold)
                    else (labels.ANNOTATION_MOVED_FROM, None)
                )
                pod_changes.annotate(self._api, pod, {**counts.annotations(), name: value})
            case AbandonMove():
                self._unmark(pod)
            case Recreate() | Remove():
                self._remove(command)
            case WithdrawResize():
                pod_changes.of_each(pod.pods, lambda one: pod_changes.set_request(self._api, one, pod.share.has))
            case HandOverRun():
                self._hand_over(pod, counts)
            case LimitTries(mark=name, tries=tries):
                self._annotate_workflow(pod, {name: None if tries is None else str(tries)})
            case _:
                assert_never(command)

    def _hand_over(self, pod: PodRecord, counts: Counts) -> None:
        if mark := self._run_mark(pod, counts, {}):
            pod_changes.annotate(self._api, pod, mark)

    def _run_mark(self, pod: PodRecord, counts: Counts, params: Mapping[str, Any]) -> dict[str, str | None]:
        """Return the annotation that names the run to log to, where the pod's program is told it and there is one."""
        if pod.definition is None or not pod.is_told_a_run(goes_on=counts.goes_on):
            return {}
        given = params or pod.definition.hyperparameters()
        run = self._run_of(pod.definition.id, given, may_make=not pod.makes_runs)
        return {labels.ANNOTATION_RUN: run} if run else {}

    def _do_for_gang(self, command: OpenGates | ChoosePlace | Replan, counts: Counts) -> None:
        pod = command.pod
        match command:
            case OpenGates():
                self._open_gates(command, counts)
            case ChoosePlace(nodes=nodes, point=point):
                found: dict[str, str | None] = {**point_annotations(point)} if point else {}
                # With the counts: once it has a place, nothing tells any more that a suspension brought it here.
                chosen = {labels.ANNOTATION_PLACE: written_nodes(nodes), **counts.annotations()}
                pod_changes.annotate(self._api, pod, found | chosen)
            case Replan(plan=plan):
                if pod.definition is not None:
                    self._annotate_workflow(pod, plan.annotations(pod.definition))
            case _:
                assert_never(command)

    def _remove(self, command: Recreate | Remove) -> None:
        # First the marks: with them, the pod that Argo makes anew would be bound to the same node again.
        if isinstance(command, Recreate):
            self._unmark(command.pod, labels.ANNOTATION_PLACE)
            if command.previous is not None:
                self._unmark(command.previous)
        meant = [one for one in command.pod.pods if not command.ranks or one.rank in command.ranks]
        pod_changes.of_each(meant, lambda one: pod_changes.remove(self._api, one))

    def _ask_to_leave(self, pod: PodRecord) -> None:
        self._asked.setdefault(pod.uid, LeaveRequest())
        running, now = pod_changes.running(pod), self._epoch()

        def ask(one: PodRecord) -> None:
            pod_changes.check_same_pod(self._api, one)
            # Before, an API server that does not answer would count as a pod that cannot be reached.
            self._note_asked(pod, lambda asked: asked.tried(now))
            pod_changes.ask_to_leave(self._api, one)

        if any(one.phase == "Failed" for one in pod.pods):
            pod_changes.of_each(running, ask)
        else:
            # The workers of a gang tell each other, and leave after the same step: one that can be reached is enough.
            pod_changes.of_first(running, ask)
        self._note_asked(pod, lambda asked: replace(asked, delivered_at=self._epoch()))

    def _note_asked(self, pod: PodRecord, change: Callable[[LeaveRequest], LeaveRequest]) -> None:
        """Note what was asked of a pod, unless it is gone and was forgotten while that went on."""
        known = self._asked.get(pod.uid)
        if known is not None:
            self._asked[pod.uid] = change(known)

    def _kill(self, pod: PodRecord) -> None:
        pod_changes.check_same_pod(self._api, pod)
        pod_changes.kill(self._api, pod)

    def _open_gates(self, command: OpenGates, counts: Counts) -> None:
        """Open all gates of a gang that are still there; whoever finds some of them opened goes on with the rest."""
        pod = command.pod
        same: dict[str, str | None] = {
            labels.ANNOTATION_WORLD_SIZE: str(pod.size),
            labels.ANNOTATION_ATTEMPT: command.token,
            **(point_annotations(command.point) if command.point else {}),
        }
        of_the_first = counts.annotations() | (
            {labels.ANNOTATION_MOVED_FROM: command.moved_from} if command.moved_from else {}
        )
        for worker, node in zip(pod.workers, command.nodes, strict=True):
            if worker.gated:
                marks = (
                    same if worker.rank else same | of_the_first | self._run_mark(worker, counts, dict(command.point))
                )
                pod_changes.open_gate(self._api, worker, node, marks)

    def _unmark(self, pod: PodRecord, *more: str) -> None:
        names = (labels.ANNOTATION_MOVE_TO, labels.ANNOTATION_MOVE_ASKED_AT, labels.ANNOTATION_REST, *more)
        marks: dict[str, str | None] = dict.fromkeys(names)
        try:
            pod_changes.annotate(self._api, pod, marks)
        except NotFoundError:
            return

    def _tell(self, command: Command, failure: ApiError | None) -> None:
        if failure is not None:
            level = logging.DEBUG if isinstance(failure, NotAllowedNowError | TooManyRequestsError) else logging.INFO
            name = type(command).__name__
            _LOG.log(level, "%s of pod %s failed and will be tried again: %s", name, command.pod.name, failure)
            return
        told = _event_on(command)
        if told is not None:
            reason, note, warning = told
            self._events.tell(command.pod, reason, note, warning=warning)

    def _tell_failure(self, pod: PodRecord, reason: str, note: str, failure: ApiError) -> None:
        if isinstance(failure, NotAllowedNowError):
            return  # whoever leads now decides anew; thousands may have been waiting
        _LOG.warning("pod %s: %s: %s", pod.name, note, failure)
        self._events.tell(pod, reason, f"{note}: {failure}", warning=True)


def _event_on(command: Command) -> tuple[str, str, bool] | None:
    """Return reason and note of the Event on a command, and whether it is a warning; None where none is due."""
    match command:
        case OpenGates(pod=pod, reason=reason):
            return "Placed", f"gates of {len(pod.workers)} workers opened: {reason}"[:_MOST_NOTE], False
        case OpenGate(node=node, reason=reason):
            return "Placed", f"gate opened{f' for {node.name}' if node else ''}: {reason}", False
        case Kill(pod=pod):
            return "MoveForced", f"it did not leave in its {pod.grace_s} s of grace and is killed", True
        case AbandonMove(reason=reason) | Recreate(reason=reason):
            return "MoveFailed", reason, True
        case Remove(reason=reason):
            return "Removed", reason, True
        case WithdrawResize(pod=pod):
            share = pod.share
            return "ResizeWithdrawn", f"{pod.node} cannot give {share.wanted:g} cores; it keeps {share.has:g}", True
        case Hold():
            return "Suspended", "its checkpoint is kept, and it waits for a place to go on", False
        case LimitTries(reason=reason):
            return ("GivenUp", f"{reason}, and is not tried again"[:_MOST_NOTE], True) if reason else None
        case AskToLeave() | SaveCounts() | HandOverRun() | ChoosePlace() | Replan():
            return None
        case _:
            assert_never(command)
