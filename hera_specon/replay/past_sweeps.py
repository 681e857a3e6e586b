"""Rebuild past sweeps: ours from their record and MLflow, others from any runs with a metric and timestamps."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby, pairwise

from mlflow.tracking import MlflowClient

from controllers.core.model import Direction, NodeName, Phase, TrialId
from controllers.core.parameters import bound_parameters
from controllers.core.results import TrialResult
from controllers.lab.simulation.past_sweeps.past_sweep import MoveTimes, PastSweep, PastSweepError, PastTrial, Stay
from controllers.tracking.access import shown
from controllers.worlds.simulated.workload import NodeSpec
from hera_specon.records.history import Stretch
from hera_specon.records.run_folder import PolicyRun
from hera_specon.replay.tracked_trials import (
    TAG_PARENT,
    TrackedTrial,
    chosen_objective,
    direction_of,
    history,
    printable,
    that_count,
    tracked_trials,
)
from mlflow_hooks import contract
from mlflow_hooks.contract import METRIC_CPU_SECONDS


@dataclass(frozen=True, slots=True)
class KnownObjective:
    """What is known of the objective beforehand: its name and direction, None where nobody said."""

    metric: str | None = None
    direction: Direction | None = None


@dataclass(frozen=True, slots=True)
class Recorded:
    """One policy's run of a sweep: its record, the line that names its policy, its nodes, and its trials in MLflow.

    ``began_epoch_s`` as in ``PastSweep``.
    """

    run: PolicyRun
    policy: str
    nodes: tuple[NodeSpec, ...]
    tracked: Sequence[TrackedTrial]
    began_epoch_s: float | None = None


def recorded_sweep(client: MlflowClient, name: str, recorded: Recorded, objective: KnownObjective) -> PastSweep:
    """Return the sweep as it was under one policy.

    Raises:
        PastSweepError: It has not finished, or MLflow lacks its trials.
        MlflowException: MLflow is away or refuses.
    """
    result = recorded.run.result
    if result is None:
        message = f"sweep {name} has not finished under {recorded.policy}: nothing to set a simulation beside"
        raise PastSweepError(message)
    if not recorded.tracked:
        message = f"MLflow at {shown(client.tracking_uri)} has no trials of sweep {name} under {recorded.policy}"
        raise PastSweepError(message)
    metric = chosen_objective(client, recorded.tracked, objective.metric)
    by_id = {_short(trial.trial_id, result.trials): trial for trial in that_count(recorded.tracked, metric)}
    left_out: list[str] = []
    trials: list[PastTrial] = []
    for trial in result.trials:
        past = _past_trial(client, trial, by_id.get(trial.id), metric, recorded.run.history.stretches)
        if past is None:
            left_out.append(f"{printable(trial.id)} {'logged no objective' if trial.succeeded else 'failed'}")
        else:
            trials.append(past)
    direction = objective.direction or direction_of([trial.objective for trial in trials])
    moves = tuple(move for of in recorded.run.history.stretches.values() for move in move_times(of))
    return PastSweep(
        *(name, recorded.policy, direction, tuple(trials), recorded.nodes, moves, tuple(left_out)),
        began_epoch_s=recorded.began_epoch_s,
    )


def stays(stretches: Iterable[Stretch]) -> tuple[Stay, ...]:
    """Return where a trial was when."""
    placed = [stretch for stretch in stretches if stretch.node]
    by_attempt = [list(of) for _, of in groupby(placed, key=lambda stretch: (stretch.node, stretch.attempt))]
    return tuple(Stay(NodeName(str(of[0].node)), of[0].start, of[-1].end) for of in by_attempt)


def move_times(stretches: Iterable[Stretch]) -> list[MoveTimes]:
    """Return how long each move of a trial took, from what it went through."""
    phases = [(phase, list(of_phase)) for phase, of_phase in groupby(stretches, key=lambda stretch: stretch.phase)]
    moves = []
    for (phase, leaving), (after, waiting) in pairwise(phases):
        if phase == Phase.MOVING:
            gone = leaving[-1].end
            moves.append(MoveTimes(gone - leaving[0].start, waiting[-1].end - gone if after == Phase.PENDING else 0.0))
    return moves


def _past_trial(
    client: MlflowClient,
    trial: TrialResult,
    tracked: TrackedTrial | None,
    metric: str,
    stretches: Mapping[str, Sequence[Stretch]],
) -> PastTrial | None:
    if tracked is None or not trial.succeeded:
        return None
    curve = history(client, tracked.run_id, metric)
    if not curve:
        return None
    lived = stretches.get(trial.id, ())
    first = next((stretch for stretch in lived if stretch.cpu), None)
    sizes = [len(stretch.places) for stretch in lived if stretch.phase == Phase.RUNNING and stretch.places]
    return PastTrial(
        id=TrialId(trial.id),
        submitted_at=trial.submitted_s,
        completed_at=trial.completed_s,
        objective=curve,
        cpu_seconds=history(client, tracked.run_id, contract.METRIC_CPU_SECONDS),
        total_cpu_s=trial.cpu_seconds,
        attempts=max(1, trial.attempts),
        first_node=NodeName(trial.first_node) if trial.first_node else None,
        cpu=None if first is None else first.cpu,
        began_epoch_s=tracked.began_at,
        stays=stays(lived),
        parameters=bound_parameters(trial.params),
        workers=(min(sizes, default=trial.workers), max(sizes, default=trial.workers)),
    )


def _short(trial_id: str, trials: Sequence[TrialResult]) -> str:
    """Return the id by which a result knows the trial: without the workflow's uid."""
    return next((trial.id for trial in trials if trial_id == trial.id or trial_id.endswith(f".{trial.id}")), trial_id)


