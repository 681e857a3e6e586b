"""The record of a run: what happened when, flat enough for a JSON line each.

Written while a sweep runs, read by reports and comparisons. All times are seconds of the sweep's clock.
"""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from controllers.core.errors import SpeconError
from controllers.record.lines import LineFile
from mlflow_hooks.foreign_json import parsed


class TimelineError(SpeconError):
    """A timeline holds a line that is no event; the message names file and line."""


class EventKind(StrEnum):
    """What a timeline event tells; each lists the fields that it fills beside ``at`` and ``trial``.

    Where a trial has several workers, ``nodes`` has the node of each by rank, and ``node`` is the first of them;
    ``cpu`` is each worker's, and the ``value`` of usage that of all.
    """

    PHASE = "phase"
    """A trial's phase, node or attempt changed: ``phase``, ``node``, ``attempt``, ``cpu``.

    Where a policy gave it a place, suspended or stopped it, ``reason`` is why.
    """
    RESIZE = "resize"
    """A share was changed in place: ``node``, ``cpu``, ``reason``."""
    MOVE = "move"
    """A move was requested: ``node`` is the destination, ``reason``."""
    CATEGORY = "category"
    """A policy changed its mind: ``category``, ``value`` is the growth."""
    OUTLOOK = "outlook"
    """Something else is foreseen, or became of a goal: ``reason`` is that in words, empty where nothing is any more."""
    REPORT = "report"
    """The objective was read: ``value``, ``step``, and ``steps_total`` where that is news.

    ``also`` are the finite values of the other metrics that count for the sweep.
    """
    USAGE = "usage"
    """Cores a trial used on average since the last such event: ``node``, ``value``."""


@dataclass(frozen=True, slots=True)
class TimelineEvent:
    """One thing that happened to one trial."""

    at: float
    kind: EventKind
    trial: str
    phase: str | None = None
    node: str | None = None
    attempt: int | None = None
    cpu: float | None = None
    category: str | None = None
    value: float | None = None
    step: int | None = None
    reason: str | None = None
    steps_total: int | None = None
    nodes: tuple[str, ...] | None = None
    also: Mapping[str, float] | None = None

    @property
    def places(self) -> tuple[str, ...]:
        """Node of each worker, by rank; empty where the event tells of none."""
        return self.nodes or (() if self.node is None else (self.node,))

    def to_json(self) -> str:
        """Return one line of JSON without the fields that are not set."""
        return json.dumps({name: value for name in self.__slots__ if (value := getattr(self, name)) is not None})


_KINDS = frozenset(EventKind)


def read_timeline(path: Path) -> Iterator[TimelineEvent]:
    """Yield the events of ``path`` in order; a last line cut short by a crash is passed over.

    So are the kinds of event, and the fields, that only a newer version knows.

    Raises:
        TimelineError: a line other than the last is not an event; the message names the line.
    """
    lines = path.read_text(encoding="utf-8").splitlines()
    for number, line in enumerate(lines, start=1):
        try:
            event = _event(line)
        except (ValueError, KeyError, TypeError) as error:
            if number == len(lines):
                return
            raise _no_event(path, number, line) from error
        if event is not None:
            yield event


def _event(line: str) -> TimelineEvent | None:
    """Return the event of a line, None for one of a kind that only a newer version knows."""
    fields = parsed(line)
    known = {name: fields[name] for name in TimelineEvent.__slots__ if name in fields}
    several = {"nodes": tuple(known["nodes"])} if "nodes" in known else {}
    if known["kind"] in _KINDS or not isinstance(known["kind"], str):
        return TimelineEvent(**{**known, **several, "kind": EventKind(known["kind"])})
    return None


def _no_event(path: Path, number: int, line: str) -> TimelineError:
    return TimelineError(f"{path}, line {number}: not a timeline event: {line[:80]!r}")


class GrowingTimeline:
    """Reads the timeline at ``path`` while it grows: each look parses only what has come since the one before."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._read = 0
        self._lines = 0
        self._events: list[TimelineEvent] = []

    def events(self) -> Sequence[TimelineEvent]:
        """Return all events so far, in order; a last line that is not whole yet waits for the next look.

        Raises:
            TimelineError: a line is not an event; the message names the line.
            OSError: the file cannot be read.
        """
        with self._path.open("rb") as file:
            file.seek(self._read)
            whole, _, _ = file.read().rpartition(b"\n")
        for line in whole.split(b"\n") if whole else ():
            self._lines += 1
            self._read += len(line) + 1
            try:
                event = _event(line.decode())
            except (ValueError, KeyError, TypeError) as error:
                raise _no_event(self._path, self._lines, line.decode(errors="replace")) from error
            if event is not None:
                self._events.append(event)
        return self._events


class TimelineFile:
    """Appends events to ``path``, as ``LineFile`` says."""

    def __init__(self, path: Path) -> None:
        self._lines = LineFile(path)

    def append(self, events: Iterable[TimelineEvent]) -> None:
        """Append ``events`` in one write."""
        self._lines.append("".join(f"{event.to_json()}\n" for event in events))
