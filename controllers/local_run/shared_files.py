"""Notices files of the working folder that several trials of a running sweep write: one may overwrite another's."""

import math
import os
import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import psutil

from controllers.core.model import Phase
from controllers.worlds.local.changed_files import Looking
from controllers.worlds.local.jobs import LocalJob
from controllers.worlds.local.processes import proctree
from mlflow_hooks.contract import ENV_TRIAL_FOLDER

_MOST_TOLD: Final = 5
"""Files of a sweep that are named."""
_MOST_TRIALS: Final = 5
"""Trials of a file that are named."""
_REST: Final = 30.0
"""The next look waits so many times as long as the last one took: all looks take about 3 % of a core at most."""
_LEAST_REST_S: Final = 0.5
_AT_ONCE_S: Final = 0.02
"""Seconds that a look takes from the sweep's loop at a time."""
_LAST_S: Final = 5.0
"""Seconds that the last look may take in all."""
_PAGE: Final = "docs/how-to/keep-trials-files-apart.md"
_NUMBER: Final = re.compile(r"[a-z]*[0-9][a-z0-9]*")


@dataclass(frozen=True, slots=True)
class _Written:
    """A file: when it last changed, how often that was seen, and which trials ran ``always`` or ``ever`` then."""

    changed: float
    times: int
    always: frozenset[str]
    ever: frozenset[str]

    def again(self, changed: float, running: frozenset[str]) -> "_Written":
        return _Written(changed, self.times + 1, self.always & running, self.ever | running)


