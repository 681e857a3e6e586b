"""What a finished sweep came to, and how two of them compare. Pure; times in seconds."""

import math
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields
from operator import itemgetter
from typing import Any

from controllers.core.aims import NO_AIMS, Aims, pareto_front, read_aims
from controllers.core.errors import SpeconError
from controllers.core.model import Direction
from controllers.core.promises import promises_told
from controllers.core.stop_rules import why_ended

_MOST_TOLD = 5


class ComparisonError(SpeconError):
    """Runs that cannot be compared: they do not have the same trials."""


@dataclass(frozen=True, slots=True)
class TrialResult:
    """How one trial went. Its JSON, in ``result.json``, has the same names."""

    id: str
    """Name of the trial, the same in every run of its sweep (``World.short``)."""
    submitted_s: float
    """When the trial was submitted, in seconds of the sweep's clock."""
    completed_s: float
    """When the trial ended, in seconds of the sweep's clock."""
    node: str
    """Node of the first worker of the last attempt; empty where there was no attempt."""
    moves: int
    """Completed moves from node to node."""
    attempts: int
    """How many attempts there were."""
    final_metric: float | None
    """Newest value of ``objective``, which may be NaN or infinite; None where none was logged."""
    succeeded: bool = True
    """The trial trained to its end, or was stopped by a policy, its owner or a rule of its sweep."""
    resizes: int = 0
    """How often its share was changed while it ran."""
    first_node: str = ""
    """Node of the first worker of the first attempt; empty where there was no attempt."""
    params: dict[str, Any] = field(default_factory=dict)
    """Hyperparameters by name, as the trial had them at its end."""
    cpu_seconds: float | None = None
    """CPU seconds of all its attempts from start to end; None where the world does not count them."""
    deadline_s: float | None = None
    """The trial's deadline, in seconds from its own submission; None where it had none."""
    suspensions: int = 0
    """How often it was suspended."""
    stopped: str = ""
    """Why it was ended before its training was through; empty where it was not."""
    objective: str = ""
    """Name of the metric that says how good its model is."""
    direction: str = Direction.MINIMIZE.value
    """Which way the objective improves: ``minimize`` or ``maximize``."""
    sweep: str = ""
    """Name of its sweep."""
    exit_code: int | None = None
    """Exit code of its last attempt; None where the world does not know it."""
    given_up: bool = False
    """It failed twice alike at once, and so was not tried again."""
    scales: int = 0
    """How often it went on with another number of workers."""
    workers: int = 1
    """How many workers it had last."""
    first_nodes: tuple[str, ...] = ()
    """Node of each worker of its first attempt, by rank; empty where the world does not know them."""
    logged_instead: tuple[str, ...] | None = None
    """Names of the metrics that it logged although it never logged its objective; None where it did log that, or where
    it is not known."""
    begun_again: int = 0
    """How many of its attempts began from nothing although an earlier one had trained, where the world counts them."""
    cost: float | None = None
    """What its part of nodes cost, in the currency of their prices; None where no price is known."""
    further_objectives: str = ""
    """The objectives beside the first, as text that ``read_aims`` reads; empty for none."""
    constraints: str = ""
    """The bounds that metrics must keep, as text that ``read_aims`` reads; empty for none."""
    values: dict[str, float] = field(default_factory=dict)
    """Newest finite values of the metrics of ``further_objectives`` and ``constraints``, by name."""
    unlogged: tuple[str, ...] = ()
    """Those of these metrics that the trial is known to have never logged."""
    remark: str = ""
    """What a person should know of ``final_metric`` and ``values``; empty for nothing."""

    @property
    def aims(self) -> Aims:
        """What its sweep wants beside its first objective."""
        try:
            return read_aims(self.further_objectives, self.constraints)
        except ValueError:  # of a file that somebody wrote
            return NO_AIMS

    @property
    def losses(self) -> tuple[float, ...] | None:
        """How bad its model is by each objective, the first one first; None where it is not known by one of them."""
        first, further = self.loss, self.aims.losses(self.values)
        return None if first is None or further is None else (first, *further)

    @property
    def feasible(self) -> bool:
        """Whether its model is known to keep all constraints."""
        violations = self.aims.violations(self.values)
        return violations is not None and all(violation <= 0 for violation in violations)

    @property
    def why_not_counted(self) -> str | None:
        """Why it can be neither the best nor on a front, though it came to an end that is no failure."""
        if self.losses is not None and self.feasible:
            return None
        for metric in self.aims.metrics:
            if metric not in self.values:
                return f"{'never logged' if metric in self.unlogged else 'has no finite value of'} {metric!r}"
        values = ((bound, self.values[bound.metric]) for bound in self.aims.constraints)
        broken = [f"breaks {bound} with {value:.6g}" for bound, value in values if bound.violation(value) > 0]
        return ", ".join(broken) or f"has no finite value of {self.objective!r}"

    @property
    def loss(self) -> float | None:
        """How bad its model is, so that smaller is better; None where it failed, told nothing or diverged."""
        if not self.succeeded or self.final_metric is None or not math.isfinite(self.final_metric):
            return None
        return self.final_metric if self.direction == Direction.MINIMIZE else -self.final_metric

    @property
    def diverged(self) -> bool:
        """Whether it trained to its end, and its objective was NaN or infinite there."""
        told = self.final_metric
        return self.succeeded and not self.stopped and told is not None and not math.isfinite(told)

    @property
    def without_objective(self) -> bool:
        """Whether it trained to its end, and is known to have never logged its objective."""
        return self.succeeded and not self.stopped and self.logged_instead is not None

    @property
    def completion_s(self) -> float:
        """Completion time: from its own submission to its end."""
        return self.completed_s - self.submitted_s

    @property
    def met_deadline(self) -> bool | None:
        """Whether it ended well before its deadline; None where it had none."""
        return None if self.deadline_s is None else self.succeeded and self.completion_s <= self.deadline_s


