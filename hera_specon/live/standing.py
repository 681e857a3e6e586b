"""How a sweep stands, as the page shows it above the report: counts, nodes, trials with what can be asked, actions."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from controllers.core.model import Ask, NodeName
from controllers.record.timeline import EventKind, TimelineEvent
from hera_specon import formatting
from hera_specon.report.environment import environment
from hera_specon.sweep_state import SweepState, TrialRow, best_so_far, front_lines
from mlflow_hooks.foreign_json import parsed

MOST_TRIALS: Final = 1000
"""Trials that are listed; those at work come first."""
MOST_ACTIONS: Final = 30
_USED_S: Final = 6.0
"""Seconds for which a reading of the cores in use holds."""
_TAIL: Final = 2**16
"""Bytes at the end of the record of actions that are read."""


@dataclass(frozen=True, slots=True)
class NodeStanding:
    """A node: the trials on it, the cores that they hold, and those in use; None where nobody told."""

    name: str
    trials: tuple[str, ...]
    held: float
    used: float | None


@dataclass(frozen=True, slots=True)
class TrialLine:
    """A trial, what its owner asked of it by now, and what can be asked."""

    row: TrialRow
    asked: str
    can: tuple[str, ...]

    @property
    def name(self) -> str:
        """What people call it."""
        return formatting.short_id(self.row.id)


@dataclass(frozen=True, slots=True)
class ActionLine:
    """What a policy wanted: when (seconds of the sweep), what, with which trial, why, and what became of it."""

    at: float
    kind: str
    trial: str
    reason: str
    outcome: str


@dataclass(frozen=True, slots=True)
class SweepStanding:
    """All that the template shows; ``idle`` counts nodes on which nothing runs."""

    state: SweepState
    nodes: tuple[NodeStanding, ...]
    idle: int
    trials: tuple[TrialLine, ...]
    actions: tuple[ActionLine, ...] = ()
    policies: tuple[str, ...] = ()
    may_ask: bool = False
    report: str = ""

    def html(self) -> str:
        """Return it as HTML."""
        state = self.state
        best = [
            (formatting.figure(value), formatting.short_id(trial.id), formatting.params(dict(trial.parameters)))
            for trial, value in best_so_far(state.snapshot)
        ]
        left = None if state.left is None else formatting.span(state.left.low, state.left.likely, state.left.high)
        return (
            environment("hera_specon.live")
            .get_template("standing.html.j2")
            .render(it=self, state=state, count=state.counted, best=best, fronts=front_lines(state.snapshot), left=left)
        )


def trial_lines(state: SweepState, asks: Mapping[str, Ask], *, may_ask: bool) -> tuple[TrialLine, ...]:
    """Return a line for each trial, those at work first."""
    lines = []
    for row in state.rows[:MOST_TRIALS]:
        asked = asks.get(row.id)
        ended = row.phase.ended or state.over or asked is Ask.STOP
        first = "resume" if asked is Ask.PAUSE else "pause"
        lines.append(TrialLine(row, str(asked or ""), (first, "stop") if may_ask and not ended else ()))
    return tuple(lines)


def node_lines(state: SweepState, events: Sequence[TimelineEvent]) -> tuple[NodeStanding, ...]:
    """Return a line for each node that has or had a trial; the cores in use come from the newest ``events``."""
    used = _used(events)
    live = [trial for trial in state.snapshot.trials if trial.live]
    names = {place for event in events for place in event.places} | {node for trial in live for node in trial.nodes}
    lines = []
    for name in sorted(names, key=formatting.natural):
        there = [trial for trial in live if name in trial.nodes]
        held = sum(trial.cpu * trial.nodes.count(NodeName(name)) for trial in there)
        trials = tuple(formatting.short_id(trial.id) for trial in there)
        lines.append(NodeStanding(name, trials, held, used.get(name)))
    return tuple(lines)


def _used(events: Sequence[TimelineEvent]) -> dict[str, float]:
    """Return the cores that trials used of each node of late."""
    newest: dict[tuple[str, str], float] = {}
    since = events[-1].at - _USED_S if events else 0.0
    for event in reversed(events):
        if event.at < since:
            break
        if event.kind is EventKind.USAGE and event.value is not None:
            for place in dict.fromkeys(event.places):
                part = event.value * event.places.count(place) / len(event.places)
                newest.setdefault((place, event.trial), part)
    used: dict[str, float] = {}
    for (place, _), cores in newest.items():
        used[place] = used.get(place, 0.0) + cores
    return used


def newest_actions(file: Path) -> tuple[ActionLine, ...]:
    """Return what was wanted last, the newest first; lines that make no sense are passed over."""
    try:
        with file.open("rb") as record:
            record.seek(max(0, file.stat().st_size - _TAIL))
            lines = record.read(_TAIL).decode(errors="replace").splitlines()
    except OSError:
        return ()
    found = (_action(line) for line in reversed(lines))
    return tuple([action for action in found if action is not None][:MOST_ACTIONS])


def _action(line: str) -> ActionLine | None:
    try:
        told = parsed(line)
        outcome = " ".join(str(told[name]) for name in ("outcome", "detail") if told.get(name))
        trial = formatting.short_id(str(told.get("trial", "")))
        return ActionLine(float(told["at"]), str(told["kind"]), trial, str(told.get("reason") or ""), outcome)
    except (ValueError, KeyError, TypeError, AttributeError):
        return None
