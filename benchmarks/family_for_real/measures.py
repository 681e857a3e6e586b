"""What became of a sweep that ran, by the measures of the papers."""

import statistics
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from controllers.core.goals import AskedGoals, goals_in
from controllers.core.labels import ANNOTATION_DIRECTION, LABEL_SWEEP, LABEL_TRIAL
from controllers.core.model import Direction
from controllers.core.results import RunResult
from controllers.record.measures import (
    at_pace_while_all_run,
    fast_enough,
    satisfied,
    seconds_per_step,
    share_of_allocation_used,
    times_to_target,
    utilisation_variance,
)
from controllers.record.timeline import TimelineEvent, read_timeline
from controllers.worlds.local.jobs import load_ledger
from controllers.worlds.local.workflow import PodStep, read_workflow
from hera_specon.records.run_folder import load_run, parts_of
from hera_specon.replay.sources import cores_of
from hera_specon.workflow_file import load_workflow

_TOLERANCE = 0.1
_UID = "sweep"


@dataclass(frozen=True, slots=True)
class Measured:
    """One run: times in seconds, parts from 0 to 1, counts. A goal that nobody had is None."""

    policy: str
    makespan_s: float
    completions_s: dict[str, float]
    moves: int
    resizes: int
    cpu_s: float
    variance_of_use: float
    allocation_used: float
    deadlines_met: tuple[int, int]
    time_to_target_s: float | None
    targets_reached: int
    on_time: tuple[int, int, int]
    """Trials with a time per step, those of them that kept to it within 10 %, and those that did or were faster."""
    on_time_while_all_run: tuple[float | None, float | None]
    """The same two at a moment, on average while all with a time per step ran."""

    @property
    def mean_s(self) -> float:
        """Mean completion time."""
        return statistics.fmean(self.completions_s.values())

    def told(self, baseline: "Measured") -> dict[str, str]:
        """Return every column in words."""
        changes = [self.completions_s[name] / before - 1 for name, before in baseline.completions_s.items()]
        asked, met = self.deadlines_met
        paced, exact, enough = self.on_time
        ours = self is baseline
        return {
            "makespan": f"{self.makespan_s:.0f} s{_change(self.makespan_s, baseline.makespan_s)}",
            "mean": f"{self.mean_s:.0f} s{_change(self.mean_s, baseline.mean_s)}",
            "best trial": "" if ours else f"{min(changes):+.0%}",
            "worst trial": "" if ours else f"{max(changes):+.0%}",
            "faster": "" if ours else f"{sum(change < 0 for change in changes)} of {len(changes)}",
            "moves": str(self.moves),
            "resizes": str(self.resizes),
            "variance of use": f"{self.variance_of_use:.3f}{_change(self.variance_of_use, baseline.variance_of_use)}",
            "CPU used of allocated": f"{self.allocation_used:.0%}",
            "deadlines met": f"{met} of {asked}",
            "time to target": _target(self, baseline),
            "at pace, at a time": _number(self.on_time_while_all_run[0]),
            "or faster, at a time": _number(self.on_time_while_all_run[1]),
            "within 10 %": f"{exact} of {paced}",
            "that or faster": f"{enough} of {paced}",
            "CPU s": f"{self.cpu_s:.0f}",
            "cores used": f"{self.cpu_s / self.makespan_s:.2f}",
        }


def measured(folder: Path) -> list[Measured]:
    """Return what each policy made of the sweep in ``folder``, in their order."""
    record = load_run(folder)
    direction = Direction(str(record.about["direction"]))
    cores = cores_of(record)
    parts = zip(record.runs, parts_of(folder), strict=True)
    return [
        measure(run.result, list(read_timeline(part / "timeline.jsonl")), _goals_had(part), cores, direction)
        for run, part in parts
        if run.result is not None
    ]


def asked_goals(sweep: Path) -> dict[str, AskedGoals]:
    """Return what is asked of each trial of a sweep's file, by id."""
    return _goals_of(_planned(sweep))


def asked_direction(sweep: Path) -> Direction:
    """Return which way the objective of a sweep's file improves."""
    return Direction(_planned(sweep)[0].annotations[ANNOTATION_DIRECTION])


def measure(
    result: RunResult,
    timeline: list[TimelineEvent],
    goals: Mapping[str, AskedGoals],
    cores: Mapping[str, float],
    direction: Direction,
) -> Measured:
    """Return the measures of one run."""
    to_target = times_to_target(timeline, goals, direction)
    took = seconds_per_step(timeline)
    paced = sum(asked.seconds_per_step is not None for asked in goals.values())
    return Measured(
        policy=result.policy,
        makespan_s=result.makespan_s,
        completions_s={trial.id: trial.completion_s for trial in result.trials},
        moves=sum(trial.moves for trial in result.trials),
        resizes=sum(trial.resizes for trial in result.trials),
        cpu_s=sum(trial.cpu_seconds or 0.0 for trial in result.trials),
        variance_of_use=utilisation_variance(timeline, cores),
        allocation_used=share_of_allocation_used(timeline),
        deadlines_met=(result.deadlines.asked, result.deadlines.met),
        time_to_target_s=statistics.fmean(to_target.values()) if to_target else None,
        targets_reached=len(to_target),
        on_time_while_all_run=(
            at_pace_while_all_run(timeline, goals, _TOLERANCE),
            at_pace_while_all_run(timeline, goals, _TOLERANCE, or_faster=True),
        ),
        on_time=(paced, len(satisfied(took, goals, _TOLERANCE)), len(fast_enough(took, goals, _TOLERANCE))),
    )


def _goals_had(part: Path) -> dict[str, AskedGoals]:
    """Return what was asked of the trials of a run: with another seed its file asks for something else."""
    return _goals_of(job.step for job in load_ledger(part / "ledger.json").jobs.values() if job.trial)


def _planned(sweep: Path) -> list[PodStep]:
    manifest = load_workflow(sweep).manifest
    return [trial.step for trial in read_workflow(manifest, _UID, _UID, {}).trials()]


def _goals_of(steps: Iterable[PodStep]) -> dict[str, AskedGoals]:
    return {f"{step.labels[LABEL_SWEEP]}.{step.labels[LABEL_TRIAL]}": goals_in(step.annotations) for step in steps}


def _target(run: Measured, baseline: Measured) -> str:
    if run.time_to_target_s is None or baseline.time_to_target_s is None:
        return "none reached it"
    change = _change(run.time_to_target_s, baseline.time_to_target_s)
    return f"{run.time_to_target_s:.1f} s{change}, {run.targets_reached} of {len(run.completions_s)}"


def _number(value: float | None) -> str:
    return "never all ran" if value is None else f"{value:.1f}"


def _change(after: float, before: float) -> str:
    return "" if after == before or not before else f" ({after / before - 1:+.1%})"
