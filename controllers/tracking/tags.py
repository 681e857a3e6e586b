"""Live tags on each trial's MLflow run, written by one thread for all sweeps, no faster than MLflow can bear."""

import logging
import math
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final, Self

from mlflow.entities import RunTag
from mlflow.exceptions import MlflowException
from mlflow.tracking import MlflowClient

from controllers.core.actions import Assessment
from controllers.core.errors import SpeconError
from controllers.core.forecast import EndRange, Forecast
from controllers.core.model import Goals, Phase, Snapshot, Trial, TrialId
from controllers.tracking.access import shown
from mlflow_hooks import contract

_LOG = logging.getLogger(__name__)
Compose = Callable[[Trial, Assessment | None, str | None], dict[str, str]]
REST: Final = 3.0
"""After each write, the writer rests so many times as long as it took: a quarter of one connection at most."""
_STOP_S: Final = 15.0
_LOOK_S: Final = 0.1
_SERVER_ERROR: Final = 500
_ASIDE: Final = 3.0
"""A run that failed waits so many times as long as until the next round: another run has its turn before."""
_OWNER_S: Final = 2.0
"""Seconds that the tags of one owner's sweeps may take until the others' get their turn."""
_MOST_AGAIN_S: Final = 600.0
"""Seconds for which a run that takes no tags is left alone at most."""
_MOST_REFUSED: Final = 10_000
"""Such runs that are remembered at most."""
_STOPPED: Final = "stopped"
_OUTCOMES: Final = {Phase.SUSPENDING: "suspended", Phase.SUSPENDED: "suspended", Phase.STOPPED: _STOPPED}


class _RefusedError(SpeconError):
    """MLflow answers, and takes nothing for this run."""


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
        self._written: dict[str, dict[str, str]] = {}
        self._settled: dict[str, dict[str, str]] = {}
        self._runs: dict[str, str] = {}

    def observe(
        self, snapshot: Snapshot, assessments: Mapping[TrialId, Assessment], reasons: Mapping[TrialId, str]
    ) -> None:
        """Note the newest tags; return at once."""
        before, wanted = self._wanted, dict[TrialId, dict[str, str]]()
        for trial in snapshot.trials:
            tags = self._compose(trial, assessments.get(trial.id), reasons.get(trial.id))
            known = before.get(trial.id)
            # The same object where nothing changed, so that a look at what is due passes over it.
            wanted[trial.id] = known if known is not None and known == tags else tags
        self._wanted = wanted
        self._changed()

    def due(self, *, also_minor: bool) -> Iterator[tuple[str, str, dict[str, str]]]:
        """Yield each trial with its run and the tags that changed; ``also_minor``: also where only the growth did.

        Those that were written longest ago come first, so that each gets its turn however much changes.
        """
        run_ids, wanted = self._run_ids(), self._wanted
        order = [*(trial for trial in wanted if trial not in self._written), *list(self._written)]
        for trial in (TrialId(name) for name in order if name in wanted):
            tags = wanted[trial]
            if trial not in run_ids:
                continue
            if self._runs.setdefault(trial, run_ids[trial]) != run_ids[trial]:
                # It began again, or another run of its script counts now: that shows nothing yet.
                self._runs[trial] = run_ids[trial]
                self.writes(trial, tags)
            if self._settled.get(trial) is tags:
                continue
            known = self._written.get(trial, {})
            news = {key: value for key, value in tags.items() if known.get(key) != value}
            if not news:
                self._settled[trial] = tags
            elif also_minor or news.keys() != {contract.TAG_GROWTH}:
                yield trial, run_ids[trial], news

    def wrote(self, name: str, news: Mapping[str, str]) -> None:
        """Note what a trial's run shows by now."""
        self._written[name] = {**self._written.pop(name, {}), **news}

    def writes(self, name: str, news: Mapping[str, str]) -> None:
        """Note that it is not known what a trial's run shows: what is wanted next may be what it showed before."""
        known = self._written.get(name, {})
        self._written[name] = {key: value for key, value in known.items() if key not in news}
        self._settled.pop(name, None)

    def settle(self, within_s: float) -> bool:
        """Wait until the runs show all that was decided; return whether they do after ``within_s`` seconds."""
        give_up = time.monotonic() + within_s
        while (waiting := any(self.due(also_minor=False))) and time.monotonic() < give_up:
            self._changed()
            time.sleep(_LOOK_S)
        return not waiting


