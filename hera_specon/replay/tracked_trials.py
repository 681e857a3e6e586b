"""Trials' runs and their metric histories out of MLflow. All that is read is untrusted: checked and bounded."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from mlflow.entities import Run
from mlflow.tracking import MlflowClient

from controllers.core.model import Direction, Parameters
from controllers.core.parameters import bound_parameters
from controllers.lab.simulation.past_sweeps.past_sweep import Logged, PastSweepError
from controllers.tracking.metric_source import FoundRun, believed, found_in_store
from controllers.tracking.values import history_of, newest_of
from mlflow_hooks import contract

TAG_PARENT: Final = "mlflow.parentRunId"
_PAGE: Final = 1000
_MOST_RUNS: Final = 20_000
_MOST_TEXT: Final = 200
_MOST_LISTED: Final = 10
_OURS: Final = "specon."
_SYSTEM: Final = "system/"


@dataclass(frozen=True, slots=True)
class TrackedTrial:
    """A trial's run: ``name`` may be shown, times are in Unix seconds, ``ended_at`` is None for one that has not.

    ``parent`` is the id of the run that it is nested under, empty for none. ``parameters`` are those that it logged.
    ``found`` is the run as a controller sees it, None where it is of no sweep of ours.
    """

    run_id: str
    trial_id: str
    name: str
    finished: bool
    began_at: float
    ended_at: float | None
    metrics: frozenset[str]
    objective_first: float | None
    parent: str
    found: FoundRun | None
    parameters: Parameters = ()


def tracked_trials(client: MlflowClient, experiments: Sequence[str], wanted: str) -> list[TrackedTrial]:
    """Return the runs in ``experiments`` that MLflow's filter ``wanted`` selects, the oldest first.

    Raises:
        PastSweepError: They are too many.
        MlflowException: MLflow is away or refuses.
    """
    runs: list[Run] = []
    token: str | None = None
    while len(runs) <= _MOST_RUNS:
        page = client.search_runs(
            list(experiments), wanted, max_results=_PAGE, order_by=["attributes.start_time"], page_token=token
        )
        runs += page
        token = page.token
        if not token:
            return [_read_trial(run) for run in runs]
    message = f"MLflow has more than {_MOST_RUNS} runs of this sweep"
    raise PastSweepError(message)


def that_count(trials: Sequence[TrackedTrial], objective: str) -> list[TrackedTrial]:
    """Return of each trial of a sweep of ours the run that its controller acted on."""
    found = [trial.found for trial in trials if trial.found is not None]
    counts = believed(found, {run.trial: objective for run in found}).values()
    ids = {run.run_id for run in counts}
    return [trial for trial in trials if trial.run_id in ids]


def history(client: MlflowClient, run_id: str, metric: str) -> tuple[Logged, ...]:
    """Return the finite points of a metric, one for each step, rising; points without steps are counted by time."""
    points = [
        Logged(point.step, point.value, point.epoch_s)
        for point in history_of(client, run_id, metric)
        if math.isfinite(point.value)
    ]
    points.sort(key=lambda point: (point.step, point.at))
    if len({point.step for point in points}) == 1:
        return tuple(Logged(number, point.value, point.at) for number, point in enumerate(points))
    newest = {point.step: point for point in points}
    return tuple(newest.values())


def chosen_objective(client: MlflowClient, trials: Sequence[TrackedTrial], asked: str | None) -> str:
    """Return the metric that says how good the models are: ``asked``, the only one, or the one that the hooks marked.

    Raises:
        PastSweepError: No trial has it, or several may be meant; lists the metrics.
    """
    names = sorted({name for trial in trials for name in trial.metrics if not name.startswith((_OURS, _SYSTEM))})
    listed = ", ".join(printable(name) for name in names[:_MOST_LISTED]) or "none"
    if asked is not None:
        if asked in names:
            return asked
        message = f"no trial logged {asked!r}; name one of these with --objective: {listed}"
        raise PastSweepError(message)
    fitting = names if len(names) == 1 else _marked_metrics(client, trials, names)
    if len(fitting) != 1:
        message = f"which metric says how good a model is? Name it with --objective: {listed}"
        raise PastSweepError(message)
    return fitting[0]


def direction_of(curves: Sequence[Sequence[Logged]]) -> Direction:
    """Return which way most of ``curves`` went from their first point to the median of their last fifth."""
    fell = sum(_late(curve) < curve[0].value for curve in curves)
    rose = sum(_late(curve) > curve[0].value for curve in curves)
    return Direction.MAXIMIZE if rose > fell else Direction.MINIMIZE


def printable(text: str) -> str:
    """Return ``text`` short and without what could steer a terminal."""
    return "".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in text[:_MOST_TEXT])


def _read_trial(run: Run) -> TrackedTrial:
    info, data = run.info, run.data
    newest, trial_id = newest_of(run), str(data.tags.get(contract.TAG_TRIAL_ID, ""))
    first = newest.get(contract.METRIC_OBJECTIVE_FIRST)
    return TrackedTrial(
        run_id=str(info.run_id),
        trial_id=trial_id,
        name=printable(str(info.run_name or info.run_id)),
        finished=info.status == "FINISHED",
        began_at=(info.start_time or 0) / 1000,
        ended_at=None if info.end_time is None else info.end_time / 1000,
        metrics=frozenset(newest),
        objective_first=None if first is None else first.value,
        parent=str(data.tags.get(TAG_PARENT, "")),
        found=found_in_store(run, newest.keys()) if trial_id else None,
        parameters=bound_parameters(data.params),
    )


def _marked_metrics(client: MlflowClient, trials: Sequence[TrackedTrial], names: Sequence[str]) -> list[str]:
    """Return the metrics whose first point is the one that the hooks logged as the objective's first."""
    trial = next((trial for trial in trials if trial.objective_first is not None), None)
    if trial is None:
        return []
    firsts = {name: history(client, trial.run_id, name)[:1] for name in names if name in trial.metrics}
    return [name for name, first in firsts.items() if first and first[0].value == trial.objective_first]


def _late(curve: Sequence[Logged]) -> float:
    tail = sorted(point.value for point in curve[-max(1, len(curve) // 5) :])
    return tail[len(tail) // 2]
