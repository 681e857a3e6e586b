"""Live tags on each trial's MLflow run, written by one thread for all sweeps, no faster than MLflow can bear."""

import logging
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from types import TracebackType
from typing import Final, Self

from mlflow.entities import RunTag
from mlflow.exceptions import MlflowException
from mlflow.tracking import MlflowClient

from controllers.core.model import Assessment, Goals, Snapshot, Trial, TrialId
from mlflow_hooks import contract

_LOG = logging.getLogger(__name__)
Compose = Callable[[Trial, Assessment | None, str | None], dict[str, str]]
_REST: Final = 3.0
"""After each write, rest this many times as long as it took: so writing takes a quarter of one connection at most."""
_STOP_S: Final = 15.0


class TagBoard:
    """An observer that keeps the tags of one sweep's trials up to date; of several changes the newest is written.

    Args:
        run_ids: tells the MLflow run of each trial that has one.
        compose: makes a trial's tags of what is known of it: itself, what a policy thinks, why it was acted on.
        changed: called when there may be something to write.
    """

    def __init__(
        self, run_ids: Callable[[], Mapping[TrialId, str]], compose: Compose, changed: Callable[[], None]
    ) -> None:
        self._run_ids = run_ids
        self._compose = compose
        self._changed = changed
        self._wanted: Mapping[TrialId, dict[str, str]] = {}
        self._written: dict[TrialId, dict[str, str]] = {}

    def observe(
        self, snapshot: Snapshot, assessments: Mapping[TrialId, Assessment], reasons: Mapping[TrialId, str]
    ) -> None:
        """Note the newest tags; return at once."""
        self._wanted = {
            trial.id: self._compose(trial, assessments.get(trial.id), reasons.get(trial.id))
            for trial in snapshot.trials
        }
        self._changed()

    def due(self, *, also_minor: bool) -> Iterator[tuple[TrialId, str, dict[str, str]]]:
        """Yield each trial with its run and the tags that changed; ``also_minor``: also where only the growth did."""
        run_ids = self._run_ids()
        for trial, tags in self._wanted.items():
            known = self._written.get(trial, {})
            news = {key: value for key, value in tags.items() if known.get(key) != value}
            if news and trial in run_ids and (also_minor or news.keys() != {contract.TAG_GROWTH}):
                yield trial, run_ids[trial], news

    def wrote(self, trial: TrialId, news: Mapping[str, str]) -> None:
        """Note what a trial's run shows by now."""
        self._written[trial] = {**self._written.get(trial, {}), **news}


class TagWriter:
    """Writes the tags of its boards, one call at a time: first what was decided, then how the trials grow.

    A context manager. A tracking server that is slow never holds up a decision.

    Args:
        client: where the tags are written to.
        round_s: seconds between two looks at what changed; a look at thousands of trials takes a while itself.
        again_s: seconds until MLflow is tried again after it refused a tag.
    """

    def __init__(self, client: MlflowClient, *, round_s: float = 1.0, again_s: float = 5.0) -> None:
        self._client = client
        self._round_s = round_s
        self._again_s = again_s
        self._boards: list[TagBoard] = []
        self._changed = threading.Event()
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="mlflow-tags", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stop.set()
        self._changed.set()
        self._thread.join(timeout=_STOP_S)

    @contextmanager
    def board(self, run_ids: Callable[[], Mapping[TrialId, str]], compose: Compose) -> Iterator[TagBoard]:
        """Write the tags of a sweep while the context lasts."""
        board = TagBoard(run_ids, compose, self._changed.set)
        self._boards.append(board)
        try:
            yield board
        finally:
            self._boards.remove(board)

    def _run(self) -> None:
        while not self._stop.is_set():
            self._changed.wait(timeout=self._again_s)
            self._changed.clear()
            taken = self._write(also_minor=False) and self._write(also_minor=True)
            self._stop.wait(self._round_s if taken else self._again_s)

    def _write(self, *, also_minor: bool) -> bool:
        """Write what is due, minor changes for a round at most; return whether MLflow took all of it."""
        began = time.monotonic()
        for board in list(self._boards):
            for trial, run_id, news in board.due(also_minor=also_minor):
                if self._stop.is_set() or (also_minor and time.monotonic() - began > self._round_s):
                    self._changed.set()
                    return True
                if not self._send(run_id, news):
                    return False
                board.wrote(trial, news)
        return True

    def _send(self, run_id: str, tags: Mapping[str, str]) -> bool:
        began = time.monotonic()
        try:
            self._client.log_batch(run_id, tags=[RunTag(key, value) for key, value in tags.items()])
        except (MlflowException, OSError) as error:
            _LOG.debug("tags not written yet: %s", str(error)[:200])
            return False
        self._stop.wait(_REST * (time.monotonic() - began))
        return True


def trial_tags(trial: Trial, assessment: Assessment | None, reason: str | None) -> dict[str, str]:
    """Return what a trial's MLflow run shows of it: share, node, moves, category, growth, and the newest reason."""
    tags = {contract.TAG_CPU: f"{trial.cpu:.3f}", contract.TAG_MOVES: str(trial.moves)}
    if trial.node is not None:
        tags[contract.TAG_NODE] = trial.node
    if assessment is not None:
        tags |= _judged(assessment)
        if assessment.outlook or trial.goals != Goals():
            tags[contract.TAG_OUTLOOK] = assessment.outlook  # empty once what was foreseen is averted
    if reason is not None:
        tags[contract.TAG_REASON] = reason
    return tags


def _judged(assessment: Assessment) -> dict[str, str]:
    tags: dict[str, str] = {}
    if assessment.category is not None:
        tags[contract.TAG_CATEGORY] = assessment.category.value
    if assessment.growth is not None:
        tags[contract.TAG_GROWTH] = f"{assessment.growth:.4g}"
    return tags
