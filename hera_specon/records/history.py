"""What each trial went through, as stretches of time in which nothing changed. Pure; seconds."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from controllers.record.timeline import EventKind, TimelineEvent
from hera_specon import formatting

ENDED = frozenset({"succeeded", "stopped", "failed"})
_PLACELESS = frozenset({"pending", "suspended"})


@dataclass(frozen=True, slots=True)
class Stretch:
    """A time in which a trial's phase, node, category and share stayed the same.

    ``nodes`` has the node of each worker by rank where there are several, and ``node`` is the first of them; ``cpu`` is
    each worker's. ``reason`` is why the last change was made, where a policy made it.
    """

    trial: str
    start: float
    end: float
    phase: str
    node: str | None = None
    cpu: float | None = None
    category: str | None = None
    attempt: int | None = None
    reason: str = ""
    nodes: tuple[str, ...] = ()

    @property
    def places(self) -> tuple[str, ...]:
        """Node of each worker, by rank; empty while it has none."""
        return self.nodes or ((self.node,) if self.node else ())


@dataclass(frozen=True, slots=True)
class Move:
    """A move that was asked for: when, from where to where, and why."""

    trial: str
    at: float
    source: str | None
    target: str | None
    reason: str


class ObjectiveReading(NamedTuple):
    """A value of the objective: when it was read, and the step that it is of, where that is known."""

    at: float
    value: float
    step: int | None = None


@dataclass(frozen=True, slots=True)
class SweepHistory:
    """Everything that a run's timeline tells, by trial and in order of time."""

    stretches: Mapping[str, tuple[Stretch, ...]]
    moves: tuple[Move, ...]
    reports: Mapping[str, tuple[ObjectiveReading, ...]]
    usage: Mapping[str, tuple[tuple[float, float, str | None], ...]]
    end: float

    def all_stretches(self) -> list[Stretch]:
        """Return the stretches of every trial."""
        return [stretch for of_trial in self.stretches.values() for stretch in of_trial]

    def nodes(self) -> list[str]:
        """Return the names of the nodes that held a trial, sorted so that node-10 follows node-9."""
        names = {node for stretch in self.all_stretches() for node in stretch.places}
        return sorted(names, key=formatting.natural)


def history(events: Iterable[TimelineEvent]) -> SweepHistory:
    """Fold the events of one run into its history."""
    ordered = sorted(events, key=lambda event: event.at)
    end = ordered[-1].at if ordered else 0.0
    by_trial: dict[str, list[TimelineEvent]] = {}
    for event in ordered:
        by_trial.setdefault(event.trial, []).append(event)
    stretches = {trial: stretches_of(of_trial, end) for trial, of_trial in by_trial.items()}
    moves = []
    for event in ordered:
        if event.kind is EventKind.MOVE:
            before = [stretch for stretch in stretches[event.trial] if stretch.start < event.at and stretch.node]
            source = before[-1].node if before else None
            moves.append(Move(event.trial, event.at, source, event.node, event.reason or ""))
    return SweepHistory(
        stretches=stretches,
        moves=tuple(moves),
        reports={
            trial: tuple(
                ObjectiveReading(e.at, e.value, e.step)
                for e in of_trial
                if e.kind is EventKind.REPORT and e.value is not None
            )
            for trial, of_trial in by_trial.items()
        },
        usage={
            trial: tuple(use for e in of_trial if e.kind is EventKind.USAGE for use in _uses(e))
            for trial, of_trial in by_trial.items()
        },
        end=end,
    )


def _uses(event: TimelineEvent) -> list[tuple[float, float, str | None]]:
    """Return time, cores and node of a usage event; a gang's is divided among its nodes, since workers do the same."""
    if event.value is None:
        return []
    places = event.places
    if not places:
        return [(event.at, event.value, None)]
    return [(event.at, event.value * places.count(node) / len(places), node) for node in dict.fromkeys(places)]


def stretches_of(events: Sequence[TimelineEvent], end: float) -> tuple[Stretch, ...]:
    """Return one trial's stretches in order; one still open is cut at ``end``."""
    done: list[Stretch] = []
    now: Stretch | None = None
    for event in events:
        after = _apply(now, event)
        if after == now:
            continue
        done += _close(now, event.at)
        now = after
    return tuple(done + _close(now, end))


def _close(stretch: Stretch | None, at: float) -> list[Stretch]:
    if stretch is None or stretch.phase in ENDED or at <= stretch.start:
        return []
    return [replace(stretch, end=at)]


def _apply(now: Stretch | None, event: TimelineEvent) -> Stretch | None:
    """Return the stretch that ``event`` begins, or ``now`` itself where the event changes nothing."""
    if now is None and event.kind is not EventKind.PHASE:
        return None
    before = now or Stretch(event.trial, event.at, event.at, phase="")
    after = before
    if event.kind is EventKind.PHASE:
        after = replace(
            before,
            phase=event.phase or before.phase,
            node=None if event.phase in _PLACELESS else event.node or before.node,
            nodes=() if event.phase in _PLACELESS else (event.nodes or ()) if event.node else before.nodes,
            cpu=event.cpu if event.cpu is not None else before.cpu,
            attempt=event.attempt or before.attempt,
        )
    elif event.kind is EventKind.RESIZE:
        after = replace(before, cpu=event.cpu if event.cpu is not None else before.cpu)
    elif event.kind is EventKind.CATEGORY:
        after = replace(before, category=event.category)
    elif event.kind is EventKind.MOVE:
        after = replace(before, reason=event.reason or before.reason)
    if after == before:
        return now
    return replace(after, start=event.at, reason=event.reason or after.reason)