class SharedFilesWatch:
    """Looks at a folder now and then, and tells of each file once that several trials wrote.

    It knows when a file last changed and which trials ran then. Several wrote a file where none ran at all its changes.
    Trials that ran side by side all the time cannot be told apart so: of these, those that have ended well each wrote a
    file of such a name, or they wrote the same.

    Args:
        folder: where trials run.
        short: gives the short id of a trial.
        since: files that changed before are not looked at; seconds since 1970.
        leave_out: files and folders that trials do not write, as device and inode.
        looking: begins a look.
    """

    def __init__(
        self,
        folder: Path,
        short: Callable[[str], str],
        since: float,
        leave_out: Collection[tuple[int, int]] = (),
        looking: Callable[[Path, float, Collection[tuple[int, int]]], Looking] = Looking,
    ) -> None:
        self._folder, self._short = folder, short
        self._since, self._leave_out, self._begin = since, leave_out, looking
        self._looking: Looking | None = None
        self._spans: dict[tuple[str, int], tuple[float, float]] = {}
        self._files: dict[str, _Written] = {}
        self._told: set[str] = set()
        self._next_at = 0.0
        self._partial = False
        self._ended_well = 0

    def look(
        self, now: float, jobs: Iterable[LocalJob], to_epoch: Callable[[float], float], *, last: bool = False
    ) -> Iterator[str]:
        """Yield a warning for each file that several trials wrote, as it becomes known.

        A look may take several calls.

        Args:
            now: seconds of the sweep's clock.
            jobs: of the sweep.
            to_epoch: turns these seconds into those since 1970.
            last: the sweep is over; look whenever the last look was.
        """
        if now < self._next_at and not last:
            return
        if self._looking is None or last:
            self._looking = self._begin(self._folder, self._since, self._leave_out)
        seen = self._looking.go_on(_LAST_S if last else _AT_ONCE_S)
        if seen is None:
            return
        self._looking = None
        trials = [job for job in jobs if job.trial and job.attempt]
        self._note_spans(trials, now, to_epoch)
        self._next_at = now + max(_LEAST_REST_S, _REST * seen.took_s)
        if not seen.whole and not self._partial:
            self._partial = True
            yield (
                f"{self._folder} holds more files, or deeper folders, than one look takes in: whether trials overwrite "
                f"each other's files is not seen in the rest ({_PAGE})"
            )
        paths = [*self._note_changes(seen.changed), *self._not_one_each(trials, last=last)]
        yield from self._warnings(paths)
        if last and (more := len(self._told) - _MOST_TOLD) > 0:
            yield f"several trials wrote {more} other file{'' if more == 1 else 's'} of {self._folder}, too ({_PAGE})"

    def _note_spans(self, jobs: Iterable[LocalJob], now: float, to_epoch: Callable[[float], float]) -> None:
        """Note from when to when each attempt ran, without an end where it runs now."""
        for job in jobs:
            began, ended = self._spans.get((job.trial, job.attempt), (to_epoch(job.started_at), math.inf))
            if ended == math.inf and not job.placed:
                ended = to_epoch(now if job.ended_at is None else job.ended_at)
            self._spans[job.trial, job.attempt] = (began, ended)
            # One that moved within a look was never seen to wait.
            before = self._spans.get((job.trial, job.attempt - 1))
            if before and before[1] == math.inf:
                self._spans[job.trial, job.attempt - 1] = (before[0], began)

    def _note_changes(self, changed: Mapping[str, float]) -> list[str]:
        """Take note of what changed; return the files that no trial alone can have written."""
        news = {path: at for path, at in changed.items() if path not in self._files or self._files[path].changed != at}
        first = min(news.values(), default=math.inf)
        spans = [(trial, began, ended) for (trial, _), (began, ended) in self._spans.items() if ended >= first]
        for path, at in news.items():
            running = frozenset(trial for trial, began, ended in spans if began <= at <= ended)
            if running:  # else somebody else wrote it
                known = self._files.get(path)
                self._files[path] = known.again(at, running) if known else _Written(at, 1, running, running)
        return [path for path in news if path in self._files and not self._files[path].always]

    def _not_one_each(self, trials: Sequence[LocalJob], *, last: bool) -> list[str]:
        """Return the files that are fewer than the trials that ran as they changed and have ended well since."""
        well = frozenset(job.trial for job in trials if job.phase is Phase.SUCCEEDED)
        if len(well) == self._ended_well and not last:
            return []
        self._ended_well = len(well)
        kind_of = _kinds(trials)
        kinds = {path: kind_of(path) for path in self._files}
        alike = Counter(kinds.values())
        return [
            path for path, file in self._files.items() if file.times > 1 and alike[kinds[path]] < len(file.ever & well)
        ]

    def _warnings(self, paths: Iterable[str]) -> Iterator[str]:
        for path in paths:
            if path not in self._told:
                self._told.add(path)
                if len(self._told) <= _MOST_TOLD:
                    yield self._warning(path, self._files[path])

    def _warning(self, path: str, file: _Written) -> str:
        names = sorted(map(self._short, file.ever))
        some = ", ".join(names[:_MOST_TRIALS])
        if (more := len(names) - _MOST_TRIALS) > 0:
            some += f" and {more} more"
        wrote = "several trials seem to write" if file.always else "several trials wrote"
        return (
            f"{wrote} {self._folder / path}: {some} ran when it changed. Unless they only add to it, it holds what "
            f"the last of them wrote. Give each trial a file of its own in $({ENV_TRIAL_FOLDER}), or set "
            f"Sweep(own_folder=True) ({_PAGE})"
        )


def _kinds(jobs: Iterable[LocalJob]) -> Callable[[str], str]:
    """Return what makes files alike: their paths but for numbers, values of hyperparameters and the like."""
    texts = {str(value).lower() for job in jobs for value in job.params.values()}
    words = sorted((text for text in texts if len(text) > 1 and text.isidentifier()), key=len, reverse=True)
    values = re.compile("|".join(words)) if words else None

    def kind(path: str) -> str:
        lower = path.lower()
        return _NUMBER.sub("#", values.sub("#", lower) if values else lower)

    return kind


def written_by_us(folders: Iterable[Path]) -> frozenset[tuple[int, int]]:
    """Return ``folders``, and the files that processes of this group have open, such as ``tee`` behind a pipe.

    Each is given as device and inode.
    """
    paths = [*folders]
    for pid in psutil.pids():
        with suppress(OSError):  # it is gone, or somebody else's
            if os.getpgid(pid) == os.getpgrp():
                paths += proctree.open_files(pid)
    return frozenset(filter(None, map(_identity, paths)))


def _identity(path: Path) -> tuple[int, int] | None:
    try:
        status = path.stat()
    except OSError:
        return None
    return status.st_dev, status.st_ino
