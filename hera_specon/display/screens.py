"""What a sweep shows while it runs: tables redrawn in place, or plain lines for logs and pipes."""

import math
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Self

from rich.console import Console, Group
from rich.live import Live
from rich.markup import escape
from rich.panel import Panel
from rich.text import Text

from controllers.core.actions import Assessment
from controllers.core.forecast import EndRange, Forecast
from controllers.core.model import Category, Phase, Snapshot, TrialId
from controllers.core.ports import Observer
from controllers.core.results import RunResult
from hera_specon import formatting
from hera_specon.display.boards import (
    best_lines,
    headline,
    nodes_board,
    taken_by_others,
    trials_board,
    when_it_ends,
)
from hera_specon.sweep_state import TrialCounts, node_rows, tally, trial_outcome, trial_rows

DRAWN_EVERY = 2.0
"""Seconds of the sweep between two drawings: each takes some hundredths of a second of the loop's time."""
DRAWN_SOONER = 0.5
"""The same where a trial has begun, moved or ended since."""
WIDE = 110
"""Columns from which a terminal can hold the whole table."""
LINES_BESIDE_TRIALS = 10
"""Lines that the frame, the headline and the nodes take from the trials' table."""


class LiveScreen:
    """A ``controllers.local_run.services.Screen`` that redraws in place; a context manager.

    Args:
        console: where to.
        also: another observer of the same sweep.
        page: begins a page about the run in a folder, and returns what to tell people of it.
    """

    def __init__(
        self, console: Console, also: Observer | None = None, page: Callable[[Path], str] | None = None
    ) -> None:
        self._console = console
        self._also = also
        self._page = page
        self._live = Live(console=console, auto_refresh=False, transient=True)
        self._title = ""
        self._trials = 0
        self._forecast: Forecast | None = None
        self._drawn_at = -math.inf
        self._counts: TrialCounts | None = None

    def __enter__(self) -> Self:
        """Start drawing."""
        self._live.start()
        return self

    def __exit__(self, *_: object) -> None:
        """Stop drawing and leave the terminal as it was."""
        self._live.stop()

    def say(self, text: str) -> None:
        """Show a message above the view."""
        self._console.print(escape(formatting.printable_lines(text)), highlight=False)

    def locate(self, folder: Path) -> None:
        """Say where a page about the run is, if there is to be one."""
        if self._page is not None:
            # An address that is broken into two lines can be neither clicked nor copied.
            told = escape(formatting.printable_lines(self._page(folder)))
            self._console.print(told, highlight=False, soft_wrap=True)

    def begin(self, policy: str, trials: int, position: int, of: int) -> None:
        """Start the view of the sweep under one more policy."""
        self._title = f"{policy} ({position} of {of})" if of > 1 else policy
        self._trials, self._forecast, self._drawn_at = trials, None, -math.inf

    def foresee(self, forecast: Forecast) -> None:
        """Show from now on when trials and sweep will end."""
        self._forecast = forecast

    def observe(
        self, snapshot: Snapshot, assessments: Mapping[TrialId, Assessment], reasons: Mapping[TrialId, str]
    ) -> None:
        """Redraw after a tick; the newest of several that come fast waits for the next."""
        if self._also is not None:
            self._also.observe(snapshot, assessments, reasons)
        counts = tally(snapshot, self._trials)
        pause = DRAWN_EVERY if counts == self._counts else DRAWN_SOONER
        if snapshot.now < self._drawn_at + pause:
            return
        self._drawn_at, self._counts = snapshot.now, counts
        nodes = node_rows(snapshot)
        best = best_lines(snapshot)
        room = max(3, self._console.height - LINES_BESIDE_TRIALS - len(nodes) - len(best))
        rows = trial_rows(snapshot, assessments, reasons, self._forecast, room)
        body = Group(
            headline(counts, snapshot.now, _left(self._forecast, snapshot.now), taken_by_others(snapshot)),
            *(Text(line, no_wrap=True) for line in best),
            trials_board(rows, len(snapshot.trials) - len(rows), wide=self._console.width >= WIDE),
            nodes_board(nodes),
        )
        self._live.update(Panel(body, title=escape(self._title), title_align="left", border_style="dim"), refresh=True)

    def end(self, result: RunResult) -> None:
        """Say how the sweep went and clear the view."""
        self._live.update("")
        self.say(ended_line(result))


def _left(forecast: Forecast | None, now: float) -> EndRange | None:
    return None if forecast is None or forecast.end is None else forecast.end.left(now)


EVERY = 10.0
"""Seconds of the sweep between two progress lines."""


