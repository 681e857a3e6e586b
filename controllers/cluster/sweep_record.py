"""The record of a campaign in MLflow: its parent runs, timeline and forecasts in pieces, and in the end its result."""

import json
import logging
import os.path
import re
import threading
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Final, Literal, Protocol
from weakref import WeakSet

from mlflow.exceptions import MlflowException
from mlflow.tracking import MlflowClient

from controllers.cluster.logs import fields
from controllers.core.errors import SpeconError
from controllers.core.model import TrialId
from controllers.core.results import RunResult
from controllers.record.forecasts import ToldForecast
from controllers.record.timeline import TimelineEvent
from controllers.tracking.access import MlflowAwayError, shown
from controllers.tracking.front_tags import tag_front
from controllers.tracking.mlflow_source import Scope
from controllers.tracking.script_runs import Whereabouts
from controllers.tracking.sweep_runs import (
    ElsewhereError,
    ForeignSweepError,
    Steering,
    SweepRun,
    check_home,
    close_sweep,
    open_sweep,
    sweep_is_closed,
)
from controllers.tracking.trial_runs import end_runs_left_open, settle_trials

_LOG = logging.getLogger(__name__)
_FLUSH_S = 10.0
_LOOK_S = 0.05
_MOST_WAITING = 200_000
"""Lines of each kind that wait for MLflow, of all records together: these take a hundred megabytes."""
_SAFE_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,252}")
TIMELINE: Final = "timeline"
FORECASTS: Final = "forecasts"
_NO_EXPERIMENT = "Default"
"""Where trials log that name no experiment: the hooks' own default."""


class NoResultError(SpeconError):
    """A campaign ended, and there is nothing that it came to."""


@dataclass(frozen=True, slots=True)
class CampaignEnding:
    """How a campaign ended.

    ``result`` raises ``MlflowAwayError`` where it is to be asked again, and ``NoResultError`` where there is none; it
    is None where nobody knows what the campaign came to. ``objectives`` has the name of the objective of each trial.
    """

    status: Literal["FINISHED", "FAILED", "KILLED"]
    result: Callable[[], RunResult] | None = None
    objectives: Mapping[TrialId, str] = field(default_factory=dict)


class RecordLine(Protocol):
    """Something that is recorded as one line."""

    def to_json(self) -> str:
        """Return it as JSON."""
        ...


@dataclass(frozen=True, slots=True)
class _Piece:
    """A part of the timeline, or of the forecasts, that is being sent."""

    name: str
    text: str


_unwritten: "WeakSet[SweepRecord]" = WeakSet()