class ForecastBoard:
    """Keeps the forecast ends of trials and sweeps on their runs; written only if they say something else than before.

    Args:
        trials: tells the MLflow run of each trial that has one.
        sweeps: tells that of each sweep.
        to_epoch: turns seconds of the sweep's clock into Unix seconds.
    """

    def __init__(
        self,
        trials: Callable[[], Mapping[TrialId, str]],
        sweeps: Callable[[], Mapping[str, str]],
        to_epoch: Callable[[float], float],
    ) -> None:
        self._trials = trials
        self._sweeps = sweeps
        self._to_epoch = to_epoch
        self._newest = Forecast(0.0)
        self._offered: dict[str, EndRange] = {}
        self._written: dict[str, EndRange] = {}

    def tell(self, forecast: Forecast) -> None:
        """Note the newest forecast; return at once. Nobody waits for its tags: they come with the next others."""
        self._newest = forecast

    def due(self, *, also_minor: bool) -> Iterator[tuple[str, str, dict[str, str]]]:
        """Yield each trial or sweep whose forecast has changed; all of these can wait."""
        if not also_minor:
            return
        newest, trials, sweeps = self._newest, self._trials(), self._sweeps()
        ends = [(name, sweeps.get(name), end) for name, end in newest.sweeps.items()]
        ends += [(trial, trials.get(trial), end) for trial, end in newest.trials.items()]
        for name, run_id, end in ends:
            if run_id is not None and end.is_news_after(self._written.get(name)):
                self._offered[name] = end
                yield name, run_id, end_tags(end, self._to_epoch)

    def wrote(self, name: str, news: Mapping[str, str]) -> None:
        """Note that a run shows what was yielded of it."""
        del news
        self._written[name] = self._offered[name]

    def writes(self, name: str, news: Mapping[str, str]) -> None:
        """Note that it is not known what a run shows."""
        del news
        self._written.pop(name, None)


Board = TagBoard | ForecastBoard
"""Tags of some runs that are to be kept up to date."""


@dataclass(slots=True, eq=False)
class _Turn:
    """A board, whose it is, and when it last had its turn."""

    board: Board
    owner: str
    at: float = -math.inf