class PlainScreen:
    """A ``controllers.local_run.services.Screen`` that writes a line now and then; a context manager.

    What changed (a move, a trial's end) is told at once, progress every ``EVERY`` seconds.

    Args:
        write: takes a line.
        also: another observer of the same sweep.
        page: as of ``LiveScreen``.
    """

    def __init__(
        self, write: Callable[[str], None], also: Observer | None = None, page: Callable[[Path], str] | None = None
    ) -> None:
        self._also = also
        self._page = page
        self._write: Callable[[str], None] = lambda text: write(formatting.printable_lines(text))
        self._trials = 0
        self._forecast: Forecast | None = None
        self._phases: dict[TrialId, Phase] = {}
        self._due = 0.0

    def __enter__(self) -> Self:
        """Do nothing: lines need no beginning."""
        return self

    def __exit__(self, *_: object) -> None:
        """Do nothing: lines need no end."""

    def say(self, text: str) -> None:
        """Write a message."""
        self._write(text)

    def locate(self, folder: Path) -> None:
        """Say where a page about the run is, if there is to be one."""
        if self._page is not None:
            self.say(self._page(folder))

    def begin(self, policy: str, trials: int, position: int, of: int) -> None:
        """Name the policy whose turn it is."""
        self._trials, self._forecast, self._phases, self._due = trials, None, {}, 0.0
        turn = f" ({position} of {of})" if of > 1 else ""
        self._write(f"policy {policy}{turn}: {trials} trials")

    def foresee(self, forecast: Forecast) -> None:
        """Tell from now on when the sweep will end."""
        self._forecast = forecast

    def observe(
        self, snapshot: Snapshot, assessments: Mapping[TrialId, Assessment], reasons: Mapping[TrialId, str]
    ) -> None:
        """Tell what changed, and progress when it is due."""
        if self._also is not None:
            self._also.observe(snapshot, assessments, reasons)
        for line in changes(self._phases, snapshot, reasons):
            self._write(line)
        self._phases = {trial.id: trial.phase for trial in snapshot.trials}
        if snapshot.now >= self._due:
            self._due = snapshot.now + EVERY
            left = _left(self._forecast, snapshot.now)
            self._write(progress_line(snapshot, assessments, self._trials, left))

    def end(self, result: RunResult) -> None:
        """Say how the sweep went."""
        self._write(ended_line(result))


def changes(before: Mapping[TrialId, Phase], snapshot: Snapshot, reasons: Mapping[TrialId, str]) -> list[str]:
    """Return a line for each trial that began to move or to be suspended, or ended, since ``before``."""
    lines = []
    for trial in snapshot.trials:
        if trial.phase is before.get(trial.id):
            continue
        name, why = formatting.short_id(trial.id), f": {reasons[trial.id]}" if reasons.get(trial.id) else ""
        if trial.phase is Phase.MOVING:
            there = f"{formatting.places(trial.nodes)} to {formatting.places(trial.destination)}"
            told = f"{name} moves from {there}{why}"
        elif trial.phase is Phase.SUSPENDING:
            told = f"{name} is being suspended{why}"  # in its last step it ends instead
        elif trial.phase is Phase.STOPPED:
            told = f"{name} stopped{why}"
        elif trial.phase.ended:
            told = f"{name} {trial_outcome(trial)}"
        else:
            continue
        lines.append(f"[{formatting.seconds(snapshot.now)}] {told}")
    return lines


def progress_line(
    snapshot: Snapshot, assessments: Mapping[TrialId, Assessment], trials: int, left: EndRange | None
) -> str:
    """Return one line on the whole sweep."""
    count = tally(snapshot, trials)
    parts = [f"{count.ended}/{count.total} trials ended", f"{count.running} running"]
    parts += [f"{count.moving} moving"] if count.moving else []
    parts += [f"{count.suspended} suspended"] if count.suspended else []
    parts += [f"{count.failed} FAILED"] if count.failed else []
    running = {trial.id for trial in snapshot.trials if trial.phase is Phase.RUNNING}
    categories = [assessments[trial].category for trial in running if trial in assessments]
    parts += [f"{n} {category.value}" for category in Category if (n := categories.count(category))]
    told = [", ".join(parts), *best_lines(snapshot)] + ([soon] if (soon := when_it_ends(count, left)) else [])
    told += [others] if (others := taken_by_others(snapshot)) else []
    return f"[{formatting.seconds(snapshot.now)}] {'; '.join(told)}"


def ended_line(result: RunResult) -> str:
    """Return one line on how a sweep went."""
    failed = sum(not trial.succeeded for trial in result.trials)
    early = sum(bool(trial.stopped) for trial in result.trials)
    told = f", {early} of {len(result.trials)} trials ended early" if early else ""
    diverged = sum(trial.diverged for trial in result.trials)
    told += f", {diverged} of {len(result.trials)} trials diverged" if diverged else ""
    trouble = f", {failed} of {len(result.trials)} trials FAILED" if failed else ""
    makespan, mean = formatting.seconds(result.makespan_s), formatting.seconds(result.mean_completion_s)
    return f"{result.policy}: makespan {makespan}, mean completion {mean}{told}{trouble}"