def told_again(begun_again: Mapping[str, int]) -> list[str]:
    """Return in words which trials began again from nothing; the first few of many.

    Args:
        begun_again: how many attempts of each trial did, by its short id.
    """
    told = [
        f"{trial} began again from nothing {'once' if times == 1 else f'{times} times'}, as far as its steps tell: "
        "what it had logged before does not count"
        for trial, times in begun_again.items()
        if times
    ]
    return told if len(told) <= _MOST_TOLD else [*told[:_MOST_TOLD], f"and {len(told) - _MOST_TOLD} more began again"]


def told_remarks(remarks: Mapping[str, str]) -> list[str]:
    """Return in words what to know of the values of trials, by their short ids; the first few of many."""
    told = [f"{trial}: {remark}" for trial, remark in remarks.items() if remark]
    return told if len(told) <= _MOST_TOLD else [*told[:_MOST_TOLD], f"and {len(told) - _MOST_TOLD} more such trials"]


def told_endings(result: "RunResult") -> list[str]:
    """Return in words which sweeps were ended, why, and how many of their trials had trained to their end."""
    told = []
    for sweep, why in result.endings.items():
        trials = [trial for trial in result.trials if trial.sweep == sweep]
        early = sum(bool(trial.stopped) for trial in trials)
        told.append(
            f"{sweep or 'the sweep'} was ended under {result.policy}: {why}; {early} of its {len(trials)} trials were "
            "cut short or never started"
        )
    return told


@dataclass(frozen=True, slots=True)
class DeadlinesMet:
    """How many trials had a deadline, and how many of these ended well before it."""

    asked: int
    met: int

    @property
    def share(self) -> float:
        """Part of the deadlines that was met, 1 where there was none: the deadline framework's completion rate."""
        return self.met / self.asked if self.asked else 1.0


