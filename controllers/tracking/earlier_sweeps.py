"""Trials of earlier sweeps out of MLflow, for a new sweep to learn from. Whatever MLflow holds is untrusted data."""

import math
import re
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

from mlflow.entities import Run
from mlflow.tracking import MlflowClient

from controllers.core.after_sweeps import SAME_EXPERIMENT, AfterSweeps
from controllers.core.earlier import MOST_TRIALS, EarlierTrial
from controllers.core.labels import root_of
from controllers.core.model import Parameters
from controllers.core.parameters import MOST_WRITTEN, bound_parameters
from controllers.tracking.bounded_answers import history_answer
from controllers.tracking.homes import experiment_pages, home_of
from controllers.tracking.metric_source import FoundRun, believed, found_in_json, found_in_store, search_runs
from controllers.tracking.values import MetricPoint, history_of, newest_in_json
from mlflow_hooks import contract
from mlflow_hooks.foreign_json import parsed

_MOST_RUNS: Final = 4 * MOST_TRIALS
"""Runs that are looked at for each name: some trials have several."""
_MOST_HOMES: Final = 32
"""Earlier sweeps whose home is asked for; those beyond are left out."""
_MOST_POINTS: Final = 10_000
"""Points of a metric among which its best value is looked for."""
_READ_S: Final = 20.0
"""Seconds for all runs together: what was found by then counts."""
_BEST_S: Final = 5.0
"""Seconds for the best values of all trials; those whose turn does not come count by their newest."""
_FINISHED: Final = "FINISHED"
_STOPPED: Final = "stopped"
_OURS: Final = (contract.METRIC_CPU_SECONDS, contract.METRIC_STEPS_TOTAL)
_TRUTH: Final = {"True": True, "False": False}
"""How MLflow keeps truth values."""
_NEARLY_ALL: Final = 0.9
"""A trial that ended well after this part of the steps that it told has made all of them."""
_MOST_STEPS: Final = 2**53


@dataclass(frozen=True, slots=True)
class Wanted:
    """What a sweep wants to know of earlier ones.

    ``experiment`` is the name of its own in MLflow, ``uid`` what its own ids begin with. It began at ``began_epoch_s``,
    in Unix seconds: of trials that ended later it learns nothing, so that what it learns is the same whenever it is
    read. ``namespace`` is that of its workflow, whose sweeps alone it may read, and those of no namespace; None on one
    machine, where all may be read.
    """

    after: AfterSweeps
    experiment: str
    uid: str
    began_epoch_s: float
    namespace: str | None = None


@dataclass(frozen=True, slots=True)
class FoundEarlier:
    """The trials of the earlier sweeps, the newest first, and the names that no sweep has."""

    trials: tuple[EarlierTrial, ...] = ()
    unknown: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class _EarlierRun:
    """A trial's run, with what only this module asks for."""

    found: FoundRun
    sweep: str
    parameters: Parameters
    ended_epoch_s: float
    status: str
    outcome: str

    @property
    def well(self) -> bool:
        """Whether the trial came to a model; one that a policy stopped did."""
        return self.status == _FINISHED or self.outcome == _STOPPED


def read_earlier(client: MlflowClient, wanted: Wanted, clock: Callable[[], float] = time.monotonic) -> FoundEarlier:
    """Return the trials that a sweep is to learn from.

    Raises:
        MlflowException: MLflow is away or refuses.
        OSError: it is away.
        TooMuchError: a run holds more than is read.
    """
    give_up, unknown, runs = clock() + _READ_S, list[str](), dict[str, _EarlierRun]()
    for name in wanted.after.names:
        there = False
        for run in _of_name(client, name, wanted, give_up, clock):
            there = True
            if 0 < run.ended_epoch_s <= wanted.began_epoch_s and not _is_own(run, wanted):
                runs[run.found.run_id] = run
        if not there and name != SAME_EXPERIMENT:
            unknown.append(name)
    counted = believed(
        (run.found for run in runs.values()),
        {run.found.trial: wanted.after.objective for run in runs.values()},
    )
    newest = sorted((runs[run.run_id] for run in counted.values()), key=lambda run: (-run.ended_epoch_s, run.sweep))
    best = _BestValues(client, wanted.after, clock)
    return FoundEarlier(tuple(_trial(run, wanted, best) for run in newest[:MOST_TRIALS]), tuple(unknown))


