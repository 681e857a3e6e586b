"""Carries commands out on other threads, so that no decision waits for an API server, and tells people of them."""

import logging
import time
from collections.abc import Callable
from typing import Final, Literal

from controllers.worlds.argo.calls.api import KubeApi
from controllers.worlds.argo.calls.errors import ApiError, BudgetError, NotAllowedNowError, TooManyRequestsError
from controllers.worlds.argo.calls.write_queue import WriteQueue
from controllers.worlds.argo.deciding.commands import (
    Annotate,
    AskToLeave,
    Command,
    Evict,
    Kill,
    Leave,
    LeaveRequest,
    SetShare,
    Told,
)
from controllers.worlds.argo.meaning.attempts import Attempt
from controllers.worlds.argo.meaning.trials import TrialState
from controllers.worlds.argo.reading.resize_answers import answer_to
from controllers.worlds.argo.writing.events import EventSink
from controllers.worlds.argo.writing.runs import RunOf
from controllers.worlds.argo.writing.writer import CommandWriter

_LOG = logging.getLogger(__name__)
_SHOWS_WITHIN_S: Final = 5.0
_AGAIN_AFTER_S: Final = 1.0
_AFTER_BUDGET_S: Final = 10.0
"""What a PodDisruptionBudget forbids depends on other pods, which take their time."""


class Executor:
    """Carries commands out, and remembers of each attempt what was done to it and may not show yet.

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
        self._writer = CommandWriter(api, run_of, epoch)
        self._writes = writes
        self._events = events
        self._done: dict[str, tuple[Attempt, float]] = {}
        self._noted: dict[str, tuple[Annotate, float]] = {}

    def asked(self, attempt: Attempt | None) -> LeaveRequest | None:
        """Return how the request to leave made of ``attempt`` fares, None where this process made none."""
        return None if attempt is None else self._writer.asked.get(attempt.uid)

    def forget_all_but(self, uids: frozenset[str]) -> None:
        """Drop what is remembered of attempts that are gone."""
        for memory in (self._writer.asked, self._done, self._noted):
            for uid in memory.keys() - uids:
                del memory[uid]

    def carry_out(self, command: Command, state: TrialState, done: Callable[[ApiError | None], None]) -> bool:
        """Begin ``command`` on a trial, unless one was carried out that may not show yet; return whether it was begun.

        Args:
            command: what to do to the trial's newest attempt.
            state: the trial as it was when that was decided.
            done: called on another thread, with what went wrong if something did.
        """
        attempt = command.attempt
        if self._writes.busy(attempt.uid) or self._may_not_show_yet(command):
            return False

        def finished(failure: ApiError | None) -> None:
            self._remember(command, failure)
            self._tell(attempt, command.told if failure is None else _told_of(failure, command))
            done(failure)

        if isinstance(command, Leave):
            self._tell(attempt, command.begins)
        return self._writes.submit(
            attempt.uid,
            lambda: self._writer.write(command, state),
            finished,
            namespace=attempt.lead.namespace,
            kind=_kind(command),
        )

    def _may_not_show_yet(self, command: Command) -> bool:
        now, uid = time.monotonic(), command.attempt.uid
        match command:
            case SetShare() | Leave():
                return False  # what a policy wants of an attempt that runs follows from no look at its pods
            case Annotate() if not command.on_pod:
                noted, until = self._noted.get(uid, (None, 0.0))
                return noted is not None and noted.on_workflow == command.on_workflow and now < until
            case _:
                attempt, until = self._done.get(uid, (None, 0.0))
                return attempt is command.attempt and now < until

    def _remember(self, command: Command, failure: ApiError | None) -> None:
        # Other commands change the pod, so its next record brings news of them; a signal changes nothing yet.
        signals = isinstance(command, AskToLeave | Kill)  # nor does an annotation that was there already
        again_s = _AFTER_BUDGET_S if isinstance(failure, BudgetError) else _AGAIN_AFTER_S
        until = time.monotonic() + (again_s if failure or signals else _SHOWS_WITHIN_S)
        match command:
            case SetShare() | Leave():
                pass
            case Annotate() if not command.on_pod:
                # Its news comes with the workflow, and the pod waits for no news of it.
                self._noted[command.attempt.uid] = command, until
            case _:
                self._done[command.attempt.uid] = command.attempt, until

    def _tell(self, attempt: Attempt, told: Told | None) -> None:
        if told is not None:
            self._events.tell(attempt.lead, told.reason, told.note, warning=told.warning)


def _told_of(failure: ApiError, command: Command) -> Told | None:
    """Log that a command failed; return what is told of it: the planner chooses its own again, and nobody need know."""
    told: Told | None = None
    match command:
        case Leave():
            told = Told("MoveFailed", f"it could not be marked: {failure}", warning=True)
        case Evict() if isinstance(failure, BudgetError):
            told = Told("NotRemoved", f"a PodDisruptionBudget keeps it: {failure}", warning=True)
        case SetShare(cpu=cpu):
            answer = answer_to(failure)
            why = str(failure) if answer is None else answer.line
            told = Told("ResizeFailed", f"{cpu:g} cores were refused: {why}", warning=True)
        case _:
            pass
    level = logging.INFO if told is None else logging.WARNING
    if isinstance(failure, NotAllowedNowError):
        # The controller that leads now decides for itself; thousands may have been waiting.
        told, level = None, logging.DEBUG
    elif told is None and isinstance(failure, TooManyRequestsError):
        level = logging.DEBUG
    _LOG.log(level, "%s of pod %s failed: %s", type(command).__name__, command.attempt.lead.name, failure)
    return told


def _kind(command: Command) -> Literal["writes", "shares", "signals"]:
    match command:
        case SetShare():
            return "shares"
        case Kill() | AskToLeave(signals=True) | Leave(signals=True, asks=True):
            return "signals"
        case _:
            return "writes"
