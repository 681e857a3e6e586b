"""Forecasts of simulated sweeps, set beside what came true."""

import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from controllers.core.actions import Assessment, Decision, Place
from controllers.core.forecast import EndRange
from controllers.core.model import Snapshot, TrialId
from controllers.core.ports import ComingTrial
from controllers.forecast.ranges import PolicyTraits, forecast
from controllers.forecast.supplies import Supplies, supplies_after
from controllers.lab.simulation.evaluation import first_nodes
from controllers.lab.simulation.experiments.experiment import Setup
from controllers.lab.simulation.run import simulate
from controllers.policies.kit.work_left import SweepMeasurements, measure_sweep
from controllers.policies.registry import parse_policy
from controllers.policies.wrappers.wrapper import AroundOne
from controllers.worlds.simulated.scenario import Scenario

PARTS: Final = (0.1, 0.25, 0.5, 0.75)
"""Of the makespan, when forecasts are judged."""
LOOK_S: Final = 2.0


@dataclass(frozen=True, slots=True)
class Judged:
    """A forecast after ``part`` of the makespan: whether what came true was in each range, and how wide that was.

    ``trials`` are those that had been submitted and had not ended. A width is a part of the time that was really left.
    Without a range for the sweep's end, ``end`` is None. Errors are how far the likely ends lay from what came true, as
    such a part, too.
    """

    part: float
    end: tuple[bool, float] | None
    trials: tuple[tuple[bool, float], ...]
    end_error: float | None = None
    trial_errors: tuple[float, ...] = ()


def judge(experiment: Setup, policy: str, seed: int, parts: Sequence[float] = PARTS) -> list[Judged]:
    """Run a seed of ``experiment`` under ``policy``, and judge what was foreseen after each of ``parts``."""
    workload = experiment.workload(seed)
    steers = experiment.parameterised(parse_policy(policy))
    pinned = {} if Place in steers.needs else first_nodes(experiment, workload, seed)
    looks = _Looks()
    run = simulate(Scenario(workload, experiment.costs, seed, pinned), _Awake(policy=steers), (looks,))
    ends = {TrialId(trial.id): trial.completed_s for trial in run.result.trials}
    to_come = [
        ComingTrial(trial.id, trial.submitted_at, trial.cpu, trial.memory, trial.devices) for trial in workload.trials
    ]
    last = max(ends.values())
    judged = []
    for part in parts:
        snapshot, known, supplies = next(look for look in reversed(looks.kept) if look[0].now <= part * last)
        told = forecast(snapshot, known, to_come, PolicyTraits.by(steers), supplies=supplies)
        end = None if told.end is None else _against(told.end, last, snapshot.now)
        trials = tuple(_against(of_trial, ends[name], snapshot.now) for name, of_trial in told.trials.items())
        errors = tuple(_error(of_trial, ends[name], snapshot.now) for name, of_trial in told.trials.items())
        missed = None if told.end is None else _error(told.end, last, snapshot.now)
        judged.append(Judged(part, end, trials, missed, errors))
    return judged


def _against(told: EndRange, came_true: float, now: float) -> tuple[bool, float]:
    return told.holds(came_true), (told.high - told.low) / max(1.0, came_true - now)


def _error(told: EndRange, came_true: float, now: float) -> float:
    return abs(told.likely - came_true) / max(1.0, came_true - now)


@dataclass(frozen=True, slots=True)
class Coverage:
    """The part of ranges that held what came true, and their median width; of ``told`` of them."""

    told: int
    held: float
    width: float


def coverage(ranges: Iterable[tuple[bool, float]]) -> Coverage | None:
    """Return the coverage of ``ranges``, None where there are none."""
    pairs = list(ranges)
    if not pairs:
        return None
    return Coverage(len(pairs), statistics.fmean(held for held, _ in pairs), statistics.median(w for _, w in pairs))


class _Looks:
    """An observer that keeps what a forecaster would have known at each look."""

    def __init__(self) -> None:
        self._measured, self._supplies = SweepMeasurements(), Supplies()
        self.kept: list[tuple[Snapshot, SweepMeasurements, Supplies]] = []

    def observe(
        self, snapshot: Snapshot, assessments: Mapping[TrialId, Assessment], reasons: Mapping[TrialId, str]
    ) -> None:
        del assessments, reasons
        self._measured = measure_sweep(snapshot, self._measured)
        self._supplies = supplies_after(snapshot, self._supplies)
        self.kept.append((snapshot, self._measured, self._supplies))


class _Awake(AroundOne):
    """Wakes as often as a world's heartbeat does for real: in virtual time nothing else brings a look at reports."""

    def decide(self, snapshot: Snapshot, state: Any) -> Decision[Any]:  # noqa: ANN401 - each policy has its own state
        decision = self.policy.decide(snapshot, state)
        due = snapshot.now + LOOK_S
        return replace(decision, wake_at=due if decision.wake_at is None else min(due, decision.wake_at))