def _of_name(
    client: MlflowClient, name: str, wanted: Wanted, give_up: float, clock: Callable[[], float]
) -> Iterator[_EarlierRun]:
    """Yield the runs of the trials that a name stands for, as far as the sweep may read them."""
    homes: dict[str, bool] = {}
    for looked_at, run in enumerate(_runs_of(client, name, wanted)):
        if looked_at >= _MOST_RUNS or clock() > give_up:
            return
        if name == SAME_EXPERIMENT or _names(name, run.sweep):
            root = root_of(run.sweep)
            if root not in homes:
                homes[root] = len(homes) < _MOST_HOMES and _may_read(client, root, wanted.namespace)
            if homes[root]:
                yield run


def _runs_of(client: MlflowClient, name: str, wanted: Wanted) -> Iterator[_EarlierRun]:
    metrics = tuple(dict.fromkeys((wanted.after.objective, *wanted.after.aims.metrics, *_OURS)))
    of_json, of_run = partial(_in_json, metrics=metrics), partial(_in_store, metrics=metrics)
    pages: Iterable[list[str]]
    of_trials = f"tags.`{contract.TAG_TRIAL_ID}` != ''"
    if name == SAME_EXPERIMENT:
        known = client.get_experiment_by_name(wanted.experiment)
        pages, condition = ([[str(known.experiment_id)]] if known else []), of_trials
    else:
        pages = experiment_pages(client)
        condition = f"tags.`{contract.TAG_SWEEP_ID}` LIKE '{name}%' AND {of_trials}"
    for experiments in pages:
        yield from search_runs(client, experiments, condition, of_json, of_run)


def _names(name: str, sweep: str) -> bool:
    """Return whether ``name`` is the id of a sweep, its workflow's uid, or the name of its run on this machine."""
    return sweep == name or sweep.startswith(f"{name}.") or _OF_A_RUN.match(sweep.removeprefix(name)) is not None


_OF_A_RUN: Final = re.compile(r"-[0-9a-f]{8}-\d\d\.")
"""What stands between the name of a run on this machine and the name of its sweep."""


def _may_read(client: MlflowClient, root: str, namespace: str | None) -> bool:
    # Its first record names the namespace. An id that looks like a question is none of ours.
    return namespace is None or (_SAFE_ROOT.fullmatch(root) is not None and home_of(client, root) in {None, namespace})


_SAFE_ROOT: Final = re.compile(r"[A-Za-z0-9_-]{1,120}")


def _is_own(run: _EarlierRun, wanted: Wanted) -> bool:
    # On one machine the number of the policy follows.
    return run.sweep.startswith((f"{wanted.uid}.", f"{wanted.uid}-"))


def _in_json(run: Mapping[str, Any], metrics: Sequence[str]) -> _EarlierRun:
    data, info = run["data"], run["info"]
    tags = {tag["key"]: tag["value"] for tag in data["tags"]}
    params = {pair["key"]: pair.get("value", "") for pair in data.get("params", ())}
    return _read(found_in_json(run, metrics), tags, params, info.get("status"), info.get("end_time"))


def _in_store(run: Run, metrics: Sequence[str]) -> _EarlierRun:
    return _read(found_in_store(run, metrics), run.data.tags, run.data.params, run.info.status, run.info.end_time)


def _read(
    found: FoundRun, tags: Mapping[str, str], params: Mapping[str, object], status: object, ended_ms: object
) -> _EarlierRun:
    logged = {name: _TRUTH.get(value, value) if isinstance(value, str) else value for name, value in params.items()}
    return _EarlierRun(
        found=found,
        sweep=str(tags.get(contract.TAG_SWEEP_ID, "")),
        parameters=bound_parameters({**logged, **_told(tags.get(contract.TAG_PARAMS, ""))}),
        ended_epoch_s=float(ended_ms) / 1000 if isinstance(ended_ms, int | str) and ended_ms else 0.0,
        status=str(status),
        outcome=str(tags.get(contract.TAG_OUTCOME, "")),
    )


