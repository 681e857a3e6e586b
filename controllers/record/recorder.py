"""Keeps the timeline of a run: what changed from one look at the sweep to the next."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import compress
from math import isfinite
from operator import attrgetter, is_not
from typing import Final, TypedDict

from controllers.core.actions import Assessment
from controllers.core.model import NodeName, Phase, Snapshot, Trial, TrialId
from controllers.record.timeline import EventKind, TimelineEvent

_USAGE_EVERY_S = 2.0
_FOR_A_REASON = frozenset({Phase.SUSPENDING, Phase.STOPPING, Phase.STOPPED})


class Recorder:
    """An observer that hands on what has changed since it last looked.

    Args:
        append: adds events to the timeline.
        cores_used: tells the cores that each running trial used of late.
        short: gives the id of a trial that is the same in every run of its sweep.
    """

    def __init__(
        self,
        append: Callable[[Sequence[TimelineEvent]], None],
        cores_used: Callable[[], Mapping[TrialId, float]],
        short: Callable[[str], str] = str,
    ) -> None:
        self._append = append
        self._short = short
        self._cores_used = cores_used
        self._before: dict[TrialId, Trial] = {}
        self._trials: tuple[Trial, ...] = ()
        self._judged: dict[TrialId, Assessment] = {}
        self._categories: dict[TrialId, str] = {}
        self._outlooks: dict[TrialId, str] = {}
        self._usage_due = 0.0

    def observe(
        self, snapshot: Snapshot, assessments: Mapping[TrialId, Assessment], reasons: Mapping[TrialId, str]
    ) -> None:
        """Append one event for each thing that changed."""
        events: list[TimelineEvent] = []
        seen = self._before
        # Most trials look as they did. With thousands of them, it takes long to look for each by its name, too.
        before: Iterable[Trial | None] = self._trials
        if len(self._trials) != len(snapshot.trials):
            before = map(seen.get, map(attrgetter("id"), snapshot.trials))
        for trial in list(compress(snapshot.trials, map(is_not, snapshot.trials, before))):
            events += _events(snapshot.now, self._short(trial.id), seen.get(trial.id), trial, reasons.get(trial.id))
            seen[trial.id] = trial
        self._trials = snapshot.trials
        self._append([*events, *self._judgements(snapshot.now, assessments), *self._usage(snapshot)])

    def _judgements(self, now: float, assessments: Mapping[TrialId, Assessment]) -> list[TimelineEvent]:
        # A policy hands on the same object while nothing of it changes: most of them need no closer look.
        new = {name: a for name, a in assessments.items() if self._judged.get(name) is not a}
        self._judged |= new
        sorted_now = {name: a.category for name, a in new.items() if a.category is not None}
        news = {name: category for name, category in sorted_now.items() if self._categories.get(name) != category}
        told = {name: a.outlook for name, a in new.items() if self._outlooks.get(name, "") != a.outlook}
        self._categories |= news
        self._outlooks |= told
        return [
            *(
                TimelineEvent(
                    now, EventKind.CATEGORY, self._short(name), category=category, value=assessments[name].growth
                )
                for name, category in news.items()
            ),
            *(
                TimelineEvent(now, EventKind.OUTLOOK, self._short(name), reason=outlook)
                for name, outlook in told.items()
            ),
        ]

    def _usage(self, snapshot: Snapshot) -> list[TimelineEvent]:
        if snapshot.now < self._usage_due:
            return []
        self._usage_due = snapshot.now + _USAGE_EVERY_S
        used = self._cores_used()
        on = {name: _on(trial.nodes) for name in used if (trial := snapshot.named.get(name)) is not None}
        return [
            TimelineEvent(
                snapshot.now, EventKind.USAGE, self._short(name), value=round(cores, 4), **on.get(name, _NOWHERE)
            )
            for name, cores in used.items()
        ]


class _Places(TypedDict):
    """The fields of an event that tell where a trial is."""

    node: str | None
    nodes: tuple[str, ...] | None


_NOWHERE: Final = _Places(node=None, nodes=None)


def _on(nodes: Sequence[str]) -> _Places:
    return _Places(node=nodes[0] if nodes else None, nodes=tuple(nodes) if len(nodes) > 1 else None)


def _state(trial: Trial) -> tuple[Phase, tuple[NodeName, ...], int]:
    return trial.phase, trial.nodes, trial.attempt


def _events(now: float, name: str, before: Trial | None, trial: Trial, reason: str | None) -> list[TimelineEvent]:
    events: list[TimelineEvent] = []
    cloned = before is not None and before.lineage != trial.lineage
    if before is None or cloned or _state(before) != _state(trial):
        # Of attempts that begin, only those that were seen to wait have a reason; others run where a move led them.
        waited = trial.phase is Phase.RUNNING and (trial.attempt == 1 or trial.suspensions > 0)
        told = before is not None and (waited or cloned or trial.phase in _FOR_A_REASON)
        state = TimelineEvent(
            now,
            EventKind.PHASE,
            name,
            phase=trial.phase.value,
            attempt=trial.attempt,
            cpu=trial.cpu,
            **_on(trial.nodes),
        )
        events.append(replace(state, reason=reason if told else None))
    elif before.cpu != trial.cpu:
        events.append(TimelineEvent(now, EventKind.RESIZE, name, cpu=trial.cpu, reason=reason, **_on(trial.nodes)))
    if trial.moving_to is not None and (before is None or before.destination != trial.destination):
        events.append(TimelineEvent(now, EventKind.MOVE, name, reason=reason, **_on(trial.destination)))
    if trial.progress is not None and (before is None or before.progress is not trial.progress):
        report, known = trial.progress, before.progress.steps_total if before and before.progress else None
        total = report.steps_total if report.steps_total != known else None
        also = {metric: value for metric, value in report.also if isfinite(value)}
        came = TimelineEvent(now, EventKind.REPORT, name, value=report.latest, step=report.step, steps_total=total)
        events.append(replace(came, also=also or None))
    return events
