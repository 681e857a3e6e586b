"""What must hold after every step, whatever the order of the threads and wherever the controller was killed.

They are the invariants of the simulator's search as far as a controller on a cluster can break them, and those of its
writes: what is marked before it is done, and what is never done at all.
"""

import json
import logging
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from controllers.core import labels
from controllers.core.actions import Action, Place, Suspend
from controllers.core.model import Trial, TrialId
from controllers.core.ports import Outcome, World
from controllers.driving.wrapped_world import WrappedWorld
from controllers.worlds.argo.calls.untrusted import at, mappings
from controllers.worlds.argo.writing.state_store import _unpacked
from tests.controllers.worlds.argo.fake_api import Change, Json, Store
from tests.fault_search.broken import InvariantError
from tests.interleavings.perils import ON_PURPOSE

ATTEMPTS_LEAVE_BEFORE_DELETION = "no running trial is deleted"
MARKED_BEFORE_ASKED = "nobody is asked to leave without a mark"
NO_ERROR_IS_UNFORESEEN = "no error is unforeseen"
ONE_CHANGE_AT_A_TIME = "a pod takes one change at a time"
SAVED_BEFORE_DONE = "nothing is done before it is saved"


class Unforeseen(logging.Handler):
    """Takes each error that production code only logs, since it must go on, for a broken invariant.

    Args:
        broken: notes an invariant that does not hold.
    """

    def __init__(self, broken: Callable[[str, str], None]) -> None:
        super().__init__(logging.ERROR)
        self._broken = broken

    def emit(self, record: logging.LogRecord) -> None:
        """Note an error that was logged with its traceback, unless it was made on purpose."""
        error = record.exc_info[1] if record.exc_info else None
        if error is not None and ON_PURPOSE not in str(error):
            self._broken(NO_ERROR_IS_UNFORESEEN, f"{record.getMessage()}: {error!r}")


def told(action: Action) -> str:
    """Return an action as the policy's state names it."""
    return f"{type(action).__name__} of {action.trial}"