class SweepRecord:
    """Writes the record on a thread of its own; while MLflow is away, what is to be written waits.

    A controller that is killed loses the events of the last seconds; the next one sees the state they led to.

    Args:
        client: a client of the tracking server.
        steering: what steers the campaign; part of the parent runs' identity.
        over: whether the workflow was over when this controller first saw it: its record may be complete already.
        continues: what the ids of its sweeps begin with, where only MLflow knows in which namespace they are at home;
            else empty.
    """

    def __init__(self, client: MlflowClient, steering: Steering, *, over: bool, continues: str = "") -> None:
        self._client = client
        self._steering = steering
        self._over = over
        self._continues = continues
        self._wanted: Mapping[str, str] = {}
        self._opened: dict[str, SweepRun] = {}
        self.where = Whereabouts(client, self._home)
        """The experiments that the trials log to."""
        self._waiting: dict[str, deque[RecordLine]] = {name: deque() for name in (TIMELINE, FORECASTS)}
        self._piece: _Piece | None = None
        self._pieces = 0
        self._began_ms = time.time_ns() // 1_000_000
        self._ending: CampaignEnding | None = None
        self._stop = False
        self._away = False
        self._wake = threading.Event()
        self._thread = threading.Thread(target=self._run, name="sweep-record", daemon=True)
        self.looked_up = not over
        """Whether it is known if the record is complete already: a question only where the workflow was over before."""
        self.closed = False
        """Whether nothing is left to write."""
        self.at_home = not continues
        """Whether the sweeps are known to be those of the workflow's namespace: until then, they are left alone."""
        self.foreign = False
        """Whether they are known to be another's."""

    def start(self, sweeps: Mapping[str, str]) -> None:
        """Begin with ``sweeps``, which gives the MLflow experiment of each sweep id."""
        self.keep(sweeps)
        self._thread.start()

    def keep(self, sweeps: Mapping[str, str]) -> None:
        """Note the sweeps that the campaign has by now."""
        # The ids stand in MLflow's query language, where a quote could end them and begin something else.
        safe = {sweep: name or _NO_EXPERIMENT for sweep, name in sweeps.items() if _SAFE_ID.fullmatch(sweep)}
        if safe != self._wanted:
            self._wanted = safe
            self._wake.set()

    def append(self, events: Sequence[TimelineEvent]) -> None:
        """Add to the timeline; return at once."""
        self._keep_waiting(self._waiting[TIMELINE], events)

    def append_forecasts(self, forecasts: Sequence[ToldForecast]) -> None:
        """Add to the forecasts; return at once."""
        self._keep_waiting(self._waiting[FORECASTS], forecasts)

    def _keep_waiting(self, waiting: deque[RecordLine], news: Sequence[RecordLine]) -> None:
        """Add ``news``; of more than this record's part of the room, the oldest are dropped."""
        _unwritten.add(self)
        waiting.extend(news)
        with suppress(IndexError):  # the thread that sends them takes some away, too
            while len(waiting) > _MOST_WAITING // len(_unwritten):
                waiting.popleft()

    def _home(self) -> Scope:
        """Return the experiments of the sweeps that are open, and how their ids begin."""
        runs = dict(self._opened)
        experiments = sorted({run.experiment_id for run in runs.values()})
        return Scope(experiments, os.path.commonprefix(sorted(runs)))  # noqa: RUF071 - ids, not paths

    def run_ids(self) -> Mapping[str, str]:
        """Return the parent run of each sweep that is open."""
        return {sweep: run.run_id for sweep, run in list(self._opened.items())}

    def parent_of(self, trial: str) -> str | None:
        """Return the parent run of a trial's sweep, None where there is none yet."""
        run = self._opened.get(trial.rpartition(".")[0])
        return None if run is None else run.run_id

    def wait_for(self, sweep: str, within_s: float) -> SweepRun | None:
        """Return the parent run of a sweep that may be about to be opened; None where that does not come about."""
        give_up = time.monotonic() + within_s
        while sweep not in self._opened and sweep in self._wanted and not self._away and time.monotonic() < give_up:
            time.sleep(_LOOK_S)
        return self._opened.get(sweep)

    def end(self, ending: CampaignEnding) -> None:
        """Write the rest, the result, and end the parent runs; ``closed`` tells when that is done."""
        if self._ending is None:
            self._ending = ending
            self._wake.set()

    def stop(self, within_s: float) -> None:
        """Write what is waiting and end the thread; the parent runs stay as they are."""
        self._stop = True
        self._wake.set()
        self._thread.join(within_s)
        _unwritten.discard(self)

    def _run(self) -> None:
        while not self.closed:
            last = self._stop
            self._try_to_work()
            if last:
                return
            self._wake.wait(_FLUSH_S)
            self._wake.clear()

    def _try_to_work(self) -> None:
        try:
            self._work()
        except (MlflowException, OSError, MlflowAwayError) as error:
            if not self._away:
                about = fields(sweep=self._steering.title)
                _LOG.warning("a record waits for MLflow: %s", shown(str(error))[:200], extra=about)
            self._away = True
        except ElsewhereError as error:
            _LOG.warning("a workflow is left alone: %s", error, extra=fields(sweep=self._steering.title))
            self.foreign = True
        except ForeignSweepError as error:
            if not self._away:
                _LOG.warning("no record is kept: %s", error, extra=fields(sweep=self._steering.title))
            self._away = True
            # It never will be: once its workflow is over, nothing is left to wait for.
            self.closed = self._ending is not None
        except Exception:  # noqa: BLE001 - a record that dies silently would keep its campaign open for good
            _LOG.exception("could not write a record", extra=fields(sweep=self._steering.title))
        else:
            self._away = False

    def _work(self) -> None:
        if self.foreign:
            return
        if not self.at_home:
            self._find_home()
        if not self.looked_up:
            wanted = self._wanted.items()
            self.closed = all(sweep_is_closed(self._client, sweep, name, self._steering) for sweep, name in wanted)
            self.looked_up = True
            if self.closed:
                return
        # In every round, since a workflow may begin further sweeps while it runs.
        for sweep, experiment in self._wanted.items():
            if sweep not in self._opened:
                self._opened[sweep] = open_sweep(self._client, sweep, experiment, self._steering)
        self._upload()
        if self._ending is not None:
            result = self._conclude(self._ending)
            for sweep, run in self._opened.items():
                if result is not None:
                    self._settle(sweep, run, result, self._ending.objectives)
                    tag_front(self._client, run, self.where.experiments(), result)
                close_sweep(self._client, run, result, status=self._ending.status)
            self.closed = True

    def _settle(self, sweep: str, run: SweepRun, result: RunResult, objectives: Mapping[TrialId, str]) -> None:
        """Leave each trial of a sweep with one run, which has ended."""
        uid = sweep.rpartition(".")[0]
        ended = {f"{uid}.{trial.id}": trial.succeeded for trial in result.trials}
        params = {f"{uid}.{trial.id}": trial.params for trial in result.trials if trial.attempts}
        trials = {trial: params[trial] for trial in params if trial.rpartition(".")[0] == sweep}
        settle_trials(self._client, run, self.where.experiments(), trials, ended, objectives)
        end_runs_left_open(self._client, run, ended)

    def _find_home(self) -> None:
        """Look up whether the sweeps are those of this namespace.

        Raises:
            ElsewhereError: They are not.
        """
        # The name stands in MLflow's query language.
        if not _SAFE_ID.fullmatch(self._continues):
            message = f"{self._continues!r} names no sweep to continue: give it letters, digits, '.', '_' and '-'"
            raise ElsewhereError(message)
        check_home(self._client, self._continues, self._steering)
        self.at_home = True

    def _upload(self) -> None:
        """Send what waits piece by piece. A piece that did not reach every run is sent again under the same name."""
        while self._opened and (self._piece or any(self._waiting.values())):
            if self._piece is None:
                folder, waiting = next((folder, lines) for folder, lines in self._waiting.items() if lines)
                lines: list[str] = []
                with suppress(IndexError):  # what has waited for too long is dropped meanwhile
                    lines.extend(waiting.popleft().to_json() for _ in range(len(waiting)))
                self._pieces += 1
                name = f"{folder}/{self._began_ms}-{self._pieces:06d}.jsonl"
                self._piece = _Piece(name, "".join(f"{line}\n" for line in lines))
            for run in self._opened.values():
                self._client.log_text(run.run_id, self._piece.text, self._piece.name)
            self._piece = None

    def _conclude(self, ending: CampaignEnding) -> RunResult | None:
        """Write the result and return it, None where there is none."""
        if ending.result is None:
            return None
        try:
            result = ending.result()
        except NoResultError as error:
            _LOG.warning("a sweep has no result: %s", error, extra=fields(sweep=self._steering.title))
            return None
        for run in self._opened.values():
            self._client.log_text(run.run_id, json.dumps(result.to_dict(), indent=1), "result.json")
        return result
