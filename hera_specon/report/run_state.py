"""A run on this machine as far as its folder tells, for ``specon status``."""

from collections.abc import Sequence
from pathlib import Path

from controllers.core.model import (
    Assessment,
    Category,
    Direction,
    NodeName,
    Phase,
    Progress,
    Snapshot,
    Trial,
    TrialId,
)
from controllers.record.timeline import EventKind, TimelineEvent, read_timeline
from hera_specon.display.state import SweepState
from hera_specon.report.record import PolicyRun, load_run, parts_of

Events = Sequence[TimelineEvent]


def run_states(folder: Path) -> list[SweepState]:
    """Return how the sweep stands under each policy that it was run under so far.

    Raises:
        BrokenRunError: The folder lacks something or holds something that cannot be read.
    """
    record = load_run(folder)
    name = str(record.about.get("name") or folder.name)
    return [_state(name, part, run) for part, run in zip(parts_of(folder), record.runs, strict=True)]


def _state(name: str, part: Path, run: PolicyRun) -> SweepState:
    by_trial: dict[str, list[TimelineEvent]] = {}
    for event in read_timeline(part / "timeline.jsonl"):
        by_trial.setdefault(event.trial, []).append(event)
    return SweepState(
        name=name,
        where=f"on this machine, in {part}",
        phase="running or interrupted" if run.result is None else "ended",
        policy=run.policy,
        steered="its own specon run steers it" if run.result is None else "it is over",
        total=len(by_trial),
        snapshot=Snapshot(run.history.end, tuple(_trial(trial, by_trial[trial]) for trial in sorted(by_trial)), ()),
        assessments={TrialId(trial): _assessment(events) for trial, events in by_trial.items()},
        reasons={TrialId(trial): _reason(events) for trial, events in by_trial.items()},
        over=run.result is not None,
    )


def _trial(name: str, events: Events) -> Trial:
    newest = _last(events, EventKind.PHASE)
    phase = Phase(newest.phase or Phase.PENDING)
    shares = [event.cpu for event in events if event.cpu is not None] or [0.0]
    report = _last(events, EventKind.REPORT)
    value = report.value
    return Trial(
        id=TrialId(name),
        phase=phase,
        cpu=shares[-1],
        base_cpu=shares[0],
        memory=0.0,
        direction=Direction.MINIMIZE,
        submitted_at=events[0].at,
        nodes=(NodeName(newest.node),) if newest.node and phase is not Phase.PENDING else (),
        attempt=newest.attempt or 0,
        moves=sum(event.kind is EventKind.MOVE for event in events),
        progress=None if value is None else Progress(value, value, value, report.step or 0, report.at),
    )


def _assessment(events: Events) -> Assessment:
    judged = _last(events, EventKind.CATEGORY)
    category = Category(judged.category) if judged.category else None
    return Assessment(category, judged.value, _last(events, EventKind.OUTLOOK).reason or "")


def _reason(events: Events) -> str:
    acted = (event.reason for event in reversed(events) if event.kind is not EventKind.OUTLOOK)
    return next((reason for reason in acted if reason), "")


def _last(events: Events, kind: EventKind) -> TimelineEvent:
    """Return the newest event of ``kind``, one that tells nothing where there is none."""
    return next((event for event in reversed(events) if event.kind is kind), TimelineEvent(0.0, kind, ""))
