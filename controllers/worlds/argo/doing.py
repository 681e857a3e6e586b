"""Carrying deeds out: on other threads, once for each look at a pod, and told to people as Events."""

import logging
import time
from collections.abc import Callable
from dataclasses import dataclass, replace

from controllers.core import labels
from controllers.worlds.argo import patches, signals
from controllers.worlds.argo.api import ApiError, KubeApi, NotAllowedNowError, NotFoundError
from controllers.worlds.argo.deeds import Abandon, Ask, Deed, Force, Note, Open, Recreate, Remove, Withdraw
from controllers.worlds.argo.events import EventSink
from controllers.worlds.argo.moves import Asked
from controllers.worlds.argo.pods import PodRecord
from controllers.worlds.argo.writes import Writes

_LOG = logging.getLogger(__name__)
_SHOWS_WITHIN_S = 5.0
_AGAIN_AFTER_S = 1.0


@dataclass(frozen=True, slots=True)
class Tally:
    """How often a trial was moved and resized so far."""

    moves: int
    resizes: int

    def notes(self) -> dict[str, str | None]:
        """Return the annotations that keep it."""
        return {labels.ANNOTATION_MOVES: str(self.moves), labels.ANNOTATION_RESIZES: str(self.resizes)}


class Doer:
    """Carries out deeds, and remembers of each pod what was sent to it."""

    def __init__(self, api: KubeApi, writes: Writes, events: EventSink) -> None:
        self._api = api
        self._writes = writes
        self._events = events
        self._asked: dict[str, Asked] = {}
        self._done: dict[str, tuple[PodRecord, float]] = {}

    def asked(self, pod: PodRecord | None) -> Asked | None:
        """Return how the request to leave made of ``pod`` fares, None where none was made by this process."""
        return None if pod is None else self._asked.get(pod.uid)

    def forget_all_but(self, uids: frozenset[str]) -> None:
        """Drop what is remembered of pods that are gone."""
        for memory in (self._asked, self._done):
            for uid in memory.keys() - uids:
                del memory[uid]

    def mark_and_ask(self, pod: PodRecord, node: str, given_up: Callable[[], None]) -> bool:
        """Mark ``pod`` for a move to ``node``, then ask it to leave; ``given_up`` is called if it stays unmarked."""

        def call() -> None:
            asked_at = f"{time.time():.3f}"
            notes = {labels.ANNOTATION_MOVE_TO: node, labels.ANNOTATION_MOVE_ASKED_AT: asked_at}
            patches.annotate(self._api, pod, {**notes})
            self._ask(pod)

        def done(failure: ApiError | None) -> None:
            if failure is not None and pod.uid not in self._asked:
                given_up()
                self._tell_failure(pod, "MoveFailed", "the pod could not be marked", failure)

        self._events.tell(pod, "Moving", f"asked to save and leave {pod.node} for {node}")
        return self._writes.submit(pod.uid, call, done)

    def resize(self, pod: PodRecord, cpu: float, call: Callable[[], None], given_up: Callable[[], None]) -> bool:
        """Have ``call`` ask for ``cpu`` cores; ``given_up`` is called if that is refused."""

        def done(failure: ApiError | None) -> None:
            if failure is not None:
                given_up()
                self._tell_failure(pod, "ResizeFailed", f"{cpu:g} cores were refused", failure)

        return self._writes.submit(pod.uid, call, done, share=True)

    def carry_out(self, deed: Deed, tally: Tally, done: Callable[[ApiError | None], None]) -> bool:
        """Begin ``deed`` unless one for the same sight of the pod was begun; return whether it was begun."""
        seen = self._done.get(deed.pod.uid)
        if self._writes.busy(deed.pod.uid) or (seen and seen[0] is deed.pod and time.monotonic() < seen[1]):
            return False

        def finished(failure: ApiError | None) -> None:
            again = _AGAIN_AFTER_S if failure or isinstance(deed, Ask | Force) else _SHOWS_WITHIN_S
            self._done[deed.pod.uid] = (deed.pod, time.monotonic() + again)
            self._tell(deed, failure)
            done(failure)

        return self._writes.submit(deed.pod.uid, lambda: self._do(deed, tally), finished)

    def _do(self, deed: Deed, tally: Tally) -> None:
        pod = deed.pod
        match deed:
            case Ask():
                self._ask(pod)
            case Force():
                self._force(pod)
            case Open(node=node, moved_from=left):
                notes = tally.notes() | ({labels.ANNOTATION_MOVED_FROM: left} if left else {})
                patches.open_gate(self._api, pod, node, notes)
            case Abandon():
                self._unmark(pod)
            case Recreate(before=before):
                if before is not None:
                    self._unmark(before)
                patches.remove(self._api, pod)
            case Remove():
                patches.remove(self._api, pod)
            case Withdraw():
                patches.resize(self._api, pod, pod.share.has)
            case Note():
                patches.annotate(self._api, pod, tally.notes())

    def _ask(self, pod: PodRecord) -> None:
        before = self._asked.setdefault(pod.uid, Asked(tried_at=time.time()))
        patches.same_pod(self._api, pod)
        signals.ask_to_leave(self._api, pod)
        self._asked[pod.uid] = replace(before, at=time.time())

    def _force(self, pod: PodRecord) -> None:
        self._asked[pod.uid] = replace(self._asked[pod.uid], forced=self._asked[pod.uid].forced + 1)
        patches.same_pod(self._api, pod)
        signals.end_by_force(self._api, pod)

    def _unmark(self, pod: PodRecord) -> None:
        try:
            patches.annotate(self._api, pod, {labels.ANNOTATION_MOVE_TO: None, labels.ANNOTATION_MOVE_ASKED_AT: None})
        except NotFoundError:
            return

    def _tell(self, deed: Deed, failure: ApiError | None) -> None:
        if failure is not None:
            level = logging.DEBUG if isinstance(failure, NotAllowedNowError) else logging.INFO
            _LOG.log(level, "%s of pod %s will be tried again: %s", type(deed).__name__, deed.pod.name, failure)
            return
        reason, note, warning = _words(deed)
        if reason:
            self._events.tell(deed.pod, reason, note, warning=warning)

    def _tell_failure(self, pod: PodRecord, reason: str, note: str, failure: ApiError) -> None:
        if isinstance(failure, NotAllowedNowError):
            return  # whoever leads now decides anew; thousands may have been waiting
        _LOG.warning("pod %s: %s: %s", pod.name, note, failure)
        self._events.tell(pod, reason, f"{note}: {failure}", warning=True)


def _words(deed: Deed) -> tuple[str, str, bool]:
    """Return reason and note of the Event on a deed, and whether it is a warning; no reason where none is due."""
    match deed:
        case Open(node=node, reason=reason):
            return "Placed", f"gate opened{f' for {node.name}' if node else ''}: {reason}", False
        case Force():
            return "MoveForced", f"it did not leave in its {deed.pod.grace_s} s of grace and is killed", True
        case Abandon(reason=reason) | Recreate(reason=reason):
            return "MoveFailed", reason, True
        case Remove(reason=reason):
            return "Removed", reason, True
        case Withdraw(pod=pod):
            share = pod.share
            return "ResizeWithdrawn", f"{pod.node} can't give {share.wanted:g} cores; it keeps {share.has:g}", True
        case _:
            return "", "", False
