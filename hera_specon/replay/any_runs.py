"""Sweeps that nobody of ours ran: any runs in MLflow with a metric and timestamps."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

from mlflow.tracking import MlflowClient

from controllers.core.model import TrialId
from controllers.lab.simulation.past_sweeps.past_sweep import PastSweep, PastTrial
from hera_specon.replay.recorded_sweep import Objective
from hera_specon.replay.tracked_trials import (
    TAG_PARENT,
    TrackedTrial,
    chosen_objective,
    direction_of,
    history,
    tracked_trials,
)
from mlflow_hooks.contract import METRIC_CPU_SECONDS


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
    return [] if experiment is None else _leaves(client, str(experiment))


def past_runs(client: MlflowClient, name: str, found: Sequence[TrackedTrial], objective: Objective) -> PastSweep:
    """Return ``found`` as a sweep that nobody steered; each run is taken to be submitted when it began.

    Raises:
        PastSweepError: None of them finished and logged the objective.
        MlflowException: MLflow is away or refuses.
    """
    metric = chosen_objective(client, found, objective.metric)
    began = min(trial.began_at for trial in found)
    counts = Counter(trial.name for trial in found)
    trials: list[PastTrial] = []
    left_out: list[str] = []
    for run in found:
        trial = _past_trial(client, run, metric, began)
        if trial is None:
            left_out.append(f"{run.name} {'logged no objective' if run.finished else 'did not finish'}")
        else:
            known = run.name if counts[run.name] == 1 else f"{run.name} {run.run_id[:8]}"
            trials.append(replace(trial, id=TrialId(known)))
    direction = objective.direction or direction_of([trial.objective for trial in trials])
    return PastSweep(name, None, direction, tuple(trials), left_out=tuple(left_out))


def _past_trial(client: MlflowClient, run: TrackedTrial, metric: str, began: float) -> PastTrial | None:
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
    )


def _leaves(client: MlflowClient, experiment: str) -> list[TrackedTrial]:
    """Return the runs of an experiment that have no runs nested under them."""
    runs = tracked_trials(client, [experiment], "")
    parents = {run.parent for run in runs}
    return [run for run in runs if run.run_id not in parents]
