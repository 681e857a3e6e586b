"""Whether the objective of a sweep shows once a first trial has ended well. Until it does, no other trial begins.

A mistyped name would else be told of after the last trial, when all of them trained for nothing. What a trial keeps or
prints here tells at once; what it logged by MLflow alone is asked there, on a thread of its own.
"""

import threading
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, Protocol

from controllers.core import labels
from controllers.core.goals import aims_in
from controllers.core.model import Phase, Sample, TrialId
from controllers.core.objectives import missing_objectives, not_shown
from controllers.core.ports import ComingTrial
from controllers.core.results import RunResult
from controllers.worlds.local.jobs import LocalJob, file_name
from controllers.worlds.local.last_words import printed_last

MARK: Final = "objective-missing"
"""There in the folder of a run under one policy where trials have ended well and the objective has not shown."""
_AGAIN_S: Final = 1.0
_WITHOUT_MLFLOW_S: Final = 120.0
"""Seconds for which trials wait for an MLflow that does not answer whether the objective is there."""


class CheckedWorld(Protocol):
    """The world of a sweep, see ``LocalWorld``."""

    @property
    def ends(self) -> int:
        """A number that grows whenever a job comes or ends."""
        ...

    def jobs(self) -> Sequence[LocalJob]:
        """Return the records of all steps submitted so far."""
        ...

    def to_come(self) -> Sequence[ComingTrial]:
        """Return every trial that has not been submitted yet."""
        ...

    def short(self, trial: str) -> str:
        """Return a trial's id as people know it."""
        ...


@dataclass(slots=True)
class _Open:
    """A sweep with a trial that has ended well, whose objective has not shown.

    ``why`` says what ``trial`` logged instead, once that is known.
    """

    since: float
    trial: str = ""
    why: str = ""

    @property
    def holds(self) -> bool:
        """Whether its other trials must not begin."""
        return bool(self.why) or time.monotonic() < self.since + _WITHOUT_MLFLOW_S


