"""Searches in another process, so that no tick waits for a sampler: an answer is there at a later tick.

A search answers from what it was told when a trial first asked, and in the order of the questions: however late it
answers, the points are those that it would have given at once.
"""

import logging
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Final, Protocol, Self

from controllers.core.errors import SearchError, SearchPending
from controllers.core.model import Point, Snapshot, Trial, TrialId
from controllers.search.cost import IN_A_CLUSTER, Bound, check_cost
from controllers.search.earlier import Lesson
from controllers.search.optuna_search import earlier_lessons
from controllers.search.process import SearchProcess
from controllers.search.told import Ledger, TrialNews, drawn_before
from controllers.search.worker import LESSONS, TOLD

_LOG = logging.getLogger(__name__)
ANSWER_S: Final = 10.0
"""Seconds that a search has for a point. What it may compute takes half a second of CPU."""
MOST_AT_A_TIME: Final = 100
"""Trials that a study learns of in one message: thousands take seconds, in which other owners get their turns."""
_FIRST_REST_S: Final = 5.0
_LONGEST_REST_S: Final = 3600.0
_STOP_S: Final = 10.0


class Process(Protocol):
    """What answers."""

    started: int

    def ready(self) -> None:
        """Start it if it is not there."""
        ...

    def ask(self, question: dict[str, Any]) -> dict[str, Any]:
        """Return the answer."""
        ...

    def close(self) -> None:
        """End it."""
        ...


@dataclass(frozen=True, slots=True, eq=False)
class _Question:
    """A trial that asks; ``upto`` is how much of the log it may go by, ``drawn`` how many points were known then."""

    trial: TrialId
    upto: int
    drawn: int


@dataclass(slots=True, eq=False)
class _Record:
    """One search: what was told of it, what it found, and how much of it the process knows.

    ``before`` is what earlier sweeps showed, the same however often its study is built again.
    """

    name: str
    trial: Trial
    ledger: Ledger
    before: list[Lesson]
    log: list[TrialNews] = field(default_factory=list)
    answers: dict[TrialId, Point] = field(default_factory=dict)
    pending: dict[TrialId, _Question] = field(default_factory=dict)
    seen: Snapshot | None = None
    drawn: int = 0
    started: int = 0
    sent: int = 0
    error: str = ""
    failures: int = 0
    lost: bool = False
    rests_until: float = 0.0

    def look(self, snapshot: Snapshot, points: Mapping[TrialId, Point]) -> None:
        """Take in what has happened; the same snapshot again costs nothing."""
        if snapshot is self.seen:
            return
        others, own = self.ledger.others(snapshot), dict(self.answers)
        self.log += self.ledger.news(others, points, snapshot.now)
        self.drawn = drawn_before(others, {**own, **points}) - len(own)
        self.seen = snapshot

    def untold(self, upto: int) -> list[TrialNews]:
        """Return which points the search found that do not stand in the log as far as ``upto``."""
        known = {told.trial for told in self.log[:upto]}
        return [TrialNews(trial, point) for trial, point in self.answers.items() if trial not in known]


_Job = tuple["SearchesElsewhere", _Record, _Question]


class SearchesElsewhere:
    """The searches of one campaign. Its questions wait among those of its owner."""

    def __init__(self, name: str, queue: "SearchQueue", owner: str) -> None:
        self._name = name
        self._queue = queue
        self._owner = owner
        self._records: dict[tuple[str, str], _Record] = {}
        self.answered = False
        """Whether an answer has come that nobody has fetched; the code that looks sets it back."""

    def ask(self, trial: Trial, snapshot: Snapshot, points: Mapping[TrialId, Point]) -> Point:
        """Return the hyperparameters of ``trial``; see ``Search``."""
        key = (trial.sweep, trial.search)
        record = self._records.get(key)
        if record is None:
            name, ledger = f"{self._name}/{len(self._records)}", Ledger(trial)
            own = len(ledger.others(snapshot))
            before = earlier_lessons(ledger.spec, trial, snapshot, own, self._queue.bound)
            record = self._records[key] = _Record(name, trial, ledger, before)
        if trial.id in record.answers:
            return record.answers[trial.id]
        if trial.id not in record.pending:
            if record.error and self._queue.now() < record.rests_until:
                raise SearchError(record.error)
            record.look(snapshot, points)
            check_cost(record.ledger.spec, len(record.ledger.begun) + len(record.pending), self._queue.bound)
            record.pending[trial.id] = _Question(trial.id, len(record.log), record.drawn)
            self._queue.put(self._owner, self, record, record.pending[trial.id])
        message = "its search still looks for its hyperparameters"
        raise SearchPending(message)

    def names(self) -> list[str]:
        """Return the names of its studies in the process."""
        return [record.name for record in self._records.values()]