def _told(written: str) -> Mapping[str, object]:
    """Return the hyperparameters that a controller or the hooks wrote down beside a script's own."""
    try:
        told = parsed(written) if 0 < len(written) <= MOST_WRITTEN else {}
    except ValueError:
        return {}
    return told if isinstance(told, dict) else {}


class _BestValues:
    """Looks up the best value of an objective in the histories of trials, for a few seconds in all."""

    def __init__(self, client: MlflowClient, after: AfterSweeps, clock: Callable[[], float]) -> None:
        self._client = client
        self._after = after
        self._clock = clock
        self._give_up = clock() + _BEST_S

    def of(self, run: FoundRun) -> float:
        """Return the best finite value of the objective; not a number where there is none."""
        newest = run.metrics[self._after.objective].value
        logged = [] if self._clock() > self._give_up else self._points(run.run_id)
        values = [value for value in (newest, *(point.value for point in logged)) if math.isfinite(value)]
        return min(values, key=self._after.direction.loss, default=math.nan)

    def _points(self, run_id: str) -> Iterable[MetricPoint]:
        uri, metric = str(self._client.tracking_uri), self._after.objective
        if not uri.startswith(("http://", "https://")):
            return history_of(self._client, run_id, metric)
        points = history_answer(uri, run_id, metric, _MOST_POINTS).get("metrics", [])
        try:
            return [newest_in_json(point) for point in points]
        except (LookupError, TypeError, ValueError, AttributeError, ArithmeticError):
            return []


def _trial(run: _EarlierRun, wanted: Wanted, best: _BestValues) -> EarlierTrial:
    metrics, aims = run.found.metrics, wanted.after.aims
    came_to, violations = _came_to(run, wanted.after, best)
    newest, used = metrics.get(wanted.after.objective), metrics.get(contract.METRIC_CPU_SECONDS)
    step = newest.step if newest is not None else 0 if used is None else used.step
    made = min(step, _MOST_STEPS) if step > 0 else 0
    cpu_s = used.value if used is not None and math.isfinite(used.value) else 0.0
    return EarlierTrial(
        id=str(run.found.trial)[:200],
        parameters=run.parameters,
        came_to=came_to,
        violations=violations if aims.constraints else (),
        steps=_steps(run, made),
        cost=cpu_s / made if made and cpu_s > 0 else None,
        age_s=max(0.0, wanted.began_epoch_s - run.ended_epoch_s),
    )


def _came_to(
    run: _EarlierRun, after: AfterSweeps, best: _BestValues
) -> tuple[tuple[float, ...] | None, tuple[float, ...]]:
    """Return what a trial came to, as ``search.told`` tells a search of the sweep's own, and its violations."""
    names, metrics = (after.objective, *after.aims.metrics), run.found.metrics
    if not run.well:
        return (), ()
    if any(name not in metrics for name in names):
        return None, ()
    also = {name: metrics[name].value for name in after.aims.metrics}
    if after.aims.further:
        values = (metrics[after.objective].value, *(also[one.metric] for one in after.aims.further))
    else:
        values = (best.of(run.found),)
    violations = after.aims.violations(also)
    if violations is None or not all(map(math.isfinite, values)):
        return (), ()
    return values, violations


def _steps(run: _EarlierRun, made: int) -> float | None:
    """Return how many steps a trial makes in all, None where it did not make them."""
    if not made or run.status != _FINISHED or run.outcome == _STOPPED:
        return None
    told = run.found.metrics.get(contract.METRIC_STEPS_TOTAL)
    total = told.value if told is not None and math.isfinite(told.value) and told.value > 0 else 0.0
    # The last reports may come late, or count from 0.
    return min(total, float(_MOST_STEPS)) if total and made >= _NEARLY_ALL * total else float(made)
