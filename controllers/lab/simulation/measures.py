"""What an experiment is judged by beside its times: each paper's own measure, as data. Pure."""

import math
import statistics
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Final, Literal

from controllers.core.goals import AskedGoals
from controllers.core.model import Direction
from controllers.core.results import RunResult
from controllers.lab.simulation.run import SimulatedRun
from controllers.record import measures
from controllers.worlds.simulated.workload import Workload

Unit = Literal["share", "change", "seconds", "trials", "percent", "hours", "money", "number"]
"""A part from 0 to 1; a change against the baseline, as a part of it; seconds; a number of trials; hundredths; hours;
an amount of whatever currency prices are in; a number of anything.
"""
TOLERANCE: Final = 0.1
"""Part of the time per step asked for by which it may be missed: our choice, DQoES's is not public."""


@dataclass(frozen=True, slots=True)
class ComparedRun:
    """A run of ``workload``, and the baseline's run of the same seed."""

    workload: Workload
    run: SimulatedRun
    baseline: SimulatedRun

    @property
    def goals(self) -> dict[str, AskedGoals]:
        """What was asked of each trial, by id."""
        return {str(trial.id): trial.goals for trial in self.workload.trials}


@dataclass(frozen=True, slots=True)
class RunMeasure:
    """A figure of a run: ``name`` for scripts, ``title`` for people.

    ``of`` returns None where there is nothing to measure, or nothing to compare with. ``of_reports`` tells that it
    needs to know when each report was logged.
    """

    name: str
    title: str
    unit: Unit
    of: Callable[[ComparedRun], float | None]
    of_reports: bool = False


def watched(number: int) -> RunMeasure:
    """Return the change of one trial's completion time; ``number`` counts submissions from 0."""
    return RunMeasure("watched_change", f"job {number + 1}", "change", partial(_completion_change, number))


def measures_of(workload: Workload) -> tuple[RunMeasure, ...]:
    """Return the measures of the goals that the trials of ``workload`` have."""
    goals = [trial.goals for trial in workload.trials]
    measures: tuple[RunMeasure, ...] = ()
    if any(asked.deadline_s is not None for asked in goals):
        measures += DEADLINES
    if any(asked.target is not None for asked in goals):
        measures += TARGETS
    if any(asked.seconds_per_step is not None for asked in goals):
        measures += PACES
    return (*measures, *node_measures(workload))


def node_measures(workload: Workload) -> tuple[RunMeasure, ...]:
    """Return what the nodes of ``workload`` are judged by, where they come and go or have prices."""
    measures = NODES if workload.groups else ()
    return (*measures, *COSTS) if workload.priced else measures


# Measures are functions with names, and no lambdas: they are pickled on their way to other processes.


def _completion_change(number: int, ran: ComparedRun) -> float:
    trial = ran.workload.trials[number].id
    return _completions(ran.run.result)[trial] / _completions(ran.baseline.result)[trial] - 1


def _best_trial(ran: ComparedRun) -> float:
    before = _completions(ran.baseline.result)
    return min(completion / before[trial] for trial, completion in _completions(ran.run.result).items()) - 1


def _completions(result: RunResult) -> dict[str, float]:
    return {trial.id: trial.completion_s for trial in result.trials}


def _variance_change(ran: ComparedRun) -> float | None:
    cores = {str(node.name): node.cpu for node in ran.workload.nodes}
    return _change(ran, lambda run: measures.utilisation_variance(run.timeline, cores))


def _deadlines_met(ran: ComparedRun) -> float:
    return ran.run.result.deadlines.share


def _deadlines_change(ran: ComparedRun) -> float | None:
    return _change(ran, lambda run: run.result.deadlines.share)


def _allocation_used(ran: ComparedRun) -> float:
    return measures.share_of_allocation_used(ran.run.timeline)


def _time_to_target(ran: ComparedRun) -> float | None:
    return _mean_time_to_target(ran.workload, ran.run)


def _time_to_target_change(ran: ComparedRun) -> float | None:
    return _change(ran, partial(_mean_time_to_target, ran.workload))


def _mean_time_to_target(workload: Workload, run: SimulatedRun) -> float | None:
    took = [
        seconds
        for direction in Direction
        for seconds in measures.times_to_target(
            run.timeline,
            {str(trial.id): trial.goals for trial in workload.trials if trial.direction is direction},
            direction,
        ).values()
    ]
    return statistics.fmean(took) if took else None


def _at_pace_at_a_time(ran: ComparedRun) -> float | None:
    return measures.at_pace_while_all_run(ran.run.timeline, ran.goals, TOLERANCE)