@dataclass(slots=True)
class ObjectiveCheck:
    """Holds back the trials that have not begun, and tells why.

    Args:
        folder: of the run under one policy.
        world: where the trials are.
        samples: gives the newest sample of each trial.
        logged: gives the names of all metrics that trials have logged; it fails while MLflow is away, and is called
            again.
        holding: whether trials are held back at all.
    """

    folder: Path
    world: CheckedWorld
    samples: Callable[[], Mapping[TrialId, Sample]]
    logged: Callable[[Sequence[LocalJob]], Mapping[str, Collection[str]]]
    holding: bool = True
    _shown: set[str] = field(default_factory=set, init=False)
    _told: set[str] = field(default_factory=set, init=False)
    _open: dict[str, _Open] = field(default_factory=dict, init=False)
    _names: dict[str, Collection[str]] = field(default_factory=dict, init=False)
    _seen: int = field(default=-1, init=False)
    _thread: threading.Thread | None = field(default=None, init=False)
    _stop: threading.Event = field(default_factory=threading.Event, init=False)

    def holds(self, job: LocalJob) -> bool:
        """Return whether a job that is due is a trial that must not begin yet; one that has begun goes on."""
        sweep = _sweep(job)
        if not self.holding or not job.trial or job.attempt or sweep in self._shown:
            return False
        if self._seen != self.world.ends or self._answered:
            self._look()
        found = self._open.get(sweep)
        return found is not None and found.holds

    def news(self) -> Iterator[str]:
        """Yield in words, once for each sweep, that its objective does not show; and that it does after all."""
        if self._seen != self.world.ends or self._open:
            self._look()
        for sweep, found in self._open.items():
            if found.why and sweep not in self._told:
                self._told.add(sweep)
                yield from self._in_words(found)
        for sweep in sorted(self._told & self._shown):
            self._told.remove(sweep)
            yield f"the objective of {sweep} shows after all: its trials go on"

    def why_over(self) -> str | None:
        """Return why nothing goes on here, None while something does: the trials that are left must not begin."""
        whys = [found.why for found in self._open.values() if found.why]
        if not self.holding or not whys or self._thread is not None:
            return None
        left = [job for job in self.world.jobs() if not job.phase.ended]
        held = [job for job in left if self.holds(job)]
        moving = any(job.placed or (job.phase is Phase.PENDING and not self.holds(job)) for job in left)
        coming = len(held) + len(self.world.to_come())
        if moving or not coming:
            return None
        return (
            f"{'; '.join(whys)}. {coming} other trial{'s' if coming > 1 else ''} did not begin. With the right name "
            "the same command goes on: it reads again what was logged and printed, and trains nothing twice. With "
            "--yes it trains all as it is"
        )

    @property
    def _answered(self) -> bool:
        return self._thread is not None and not self._thread.is_alive()

    def close(self) -> None:
        """Ask nothing more."""
        self._stop.set()

    def _look(self) -> None:
        """Take note of what has shown by now, and ask MLflow about trials that have ended without it."""
        self._seen = self.world.ends
        if self._answered:
            self._thread = None
        trials: dict[str, list[LocalJob]] = {}
        for job in self.world.jobs():
            if job.trial and _sweep(job) not in self._shown:
                trials.setdefault(_sweep(job), []).append(job)
        ended = {sweep: [job for job in jobs if job.phase is Phase.SUCCEEDED] for sweep, jobs in trials.items()}
        if not any(ended.values()):
            return
        samples = self.samples()
        for sweep, silent in ended.items():
            if silent:
                self._judge(sweep, silent, _seen_in(samples, trials[sweep]))
        unasked = [job for sweep in self._open for job in ended[sweep] if job.trial not in self._names]
        if unasked and self._thread is None and not self._stop.is_set():
            self._thread = threading.Thread(target=self._ask, args=(unasked,), name="objectives", daemon=True)
            self._thread.start()

    def _judge(self, sweep: str, silent: Sequence[LocalJob], seen: set[str]) -> None:
        notes = silent[0].step.annotations
        objective = notes[labels.ANNOTATION_OBJECTIVE]
        asked = [job for job in silent if job.trial in self._names]
        seen = seen.union(*(self._names[job.trial] for job in asked))
        missing = [name for name in (objective, *aims_in(notes).metrics) if name not in seen]
        if not missing:
            self._shown.add(sweep)
            if self._open.pop(sweep, None) and not self._open:
                with suppress(OSError):
                    (self.folder / MARK).unlink(missing_ok=True)
            return
        found = self._open.setdefault(sweep, _Open(time.monotonic()))
        if asked and not found.why:
            found.trial = asked[0].trial
            found.why = not_shown(self.world.short(found.trial), objective, missing, self._names[found.trial])
            _mark(self.folder)

    def _in_words(self, found: _Open) -> Iterator[str]:
        log = self.folder / "logs" / f"{file_name(found.trial)}.log"
        yield f"Warning: {found.why}"
        yield from printed_last(self.world.short(found.trial), log)
        if self.holding:
            yield "no other trial begins until it shows; those that have begun train on"

    def _ask(self, jobs: Sequence[LocalJob]) -> None:
        while not self._stop.is_set():
            try:
                self._names.update(self.logged(jobs))
            except Exception:  # noqa: BLE001 - whatever MLflow's client raises, the next try may work
                self._stop.wait(_AGAIN_S)
            else:
                return


def _sweep(job: LocalJob) -> str:
    return job.step.labels.get(labels.LABEL_SWEEP, "")


def _seen_in(samples: Mapping[TrialId, Sample], jobs: Iterable[LocalJob]) -> set[str]:
    """Return the metrics that some of the trials have values for."""
    seen = set[str]()
    for job in jobs:
        if (sample := samples.get(TrialId(job.trial))) is not None:
            seen |= {job.step.annotations[labels.ANNOTATION_OBJECTIVE], *(name for name, _ in sample.also)}
    return seen


def _mark(folder: Path) -> None:
    with suppress(OSError):
        (folder / MARK).touch()


def note_missing(folder: Path, result: RunResult) -> None:
    """Note in a policy's folder, where it is so, that its sweep is over and no trial logged what it goes by."""
    if missing_objectives(result).errors:
        _mark(folder)


def objective_is_missing(folder: Path) -> bool:
    """Return whether the run in a policy's folder has told that its objective does not show."""
    return (folder / MARK).exists()