@dataclass(frozen=True, slots=True)
class RunResult:
    """One sweep under one policy.

    ``idle_cost`` is what stood idle on nodes of its trials, None without prices. ``cores_of_others`` is how many cores
    others had of its nodes on average, as far as its trials lacked them; None where nobody counted.
    """

    policy: str
    trials: tuple[TrialResult, ...]
    interrupted_s: float = 0.0
    idle_cost: float | None = None
    cores_of_others: float | None = None

    @property
    def cost(self) -> float | None:
        """What the whole sweep cost, None where no price is known."""
        return None if self.idle_cost is None else self.idle_cost + sum(trial.cost or 0.0 for trial in self.trials)

    @property
    def makespan_s(self) -> float:
        """Last completion minus first submission."""
        return max(t.completed_s for t in self.trials) - min(t.submitted_s for t in self.trials)

    @property
    def mean_completion_s(self) -> float:
        """Mean completion time."""
        return statistics.fmean(t.completion_s for t in self.trials)

    @property
    def median_completion_s(self) -> float:
        """Median completion time."""
        return statistics.median(t.completion_s for t in self.trials)

    @property
    def deadlines(self) -> DeadlinesMet:
        """The deadlines of its trials."""
        told = [trial.met_deadline for trial in self.trials if trial.met_deadline is not None]
        return DeadlinesMet(len(told), sum(told))

    @property
    def endings(self) -> dict[str, str]:
        """Why sweeps were ended before all of their trials had, by their names."""
        return why_ended((trial.sweep, trial.stopped) for trial in self.trials)

    def ranking(self) -> dict[str, list[TrialResult]]:
        """Return by sweep the trials that have a model, the best first; those that were ended early count too.

        Trials that break a constraint are left out, and so are sweeps of several objectives: see ``fronts``.
        """
        losses: dict[str, list[tuple[float, TrialResult]]] = {}
        for trial in self.trials:
            if (loss := trial.loss) is not None and not trial.aims.further and trial.feasible:
                losses.setdefault(trial.sweep, []).append((loss, trial))
        # Of equals, the one that was submitted first.
        return {sweep: [trial for _, trial in sorted(of, key=itemgetter(0))] for sweep, of in losses.items()}

    def fronts(self) -> dict[str, list[TrialResult]]:
        """Return by sweep of several objectives its Pareto front, the best by the first objective first.

        It has the trials that no other beats: none is as good by all objectives and better by one. Trials that break a
        constraint, or lack a finite value of an objective, are not on it; those that were ended early may be.
        """
        known: dict[tuple[str, str], list[tuple[tuple[float, ...], TrialResult]]] = {}
        for trial in self.trials:
            if trial.aims.further:
                of_sweep = known.setdefault((trial.sweep, trial.further_objectives), [])
                if trial.feasible and (losses := trial.losses) is not None:
                    of_sweep.append((losses, trial))
        fronts: dict[str, list[TrialResult]] = {}
        for (sweep, _), counted in known.items():
            front = [counted[place] for place in pareto_front([losses for losses, _ in counted])]
            fronts.setdefault(sweep, []).extend(trial for _, trial in sorted(front, key=itemgetter(0)))
        return fronts

    def best(self) -> dict[str, tuple[str, ...]]:
        """Return by sweep the ids of the best trial, or of those on the front; only of sweeps that have any."""
        best = {sweep: (ranked[0].id,) for sweep, ranked in self.ranking().items()}
        return best | {sweep: tuple(trial.id for trial in front) for sweep, front in self.fronts().items() if front}

    def to_dict(self) -> dict[str, Any]:
        """Return the figures for scripts, as ``specon run --json`` writes them."""
        return {
            "policy": self.policy,
            "makespan_s": self.makespan_s,
            "mean_completion_s": self.mean_completion_s,
            "median_completion_s": self.median_completion_s,
            "cores_of_others": self.cores_of_others,
            "moves": sum(t.moves for t in self.trials),
            "resizes": sum(t.resizes for t in self.trials),
            "suspensions": sum(t.suspensions for t in self.trials),
            "scales": sum(t.scales for t in self.trials),
            "stopped": sum(bool(t.stopped) for t in self.trials),
            "ended": self.endings,
            "promises": promises_told((trial.sweep, trial.stopped) for trial in self.trials),
            "diverged": [t.id for t in self.trials if t.diverged],
            "without_objective": [t.id for t in self.trials if t.without_objective],
            "deadlines": self.deadlines.asked,
            "deadlines_met": self.deadlines.met,
            "interrupted_s": self.interrupted_s,
            "cost": self.cost,
            "idle_cost": self.idle_cost,
            "best": {sweep: ranked[0].id for sweep, ranked in self.ranking().items()},
            "front": {sweep: [trial.id for trial in front] for sweep, front in self.fronts().items()},
            "trials": [_written(trial) for trial in self.trials],
        }

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> "RunResult":
        """Read back what ``to_dict`` wrote, without the fields that only a newer version knows."""
        names = {field.name for field in fields(TrialResult)}
        known = [{name: value for name, value in trial.items() if name in names} for trial in data["trials"]]
        trials = tuple(TrialResult(**{name: _as_it_was(value) for name, value in trial.items()}) for trial in known)
        return cls(data["policy"], trials, data.get("interrupted_s", 0.0), data.get("idle_cost"))


def _written(trial: TrialResult) -> dict[str, Any]:
    """Return a trial's figures; a remark is rare, and where there is none they stay what they were."""
    return {name: value for name, value in asdict(trial).items() if name != "remark" or value}


def _as_it_was(value: Any) -> Any:  # noqa: ANN401 - any field of a result
    """Return a field as it was before JSON, which knows no tuples: no field is a list."""
    return tuple(value) if isinstance(value, list) else value


@dataclass(frozen=True, slots=True)
class Comparison:
    """A run beside the baseline: ratios below 1 are gains. Trials are paired by id.

    ``faster_share`` counts trials whose completion time fell; ``worst_loser`` is the greatest
    ratio of a trial's completion time to its own under the baseline.
    """

    makespan_ratio: float
    mean_ratio: float
    median_ratio: float
    faster_share: float
    worst_loser: float
    worst_loser_id: str


def compare(baseline: RunResult, other: RunResult) -> Comparison:
    """Set ``other`` beside ``baseline``.

    Raises:
        ComparisonError: the two runs do not have the same trials.
    """
    pairs = _pair(baseline.trials, other.trials)
    ratios = {after.id: after.completion_s / max(before.completion_s, math.ulp(1.0)) for before, after in pairs}
    worst = max(ratios, key=lambda trial: ratios[trial])
    return Comparison(
        makespan_ratio=other.makespan_s / baseline.makespan_s,
        mean_ratio=other.mean_completion_s / baseline.mean_completion_s,
        median_ratio=other.median_completion_s / baseline.median_completion_s,
        faster_share=sum(ratio < 1 for ratio in ratios.values()) / len(ratios),
        worst_loser=ratios[worst],
        worst_loser_id=worst,
    )


def _pair(before: Sequence[TrialResult], after: Sequence[TrialResult]) -> list[tuple[TrialResult, TrialResult]]:
    by_id = {trial.id: trial for trial in after}
    if by_id.keys() != {trial.id for trial in before}:
        odd = sorted(by_id.keys() ^ {trial.id for trial in before})
        message = f"the runs do not have the same trials: {odd}"
        raise ComparisonError(message)
    return [(trial, by_id[trial.id]) for trial in before]
