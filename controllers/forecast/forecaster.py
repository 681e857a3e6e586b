"""Forecasts while a sweep runs, for those who want to be told."""

import logging
import statistics
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from controllers.core.actions import Assessment
from controllers.core.forecast import Forecast
from controllers.core.model import Phase, Snapshot, TrialId
from controllers.core.policy import Policy
from controllers.core.ports import ComingTrial
from controllers.forecast.ranges import PolicyTraits, forecast
from controllers.forecast.supplies import Supplies, supplies_after
from controllers.policies.kit.work_left import SweepMeasurements, measure_sweep

_LOG = logging.getLogger(__name__)
LOOK_S: Final = 1.0
"""Seconds between two looks at the reports; a large sweep takes longer to look at."""
FORECAST_S: Final = 5.0
TRIALS_A_LOOK: Final = 1000.0
"""For so many trials, a second passes between two looks at the reports."""
TRIALS_A_FORECAST: Final = 20.0
"""For so many trials, those to come included, a second passes between two forecasts."""
MOST_LEAVING_S: Final = 60.0
"""A trial that takes longer to leave went on training after the last report that is known."""
MOST_TRIALS: Final = 5000
"""A larger sweep gets no forecast: its controller would have to wait for it for seconds."""


class Forecaster:
    """An observer that forecasts every few seconds; it costs a small part of a core, however large the sweep is.

    Args:
        policy: What steers the sweep.
        to_come: Tells the trials that have not been submitted.
        told: Gets each forecast.
    """

    def __init__(
        self,
        policy: Policy[Any],
        to_come: Callable[[], Sequence[ComingTrial]],
        told: Sequence[Callable[[Forecast], None]],
    ) -> None:
        self._steering = PolicyTraits.by(policy)
        self._to_come = to_come
        self._told = told
        self._measured = SweepMeasurements()
        self._supplies = Supplies()
        self._unended: frozenset[TrialId] = frozenset()
        self._ended_at: dict[TrialId, float] = {}
        self._look_at = self._forecast_at = 0.0
        self._failed = False

    def observe(
        self, snapshot: Snapshot, assessments: Mapping[TrialId, Assessment], reasons: Mapping[TrialId, str]
    ) -> None:
        """Take in what the reports tell, and forecast where that is due."""
        del assessments, reasons
        if snapshot.now < self._look_at:
            return
        self._look_at = snapshot.now + max(LOOK_S, len(snapshot.unended) / TRIALS_A_LOOK)
        for trial in snapshot.trials:
            # When a trial ended that had done so before the first look, nobody here knows.
            if trial.phase is Phase.SUCCEEDED and trial.id in self._unended:
                self._ended_at[trial.id] = snapshot.now
        self._unended = frozenset(trial.id for trial in snapshot.unended)
        try:
            self._measured = measure_sweep(snapshot, self._measured)
            self._supplies = supplies_after(snapshot, self._supplies)
            newest = self._forecast(snapshot) if snapshot.now >= self._forecast_at or not snapshot.unended else None
        except Exception:  # noqa: BLE001 - whatever reports hold, the sweep is steered on
            if not self._failed:
                _LOG.exception("no forecast of this sweep")
            self._failed = True
            return
        if newest is not None:
            for tell in self._told:
                tell(newest)

    def _forecast(self, snapshot: Snapshot) -> Forecast:
        self._forecast_at = snapshot.now + FORECAST_S
        to_come = self._to_come()
        trials = len(snapshot.unended) + len(to_come)
        self._forecast_at = snapshot.now + max(FORECAST_S, trials / TRIALS_A_FORECAST)
        if trials > MOST_TRIALS:
            return Forecast(snapshot.now)
        leaving_s = self._leaving_s(snapshot)
        return forecast(snapshot, self._measured, to_come, self._steering, leaving_s, self._supplies)

    def _leaving_s(self, snapshot: Snapshot) -> float:
        """Return the seconds from a trial's last report to its end, on the median; on Argo it is ten or more."""
        seconds = [
            self._ended_at[trial.id] - trial.progress.at
            for trial in snapshot.trials
            if trial.id in self._ended_at and trial.progress is not None
        ]
        return min(MOST_LEAVING_S, max(0.0, statistics.median(seconds))) if seconds else 0.0