class TagWriter:
    """Writes the tags of its boards, one call at a time: first what was decided, then how the trials grow.

    A context manager. A tracking server that is slow never holds up a decision, and the sweeps of one owner, or one run
    that takes no tags, hold up no others.

    Args:
        client: where the tags are written to.
        round_s: seconds between two looks at what changed; a look at thousands of trials takes a while itself.
        again_s: seconds until MLflow is tried again after it refused a tag.
        rest: times as long as each write took that the writer rests after it.
    """

    def __init__(self, client: MlflowClient, *, round_s: float = 1.0, again_s: float = 5.0, rest: float = REST) -> None:
        self._client = client
        self._rest = rest
        self._round_s = round_s
        self._refused: dict[str, tuple[float, int]] = {}
        self._again_s = again_s
        self._turns: list[_Turn] = []
        self._changed = threading.Event()
        self._stop = threading.Event()
        self._hurried = threading.Event()
        self._thread = threading.Thread(target=self._run, name="mlflow-tags", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def hurry(self) -> None:
        """Rest no more from now on, as nothing trains any longer that this could take CPU from."""
        self._hurried.set()

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._hurried.set()
        self._changed.set()
        self._thread.join(timeout=_STOP_S)

    @contextmanager
    def board(
        self, run_ids: Callable[[], Mapping[TrialId, str]], compose: Compose, owner: str = ""
    ) -> Iterator[TagBoard]:
        """Write the tags of a sweep of ``owner`` while the context lasts."""
        board = TagBoard(run_ids, compose, self._changed.set)
        with self._writing(board, owner):
            yield board

    @contextmanager
    def forecasts(
        self,
        trials: Callable[[], Mapping[TrialId, str]],
        sweeps: Callable[[], Mapping[str, str]],
        to_epoch: Callable[[float], float],
        owner: str = "",
    ) -> Iterator[ForecastBoard]:
        """Write the forecasts of trials and sweeps of ``owner`` while the context lasts."""
        board = ForecastBoard(trials, sweeps, to_epoch)
        with self._writing(board, owner):
            yield board

    @contextmanager
    def _writing(self, board: Board, owner: str) -> Iterator[None]:
        turn = _Turn(board, owner)
        self._turns.append(turn)
        try:
            yield
        finally:
            self._turns.remove(turn)

    def _run(self) -> None:
        while not self._stop.is_set():
            self._changed.wait(timeout=self._again_s)
            self._changed.clear()
            taken = self._write(also_minor=False) and self._write(also_minor=True)
            if taken:
                self._hurried.wait(self._round_s)
            else:
                self._stop.wait(self._again_s)

    def _write(self, *, also_minor: bool) -> bool:
        """Write what is due, minor changes for a round at most; return whether MLflow answered."""
        round_ends = time.monotonic() + self._round_s
        left: dict[str, float] = {}
        # Whose turn is longest ago goes first, and of each owner's time no other's is taken.
        for turn in sorted(self._turns, key=lambda turn: turn.at):
            if left.setdefault(turn.owner, _OWNER_S) <= 0:
                self._changed.set()
                continue
            began = turn.at = time.monotonic()
            ends = began + left[turn.owner]
            for name, run_id, news in turn.board.due(also_minor=also_minor):
                now = time.monotonic()
                if self._stop.is_set() or (also_minor and now > round_ends):
                    self._changed.set()
                    return True
                if now > ends:
                    self._changed.set()
                    break
                if now >= self._refused.get(run_id, (0.0, 0))[0] and not self._wrote(turn.board, name, run_id, news):
                    return False
            left[turn.owner] -= time.monotonic() - began
        return True

    def _wrote(self, board: Board, name: str, run_id: str, news: Mapping[str, str]) -> bool:
        """Write the tags of one run, and set it aside where that fails; return whether MLflow answered."""
        # Where this fails, only the answer may be lost.
        board.writes(name, news)
        try:
            self._send(run_id, news)
        except _RefusedError:
            self._set_aside(run_id, self._refused.get(run_id, (0.0, 0))[1])
        except (MlflowException, OSError) as error:
            _LOG.debug("tags not written yet: %s", shown(str(error))[:200])
            # Mostly MLflow is away; but where this run alone makes it fail, the next time another one is tried.
            self._set_aside(run_id, 0)
            return False
        else:
            self._refused.pop(run_id, None)
            board.wrote(name, news)
        return True

    def _set_aside(self, run_id: str, failures: int) -> None:
        """Leave a run alone for a while that MLflow takes nothing for: it was deleted, or is somebody else's."""
        wait = min(_MOST_AGAIN_S, _ASIDE * self._again_s * 2.0 ** min(failures, 16))
        self._refused.pop(run_id, None)
        if len(self._refused) >= _MOST_REFUSED:
            self._refused.pop(next(iter(self._refused)))
        self._refused[run_id] = time.monotonic() + wait, failures + 1

    def _send(self, run_id: str, tags: Mapping[str, str]) -> None:
        """Write tags, and rest.

        Raises:
            _RefusedError: MLflow answers, but not well of this run.
            MlflowException: MLflow is away.
            OSError: likewise.
        """
        began = time.monotonic()
        try:
            self._client.log_batch(run_id, tags=[RunTag(key, value) for key, value in tags.items()])
            if tags.get(contract.TAG_OUTCOME) == _STOPPED:
                # Its program left as for a move, and expects another attempt to end the run.
                self._client.set_terminated(run_id, "FINISHED")
        except MlflowException as error:
            if error.get_http_status_code() < _SERVER_ERROR:  # type: ignore[no-untyped-call]
                raise _RefusedError(str(error)[:200]) from error
            raise
        self._hurried.wait(self._rest * (time.monotonic() - began))


def trial_tags(trial: Trial, assessment: Assessment | None, reason: str | None) -> dict[str, str]:
    """Return what a trial's MLflow run shows of it: share, node, moves, category, growth, and the newest reason."""
    tags = {contract.TAG_CPU: f"{trial.cpu:.3f}", contract.TAG_MOVES: str(trial.moves)}
    if trial.node is not None:
        tags[contract.TAG_NODE] = ", ".join(trial.nodes)
    if trial.gang:
        tags[contract.TAG_WORKERS] = str(trial.workers)
    if assessment is not None:
        tags |= _judged(assessment)
        if assessment.outlook or trial.goals != Goals():
            tags[contract.TAG_OUTLOOK] = assessment.outlook  # empty once what was foreseen is averted
    if reason is not None:
        tags[contract.TAG_REASON] = reason
    if trial.suspensions:
        tags[contract.TAG_SUSPENSIONS] = str(trial.suspensions)
    diverged = trial.diverged and trial.phase is Phase.SUCCEEDED
    if diverged or trial.suspensions or trial.phase in _OUTCOMES:
        tags[contract.TAG_OUTCOME] = "diverged" if diverged else _OUTCOMES.get(trial.phase, "")
    return tags


def end_tags(end: EndRange, to_epoch: Callable[[float], float]) -> dict[str, str]:
    """Return what a run shows of a forecast: instants, which stay right while time passes."""
    told = {contract.TAG_END: end.likely, contract.TAG_END_EARLIEST: end.low, contract.TAG_END_LATEST: end.high}
    return {tag: f"{datetime.fromtimestamp(to_epoch(at), UTC):%Y-%m-%dT%H:%M:%SZ}" for tag, at in told.items()}


def _judged(assessment: Assessment) -> dict[str, str]:
    tags: dict[str, str] = {}
    if assessment.category is not None:
        tags[contract.TAG_CATEGORY] = assessment.category.value
    if assessment.growth is not None:
        tags[contract.TAG_GROWTH] = f"{assessment.growth:.4g}"
    return tags
