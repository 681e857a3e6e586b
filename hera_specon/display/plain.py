"""Progress as plain lines, for logs and pipes."""

from collections.abc import Callable, Mapping
from types import TracebackType
from typing import Self

from controllers.core.model import Assessment, Category, Phase, Snapshot, TrialId
from controllers.core.results import RunResult
from hera_specon.display import words
from hera_specon.display.eta import Pace, seconds_left
from hera_specon.display.rows import tally

EVERY = 10.0
"""Seconds of the sweep between two progress lines."""


class PlainScreen:
    """A ``controllers.local_run.sweep.Screen`` that writes a line now and then; a context manager.

    What changed (a move, a trial's end) is told at once, progress every ``EVERY`` seconds.
    """

    def __init__(self, write: Callable[[str], None]) -> None:
        self._write = write
        self._trials = 0
        self._pace = Pace()
        self._phases: dict[TrialId, Phase] = {}
        self._due = 0.0

    def __enter__(self) -> Self:
        """Do nothing: lines need no beginning."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Do nothing: lines need no end."""

    def say(self, text: str) -> None:
        """Write a message."""
        self._write(text)

    def begin(self, policy: str, trials: int, position: int, of: int) -> None:
        """Name the policy whose turn it is."""
        self._trials, self._pace, self._phases, self._due = trials, Pace(), {}, 0.0
        turn = f" ({position} of {of})" if of > 1 else ""
        self._write(f"policy {policy}{turn}: {trials} trials")

    def observe(
        self, snapshot: Snapshot, assessments: Mapping[TrialId, Assessment], reasons: Mapping[TrialId, str]
    ) -> None:
        """Tell what changed, and progress when it is due."""
        self._pace = self._pace.after(snapshot)
        for line in changes(self._phases, snapshot, reasons):
            self._write(line)
        self._phases = {trial.id: trial.phase for trial in snapshot.trials}
        if snapshot.now >= self._due:
            self._due = snapshot.now + EVERY
            self._write(progress_line(snapshot, assessments, self._trials, seconds_left(self._pace, snapshot)))

    def end(self, result: RunResult) -> None:
        """Say how the sweep went."""
        self._write(ended_line(result))


def changes(before: Mapping[TrialId, Phase], snapshot: Snapshot, reasons: Mapping[TrialId, str]) -> list[str]:
    """Return a line for each trial that began to move, or ended, since ``before``."""
    lines = []
    for trial in snapshot.trials:
        if trial.phase is before.get(trial.id):
            continue
        head = f"[{words.seconds(snapshot.now)}] {words.short_id(trial.id)}"
        if trial.phase is Phase.MOVING:
            why = f": {reasons[trial.id]}" if reasons.get(trial.id) else ""
            lines.append(
                f"[{words.seconds(snapshot.now)}] {trial.id} moves from {trial.node} to {trial.moving_to}{why}"
            )
        elif trial.phase.ended:
            lines.append(f"{head} {trial.phase.value}")
    return lines


def progress_line(
    snapshot: Snapshot, assessments: Mapping[TrialId, Assessment], trials: int, left: float | None
) -> str:
    """Return one line on the whole sweep."""
    count = tally(snapshot, trials)
    parts = [f"{count.ended}/{count.total} trials ended", f"{count.running} running"]
    parts += [f"{count.moving} moving"] if count.moving else []
    parts += [f"{count.failed} FAILED"] if count.failed else []
    running = {trial.id for trial in snapshot.trials if trial.phase is Phase.RUNNING}
    categories = [assessments[trial].category for trial in running if trial in assessments]
    parts += [f"{n} {category.value}" for category in Category if (n := categories.count(category))]
    soon = f"about {words.seconds(left)} left" if left is not None else "time left not known yet"
    return f"[{words.seconds(snapshot.now)}] {', '.join(parts)}; {soon}"


def ended_line(result: RunResult) -> str:
    """Return one line on how a sweep went."""
    failed = sum(not trial.succeeded for trial in result.trials)
    trouble = f", {failed} of {len(result.trials)} trials FAILED" if failed else ""
    makespan, mean = words.seconds(result.makespan_s), words.seconds(result.mean_completion_s)
    return f"{result.policy}: makespan {makespan}, mean completion {mean}{trouble}"
