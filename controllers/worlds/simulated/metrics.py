"""Progress of simulated trials, as an MLflow would show it."""

import math
from collections.abc import Mapping

from controllers.core.model import Sample, TrialId
from controllers.worlds.simulated.world import SimulatedWorld


class SimulatedMetrics:
    """The newest report of each trial that is ``delay_s`` seconds old at least."""

    def __init__(self, world: SimulatedWorld, delay_s: float) -> None:
        self._world = world
        self._delay_s = delay_s
        self._samples: dict[TrialId, Sample] = {}
        self._logs = {run.spec.id: run.log for run in world.runs if run.spec.reports}

    def poll(self) -> Mapping[TrialId, Sample]:
        """Return the newest sample of each trial that has one."""
        until = self._world.now - self._delay_s
        due = [(trial, log) for trial, log in self._logs.items() if log.next_at <= until]
        for trial, log in due:
            sample = log.read(until)
            if sample is not None:
                self._samples[trial] = sample
            if log.exhausted:
                del self._logs[trial]
        return self._samples

    def final(self) -> Mapping[TrialId, Sample]:
        """Return the newest sample that each trial logged, however new."""
        last = {run.spec.id: run.log.read(math.inf) for run in self._world.runs}
        return {trial: sample for trial, sample in last.items() if sample is not None}