class Checks:
    """Notes each invariant that is broken; to raise would only end a thread that tries again.

    Attributes:
        found: what was broken.
    """

    def __init__(self, store: Store) -> None:
        self._store = store
        self._under_way: set[str] = set()
        self._placed: set[TrialId] = set()
        self._moves: dict[TrialId, int] = {}
        self._ended: set[TrialId] = set()
        self.found: list[InvariantError] = []

    def broken(self, invariant: str, detail: str) -> None:
        """Note that an invariant does not hold."""
        self.found.append(InvariantError(invariant, detail))

    @contextmanager
    def changing(self, pod: str, what: str) -> Iterator[None]:
        """Check that nothing else changes the pod with this uid while the context lasts; empty stands for no pod."""
        if pod and pod in self._under_way:
            self.broken(ONE_CHANGE_AT_A_TIME, f"{what} while another is under way")
        self._under_way.add(pod)
        try:
            yield
        finally:
            self._under_way.discard(pod)

    def wrote(self, change: Change) -> None:
        """Check what the controller just changed."""
        if change.collection != "pods" or change.before is None:
            return
        if change.after is None:
            self._check_deletion(change.before)
        else:
            self._check_ask(change.before, change.after)
            self._check_gate(change.before, change.after)

    def acts(self, action: Action) -> None:
        """Check that the journal in the cluster has what is about to be done."""
        if told(action) not in self._saved():
            self.broken(SAVED_BEFORE_DONE, f"{action}; saved are {self._saved()}")

    def took_on(self, action: Action) -> None:
        """Note what the world has taken on."""
        if isinstance(action, Place):
            self._placed.add(action.trial)
        if isinstance(action, Suspend):
            self._placed.discard(action.trial)

    def crashed(self) -> None:
        """Note that what was taken on and not done yet is forgotten."""
        self._placed.clear()

    def looked(self, trials: Sequence[Trial], moves_made: Callable[[str], int]) -> None:
        """Check what a controller sees against what any before it saw, and against what was done."""
        for trial in trials:
            if trial.moves > moves_made(trial.id):
                self.broken("no move is counted twice", f"{trial.id}: {trial.moves} of {moves_made(trial.id)}")
            if trial.moves < self._moves.get(trial.id, 0):
                self.broken("counts never fall", f"{trial.id}: {trial.moves} moves after {self._moves[trial.id]}")
            self._moves[trial.id] = trial.moves
            if trial.id in self._ended and not trial.phase.ended:
                self.broken("what has ended stays so", f"{trial.id} is {trial.phase}")
            if trial.phase.ended:
                self._ended.add(trial.id)

    def _saved(self) -> Sequence[str]:
        """Return the actions that the policy's saved state names."""
        for found in self._store.objects["configmaps"].values():
            memory = _unpacked(at(found, "binaryData", "state"), "state")
            decisions = json.loads(json.loads(memory or "{}").get("decisions") or "{}")
            return list(at(decisions, "policy", "wanted") or ())
        return ()

    def _check_deletion(self, pod: Json) -> None:
        running = any(at(status, "state", "running") is not None for status in _statuses(pod))
        if running:
            self.broken(ATTEMPTS_LEAVE_BEFORE_DELETION, str(pod["metadata"]["name"]))

    def _check_ask(self, before: Json, after: Json) -> None:
        asked = labels.ANNOTATION_LEAVE in _notes(after) and labels.ANNOTATION_LEAVE not in _notes(before)
        marks = {labels.ANNOTATION_MOVE_TO, labels.ANNOTATION_REST} & _notes(after).keys()
        if asked and not marks and not self._is_stopped(after):
            self.broken(MARKED_BEFORE_ASKED, str(after["metadata"]["name"]))

    def _is_stopped(self, pod: Json) -> bool:
        mark = labels.ANNOTATION_STOP + _trial_of(pod).partition(".")[2].replace(".", "-")
        workflows = self._store.objects["workflows"].values()
        return any(mark in _notes(workflow) for workflow in workflows)

    def _check_gate(self, before: Json, after: Json) -> None:
        opened = at(before, "spec", "schedulingGates") and not at(after, "spec", "schedulingGates")
        trial = _trial_of(after)
        if opened and self._rested_before(after) and trial not in self._placed and not self._is_stopped(after):
            self.broken("what rests waits for its place", f"the gate of {after['metadata']['name']} was opened")

    def _rested_before(self, pod: Json) -> bool:
        """Return whether the pod of the attempt before was asked to leave so that its trial rests."""
        stem, _, number = str(pod["metadata"]["name"]).rpartition("-")
        before = self._store.objects["pods"].get(f"{pod['metadata']['namespace']}/{stem}-{int(number) - 1}")
        return before is not None and bool(_notes(before).get(labels.ANNOTATION_REST))


class CheckedWorld(WrappedWorld):
    """A world that checks each look and each action."""

    def __init__(self, world: World, checks: Checks, moves_made: Callable[[str], int]) -> None:
        super().__init__(world)
        self._checks = checks
        self._moves_made = moves_made

    def trials(self) -> Sequence[Trial]:
        """Return every trial."""
        found = self._world.trials()
        self._checks.looked(found, self._moves_made)
        return found

    def apply(self, action: Action) -> Outcome:
        """Carry out ``action``."""
        self._checks.acts(action)
        outcome = self._world.apply(action)
        if outcome.done:
            self._checks.took_on(action)
        return outcome


def _statuses(pod: Json) -> Iterator[Any]:
    return iter(mappings(pod, "status", "containerStatuses"))


def _notes(pod: Json) -> dict[str, str]:
    return dict(pod["metadata"].get("annotations") or {})


def _trial_of(pod: Json) -> TrialId:
    main = next(one for one in pod["spec"]["containers"] if one["name"] == "main")
    return TrialId(main["env"][0]["value"])
