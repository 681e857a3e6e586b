"""Cores that trials used, told from what they report themselves: no other source is needed in a cluster."""

from collections.abc import Mapping

from controllers.model import Assessment, Snapshot, TrialId


class ReportedUsage:
    """An observer that keeps, for each trial, its mean use between the two newest reports of its CPU time."""

    def __init__(self) -> None:
        self._before: dict[TrialId, tuple[float, float]] = {}
        self._news: dict[TrialId, float] = {}

    def observe(
        self, snapshot: Snapshot, assessments: Mapping[TrialId, Assessment], reasons: Mapping[TrialId, str]
    ) -> None:
        """Take note of the newest reports."""
        del assessments, reasons
        for trial in snapshot.trials:
            if trial.progress is not None and trial.progress.cpu_seconds is not None:
                self._take(trial.id, trial.progress.at, trial.progress.cpu_seconds)

    def cores_used(self) -> Mapping[TrialId, float]:
        """Return the cores of each trial that has reported since the last call."""
        news, self._news = self._news, {}
        return news

    def _take(self, trial: TrialId, at: float, cpu_seconds: float) -> None:
        before = self._before.get(trial)
        if before is not None and at <= before[0]:
            return
        self._before[trial] = (at, cpu_seconds)
        if before is not None and cpu_seconds >= before[1]:
            self._news[trial] = (cpu_seconds - before[1]) / (at - before[0])
