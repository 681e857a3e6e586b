"""Trials that run and say nothing: they may hang, or log under no name that anybody knows of. Pure."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

from controllers.core.actions import Assessment
from controllers.core.model import Phase, Snapshot, Trial, TrialId

SILENT_S: Final = 600.0
"""A trial is silent after so many seconds without a report, at least."""
GAPS: Final = 10.0
"""It is silent after so many times the longest time between two of its own reports, if that is longer."""


@dataclass(slots=True)
class _Heard:
    """When a trial was heard last, with the attempt and the report, and its longest time between two, in seconds."""

    at: float
    attempt: int
    report: float | None
    longest: float = 0.0
    told: bool = False


class SilenceWatch:
    """An observer that tells of a trial which runs ten minutes, and ten times as long as ever before, without a report.

    Args:
        tell: called with the trial and a line for people, once for each silence.
    """

    def __init__(self, tell: Callable[[TrialId, str], object]) -> None:
        self._tell = tell
        self._heard: dict[TrialId, _Heard] = {}

    def observe(
        self, snapshot: Snapshot, assessments: Mapping[TrialId, Assessment], reasons: Mapping[TrialId, str]
    ) -> None:
        """Listen to each trial that runs."""
        del assessments, reasons
        for trial in snapshot.unended:
            if trial.phase is not Phase.RUNNING:
                continue
            heard = self._listen(snapshot.now, trial)
            silent = snapshot.now - heard.at
            if not heard.told and silent > max(SILENT_S, GAPS * heard.longest):
                heard.told = True
                last = "nothing yet" if trial.progress is None else f"step {trial.progress.step} last"
                line = (
                    f"trial {trial.id} has run for {silent / 60:.0f} min without a report of its objective ({last}): "
                    "it may hang, or log its objective under another name; its log may tell, and `specon stop` ends it"
                )
                self._tell(trial.id, line)

    def _listen(self, now: float, trial: Trial) -> _Heard:
        report = None if trial.progress is None else trial.progress.at
        heard = self._heard.get(trial.id)
        if heard is None or heard.attempt != trial.attempt:
            # How long reports take is known from the attempts before: a new one has to start first.
            longest = 0.0 if heard is None else heard.longest
            heard = self._heard[trial.id] = _Heard(now, trial.attempt, report, longest)
        elif report != heard.report:
            if heard.report is not None and report is not None:
                heard.longest = max(heard.longest, report - heard.report)
            heard.at, heard.report, heard.told = now, report, False
        return heard