def runs_below(client: MlflowClient, wanted: str) -> list[TrackedTrial]:
    """Return the trials that ``wanted`` names: the runs nested under a run, or those of an experiment.

    Args:
        client: A client of the tracking server.
        wanted: A run's id, or an experiment's name or id.

    Raises:
        MlflowException: MLflow is away or refuses.
    """
    everywhere = [experiment.experiment_id for experiment in client.search_experiments()]
    if wanted.isalnum():
        nested = tracked_trials(client, everywhere, f"tags.`{TAG_PARENT}` = '{wanted}'")
        if nested:
            return nested
    named = client.get_experiment_by_name(wanted)
    experiment = wanted if named is None and wanted in everywhere else named and named.experiment_id
    if experiment is None:
        return []
    runs = tracked_trials(client, [str(experiment)], "")
    parents = {run.parent for run in runs}
    return [run for run in runs if run.run_id not in parents]


def past_runs(client: MlflowClient, name: str, tracked: Sequence[TrackedTrial], objective: KnownObjective) -> PastSweep:
    """Return ``tracked`` as a sweep that nobody steered; each run is taken to be submitted when it began.

    Raises:
        PastSweepError: None of them finished and logged the objective.
        MlflowException: MLflow is away or refuses.
    """
    metric = chosen_objective(client, tracked, objective.metric)
    began = min(trial.began_at for trial in tracked)
    counts = Counter(trial.name for trial in tracked)
    trials: list[PastTrial] = []
    left_out: list[str] = []
    for run in tracked:
        trial = _past_run(client, run, metric, began)
        if trial is None:
            left_out.append(f"{run.name} {'logged no objective' if run.finished else 'did not finish'}")
        else:
            known = run.name if counts[run.name] == 1 else f"{run.name} {run.run_id[:8]}"
            trials.append(replace(trial, id=TrialId(known)))
    direction = objective.direction or direction_of([trial.objective for trial in trials])
    return PastSweep(name, None, direction, tuple(trials), left_out=tuple(left_out))


def _past_run(client: MlflowClient, run: TrackedTrial, metric: str, began: float) -> PastTrial | None:
    if not run.finished or run.ended_at is None or run.ended_at <= run.began_at:
        return None
    curve = history(client, run.run_id, metric) if metric in run.metrics else ()
    if not curve:
        return None
    counted = METRIC_CPU_SECONDS in run.metrics
    return PastTrial(
        id=TrialId(run.run_id),
        submitted_at=run.began_at - began,
        completed_at=run.ended_at - began,
        objective=curve,
        cpu_seconds=history(client, run.run_id, METRIC_CPU_SECONDS) if counted else (),
        began_epoch_s=run.began_at,
        parameters=run.parameters,
    )
