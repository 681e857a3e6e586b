"""The live view in a terminal: trials, nodes, and when the sweep will probably end."""

from collections.abc import Mapping
from types import TracebackType
from typing import Self

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.markup import escape
from rich.panel import Panel

from controllers.core.model import Assessment, Snapshot, TrialId
from controllers.core.results import RunResult
from hera_specon.display.boards import headline, nodes_board, trials_board
from hera_specon.display.eta import Pace, seconds_left
from hera_specon.display.plain import ended_line
from hera_specon.display.rows import node_rows, tally, trial_rows

REFRESHES_PER_SECOND = 4
WIDE = 110
"""Columns from which a terminal can hold the whole table."""
LINES_BESIDE_TRIALS = 10
"""Lines that the frame, the headline and the nodes take from the trials' table."""


class LiveScreen:
    """A ``controllers.local_run.sweep.Screen`` that redraws in place; a context manager."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._live = Live(console=console, refresh_per_second=REFRESHES_PER_SECOND, transient=True)
        self._title = ""
        self._trials = 0
        self._pace = Pace()

    def __enter__(self) -> Self:
        """Start drawing."""
        self._live.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Stop drawing and leave the terminal as it was."""
        self._live.stop()

    def say(self, text: str) -> None:
        """Show a message above the view."""
        self._console.print(escape(text), highlight=False)

    def begin(self, policy: str, trials: int, position: int, of: int) -> None:
        """Start the view of the sweep under one more policy."""
        self._title = f"{policy} ({position} of {of})" if of > 1 else policy
        self._trials = trials
        self._pace = Pace()

    def observe(
        self, snapshot: Snapshot, assessments: Mapping[TrialId, Assessment], reasons: Mapping[TrialId, str]
    ) -> None:
        """Redraw after a tick."""
        self._pace = self._pace.after(snapshot)
        self._live.update(self._view(snapshot, assessments, reasons))

    def redraw(self) -> None:
        """Draw now, without waiting for the next refresh."""
        self._live.refresh()

    def end(self, result: RunResult) -> None:
        """Say how the sweep went and clear the view."""
        self._live.update("")
        self.say(ended_line(result))

    def _view(
        self, snapshot: Snapshot, assessments: Mapping[TrialId, Assessment], reasons: Mapping[TrialId, str]
    ) -> RenderableType:
        nodes = node_rows(snapshot)
        room = max(3, self._console.height - LINES_BESIDE_TRIALS - len(nodes))
        left = seconds_left(self._pace, snapshot)
        body = Group(
            headline(tally(snapshot, self._trials), snapshot.now, left),
            trials_board(trial_rows(snapshot, assessments, reasons), room, wide=self._console.width >= WIDE),
            nodes_board(nodes),
        )
        return Panel(body, title=escape(self._title), title_align="left", border_style="dim")
