"""What each command comes to at the API server, call by call."""

import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from typing import assert_never

from controllers.core import labels
from controllers.core.lineage import clone_annotations
from controllers.core.model import Point
from controllers.core.parameters import point_annotations
from controllers.worlds.argo.calls.api import WORKFLOWS, KubeApi
from controllers.worlds.argo.calls.errors import ApiError, NotFoundError
from controllers.worlds.argo.deciding import commands
from controllers.worlds.argo.meaning.attempts import Attempt
from controllers.worlds.argo.meaning.trials import TrialState
from controllers.worlds.argo.reading.marks import NO_MOVE
from controllers.worlds.argo.reading.pods import PodRecord
from controllers.worlds.argo.writing import pod_changes
from controllers.worlds.argo.writing.runs import RunOf


class CommandWriter:
    """Makes the calls that a command comes to, on whatever thread it is told to.

    Args:
        api: of the cluster.
        run_of: may take a few seconds.
        epoch: Unix seconds of a clock that nobody sets: that by which the planner tells how long a pod has had.

    Attributes:
        asked: how the requests to leave fare that were made, by the uid of the attempt.
    """

    def __init__(self, api: KubeApi, run_of: RunOf, epoch: Callable[[], float]) -> None:
        self._api = api
        self._run_of = run_of
        self._epoch = epoch
        self.asked: dict[str, commands.LeaveRequest] = {}

    def write(self, command: commands.Command, state: TrialState) -> None:
        """Make the calls of a ``command`` on a trial.

        Raises:
            ApiError: of the kind that fits; some of the calls may have been made.
        """
        attempt, api = command.attempt, self._api
        match command:
            case commands.Annotate():
                self._annotate(command)
            case commands.Leave():
                self._leave(command)
            case commands.AskToLeave(signals=signals):
                self._ask_to_leave(attempt, signals=signals)
            case commands.Kill():
                self._note_asked(attempt, lambda asked: replace(asked, kills=asked.kills + 1))
                pod_changes.of_each(attempt.running, self._kill)
            case commands.Evict():
                self._evict(command)
            case commands.OpenGates():
                self._open_gates(command, state)
            case commands.SetShare(cpu=cpu):
                pod_changes.resize(api, attempt.workers, cpu, state.history.resizes)
            case commands.WithdrawShare():
                has = attempt.share.has
                pod_changes.of_each(attempt.workers, lambda pod: pod_changes.set_request(api, pod, has))
            case commands.KeepNodes(on_pods=notes):
                pod_changes.of_each(attempt.workers, lambda pod: pod_changes.annotate(api, pod, notes))
            case commands.HandOverRun():
                self._hand_over_run(attempt, state)
            case _:
                assert_never(command)

    def _annotate(self, command: commands.Annotate | commands.Leave) -> None:
        # One that is killed before the pod is marked finds a plan that does not fit, and takes it back.
        pod, marks = command.attempt.lead, {**command.on_pod}
        if command.on_workflow:
            body = {"metadata": {"uid": pod.workflow_uid, "annotations": {**command.on_workflow}}}
            self._api.patch(WORKFLOWS.path(pod.namespace, pod.workflow), body)
        if marks.get(labels.ANNOTATION_MOVE_TO):
            marks[labels.ANNOTATION_MOVE_ASKED_AT] = f"{time.time():.3f}"
        if marks:
            pod_changes.annotate(self._api, pod, marks)

    def _leave(self, command: commands.Leave) -> None:
        # First the marks: a controller that is killed between the two finds them, and asks again.
        self._annotate(command)
        if command.asks:
            # A request that did not get there is a command to be tried again, no failure.
            with suppress(ApiError):
                self._ask_to_leave(command.attempt, signals=command.signals)

    def _ask_to_leave(self, attempt: Attempt, *, signals: bool) -> None:
        self.asked.setdefault(attempt.uid, commands.LeaveRequest())
        now = self._epoch()

        def ask(pod: PodRecord) -> None:
            pod_changes.check_same_pod(self._api, pod)
            # Before, an API server that does not answer would count as a pod that cannot be reached.
            self._note_asked(attempt, lambda asked: asked.tried(now))
            pod_changes.ask_to_leave(self._api, pod, signals=signals)

        if not signals or any(pod.phase == "Failed" for pod in attempt.workers):
            pod_changes.of_each(attempt.running, ask)
        else:
            # The workers of a gang tell each other, and leave after the same step: one that can be reached is enough.
            pod_changes.of_first(attempt.running, ask)
        self._note_asked(attempt, lambda asked: replace(asked, delivered_at=self._epoch()))

    def _note_asked(self, attempt: Attempt, change: Callable[[commands.LeaveRequest], commands.LeaveRequest]) -> None:
        """Note what was asked of an attempt, unless it is gone and was forgotten while that went on."""
        known = self.asked.get(attempt.uid)
        if known is not None:
            self.asked[attempt.uid] = change(known)

    def _kill(self, pod: PodRecord) -> None:
        pod_changes.check_same_pod(self._api, pod)
        pod_changes.kill(self._api, pod)

    def _evict(self, command: commands.Evict) -> None:
        for attempt in command.unmarked:
            with suppress(NotFoundError):
                pod_changes.annotate(self._api, attempt.lead, {**NO_MOVE, labels.ANNOTATION_PLACE: None})
        pod_changes.of_each(command.pods, lambda pod: pod_changes.evict(self._api, pod, waits=command.waits))

    def _open_gates(self, command: commands.OpenGates, state: TrialState) -> None:
        """Open all gates that are still there: where some of them are open, a controller was killed in between."""
        attempt = command.attempt
        each: dict[str, str | None] = {**point_annotations(command.point)} if command.point else {}
        if state.definition.lineage:
            each |= clone_annotations(state.definition.lineage, ())
        if attempt.gang:
            each |= {labels.ANNOTATION_WORLD_SIZE: str(attempt.size), labels.ANNOTATION_ATTEMPT: attempt.token}
        for pod, node in zip(attempt.workers, command.nodes, strict=True):
            if pod.gated:
                marks = each if pod.rank else each | self._marks_of_the_first(command, state)
                pod_changes.open_gate(self._api, pod, node, marks)

    def _marks_of_the_first(self, command: commands.OpenGates, state: TrialState) -> dict[str, str | None]:
        left = {labels.ANNOTATION_MOVED_FROM: command.moved_from} if command.moved_from else {}
        return state.counts.annotations() | left | self._run_mark(command.attempt, state, command.point)

    def _hand_over_run(self, attempt: Attempt, state: TrialState) -> None:
        if mark := self._run_mark(attempt, state, ()):
            pod_changes.annotate(self._api, attempt.lead, mark)

    def _run_mark(self, attempt: Attempt, state: TrialState, point: Point) -> dict[str, str | None]:
        """Return the annotation that names the run to log to, where the program is told it and there is one."""
        pod = attempt.lead
        if pod.definition is None or not pod.is_told_a_run(goes_on=state.goes_on):
            return {}
        given = dict(point) or pod.definition.hyperparameters()
        run = self._run_of(pod.definition.id, given, may_make=not pod.makes_runs)
        return {labels.ANNOTATION_RUN: run} if run else {}