def _or_faster_at_a_time(ran: ComparedRun) -> float | None:
    return measures.at_pace_while_all_run(ran.run.timeline, ran.goals, TOLERANCE, or_faster=True)


def _at_their_pace(ran: ComparedRun) -> float:
    return len(measures.satisfied(measures.seconds_per_step(ran.run.timeline), ran.goals, TOLERANCE))


def _fast_enough(ran: ComparedRun) -> float:
    return len(measures.fast_enough(measures.seconds_per_step(ran.run.timeline), ran.goals, TOLERANCE))


def _change(ran: ComparedRun, figure: Callable[[SimulatedRun], float | None]) -> float | None:
    before, after = figure(ran.baseline), figure(ran.run)
    return after / before - 1 if before and after is not None else None


def _utilisation(ran: ComparedRun) -> float:
    return measures.utilisation(ran.run.timeline, sum(node.cpu for node in ran.workload.nodes))


def _utilisation_change(ran: ComparedRun) -> float | None:
    cores = sum(node.cpu for node in ran.workload.nodes)
    return _change(ran, lambda run: measures.utilisation(run.timeline, cores))


def _node_hours(ran: ComparedRun) -> float:
    return ran.run.bill.node_s / 3600


def _cost(ran: ComparedRun) -> float | None:
    return ran.run.bill.cost


def _cost_of_a_trial(ran: ComparedRun) -> float | None:
    cost = ran.run.bill.cost
    return None if cost is None else cost / len(ran.run.result.trials)


def _cost_change(ran: ComparedRun) -> float | None:
    return _change(ran, lambda run: run.bill.cost)


def _held_share(ran: ComparedRun) -> float | None:
    bill = ran.run.bill
    return math.fsum(bill.trials.values()) / bill.cost if bill.cost else None


def _taken(ran: ComparedRun) -> float:
    return ran.run.taken


def _lost_per_loss(ran: ComparedRun) -> float | None:
    return ran.run.lost_work_s / ran.run.taken if ran.run.taken else None


NODES: Final = (RunMeasure("node_hours", "node hours", "hours", _node_hours),)
"""Of clusters whose nodes come and go: from when each was asked for until it was gone."""
COSTS: Final = (
    RunMeasure("cost", "cost", "money", _cost),
    RunMeasure("cost_change", "change", "change", _cost_change),
    RunMeasure("cost_per_trial", "a trial", "money", _cost_of_a_trial),
    RunMeasure("cost_held", "held by trials", "share", _held_share),
)
"""Of nodes with prices: what they cost until they were gone, and the part of it in which trials held them."""
LOSSES: Final = (
    RunMeasure("nodes_taken", "nodes taken", "number", _taken),
    RunMeasure("lost_per_loss_s", "lost a time", "seconds", _lost_per_loss),
)
"""Of spot nodes: how many their provider took, and the training (lone seconds) that was lost with each."""
CLUSTER: Final = (
    RunMeasure("best_trial", "best trial", "change", _best_trial),
    RunMeasure("variance_of_use", "variance of use", "change", _variance_change),
)
"""Of FlowCon 2.0, ProCon and C-Balancer: the trial that gains the most, and how unevenly the nodes are in use."""
UTILISATION: Final = (
    RunMeasure("utilisation", "CPU in use", "share", _utilisation),
    RunMeasure("utilisation_change", "change", "change", _utilisation_change),
)
"""Of DRAGON: the part of all cores that computes, from the first submission to the last end."""
DEADLINES: Final = (
    RunMeasure("deadlines_met", "deadlines met", "share", _deadlines_met),
    RunMeasure("deadlines_met_change", "change", "change", _deadlines_change),
    RunMeasure("allocation_used", "CPU used of allocated", "share", _allocation_used),
)
"""Of the deadline framework: completion rate, and utilisation of the CPU allocated."""
TARGETS: Final = (
    RunMeasure("time_to_target_s", "time to target", "seconds", _time_to_target),
    RunMeasure("time_to_target_change", "change", "change", _time_to_target_change),
)
"""Of TRADL: the mean over the trials that reach their target."""
PACES: Final = (
    RunMeasure("at_pace_while_all_run", "at pace, at a time", "trials", _at_pace_at_a_time),
    RunMeasure("at_pace_or_faster_while_all_run", "or faster, at a time", "trials", _or_faster_at_a_time),
    RunMeasure("trials_at_pace", "at pace, in all", "trials", _at_their_pace),
    RunMeasure("trials_at_pace_or_faster", "or faster, in all", "trials", _fast_enough),
)
"""Of DQoES: trials whose steps take as long as asked for, and those whose steps take that or less.

At a moment while all of them run, which is how we read its abstract; and by the mean over each whole run.
"""