class SearchQueue:
    """Asks one process for the points of all sweeps of a cluster, on a thread of its own, while its context lasts.

    Owners get their turns one after the other. A search that fails or takes too long rests: 10 s at first, twice as
    long each time, an hour at most; its trials wait, and nobody else's.

    Args:
        bound: What a search may compute for a point.
        process: What answers.
        now: Seconds that never go back.
    """

    def __init__(
        self, bound: Bound = IN_A_CLUSTER, process: Process | None = None, now: Callable[[], float] = time.monotonic
    ) -> None:
        self.bound = bound
        self.now = now
        self._process = process or SearchProcess(ANSWER_S)
        self._owners: dict[str, deque[_Job]] = {}
        self._forgotten: deque[str] = deque()
        self._lock = threading.Lock()
        self._news = threading.Condition(self._lock)
        self._stop = False
        self._opened = 0
        self._thread = threading.Thread(target=self._run, name="searches", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        with self._news:
            self._stop = True
            self._news.notify()
        self._thread.join(_STOP_S)

    @contextmanager
    def searches(self, owner: str) -> Iterator[SearchesElsewhere]:
        """Return the searches of a campaign of ``owner``, which are forgotten at the end of the context."""
        self._opened += 1
        searches = SearchesElsewhere(str(self._opened), self, owner)
        try:
            yield searches
        finally:
            with self._news:
                left = [job for job in self._owners.pop(owner, ()) if job[0] is not searches]
                if left:
                    self._owners[owner] = deque(left)
                self._forgotten += searches.names()
                self._news.notify()

    def put(self, owner: str, searches: SearchesElsewhere, record: _Record, question: _Question) -> None:
        """Have ``question`` answered in its turn."""
        with self._news:
            self._owners.setdefault(owner, deque()).append((searches, record, question))
            self._news.notify()

    def _run(self) -> None:
        while (job := self._next()) is not None:
            owner, searches, record, question = job
            if record.pending.get(question.trial) is not question:
                continue  # another question of the same search failed
            try:
                done = self._answer(record, question)
            except SearchError as error:
                self._fail(record, str(error))
                done = True
            except Exception as error:  # noqa: BLE001 - no search may end the thread that all share
                _LOG.exception("could not ask a search")
                self._fail(record, f"the controller could not ask the search: {type(error).__name__}")
                done = True
            if done:
                searches.answered = True
            else:
                self._put_back(owner, (searches, record, question), first=record.lost)
        self._process.close()

    def _put_back(self, owner: str, job: "_Job", *, first: bool) -> None:
        """Have a question go on in the next turn of its owner, or at once."""
        with self._lock:
            self._owners.setdefault(owner, deque()).appendleft(job)
            if first:
                self._owners = {owner: self._owners.pop(owner), **self._owners}

    def _next(self) -> tuple[str, SearchesElsewhere, _Record, _Question] | None:
        """Wait for a question of the owner whose turn it is; None at the end."""
        with self._news:
            while not self._owners and not self._stop:
                self._news.wait()
            if self._stop:
                return None
            owner, jobs = next(iter(self._owners.items()))
            del self._owners[owner]  # the next one's turn comes first
            job = jobs.popleft()
            if jobs:
                self._owners[owner] = jobs
            return (owner, *job)

    def _answer(self, record: _Record, question: _Question) -> bool:
        """Tell the process a piece of what it must know, with the question once it knows all; return whether it did."""
        self._process.ready()
        self._forget()
        message: dict[str, Any] = {"study": record.name}
        untold: list[TrialNews] = []
        if record.started != self._process.started:
            record.started, record.sent, untold = self._process.started, 0, record.untold(question.upto)
            drawn = question.drawn + len(record.answers)
            directions, constrained = record.ledger.directions, record.ledger.constrained
            message |= {"begin": drawn, "search": record.trial.search}
            message |= {"directions": directions, "constrained": constrained}
            message["before"] = LESSONS.dump_python(record.before, mode="json")
        piece = record.log[record.sent : min(record.sent + MOST_AT_A_TIME, question.upto)]
        message["learn"] = TOLD.dump_python([*untold, *piece], mode="json")
        record.sent += len(piece)
        whole = record.sent >= question.upto
        answer = self._process.ask(message | ({"ask": question.trial} if whole else {}))
        if "error" in answer:
            raise SearchError(answer["error"])
        if "unknown" in answer:
            # Others have asked so much since that it was forgotten. Two large searches must not drive each other out
            # again and again, before either has learnt all.
            record.started, record.lost = 0, True
            return False
        if whole:
            record.answers[question.trial] = tuple((name, value) for name, value in answer["point"])
            record.failures, record.error, record.lost = 0, "", False
            del record.pending[question.trial]
        return whole

    def _forget(self) -> None:
        while self._forgotten:
            self._process.ask({"study": self._forgotten.popleft(), "forget": True})

    def _fail(self, record: _Record, error: str) -> None:
        """Let a search rest that failed, with all its questions."""
        record.failures += 1
        rest_s = min(_LONGEST_REST_S, _FIRST_REST_S * 2 ** min(record.failures, 20))
        record.rests_until = self.now() + rest_s
        record.error = f"{error}; it is asked again after {rest_s:.0f} s"
        record.started = 0
        record.pending.clear()
