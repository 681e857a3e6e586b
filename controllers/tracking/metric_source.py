"""Runs out of MLflow, in bulk queries, and what trials fail to log there.

Whatever MLflow holds is untrusted data.
"""

import itertools
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Final, TypeVar

from mlflow.entities import Run
from mlflow.exceptions import MlflowException
from mlflow.tracking import MlflowClient

from controllers.core.model import TrialId
from controllers.tracking.bounded_answers import TooMuchError, search_answer
from controllers.tracking.run_context import PARENT
from controllers.tracking.values import MetricPoint, newest_in_json, newest_of
from mlflow_hooks import contract

T = TypeVar("T")
_PAGE: Final = 500
"""Runs asked for at once: MLflow takes about a millisecond for each."""
_OTHER_KIND: Final = "MLflow answered a search of runs with JSON of another kind"
_FEWER: Final = 8
RUNNING: Final = "RUNNING"
"""Status of a run that goes on."""
_MOST_OTHERS: Final = 20
_LONGEST_NAME: Final = 100
_SYSTEM: Final = "system/"
"""Begins the metrics of the machine that MLflow itself may log: they are many, and none is of the training."""


@dataclass(frozen=True, slots=True)
class FoundRun:
    """A trial's run, the newest point of each of its metrics that are wanted, and the names of some others.

    ``going_on`` tells that it has not ended; ``began`` is when it was made, in milliseconds since 1970. ``attempt`` is
    the token of the attempt whose script made it, empty where our hooks or a controller did; ``parent`` the id of the
    run that it is nested under. ``remark`` is what to know of its values, empty for nothing;
    ``unsure`` tells that MLflow did not answer what these are.
    """

    trial: TrialId
    run_id: str
    metrics: Mapping[str, MetricPoint]
    others: frozenset[str] = frozenset()
    going_on: bool = True
    began: int = 0
    attempt: str = ""
    parent: str = ""
    remark: str = ""
    unsure: bool = False

    @property
    def holds_data(self) -> bool:
        """Whether its trial has logged anything there."""
        return bool(self.metrics or self.others)


def find_runs(
    client: MlflowClient, experiments: Sequence[str], wanted: str, metrics: Collection[str]
) -> Iterator[FoundRun]:
    """Yield the trials' runs in ``experiments`` that MLflow's filter ``wanted`` selects, with those ``metrics``.

    Raises:
        MlflowException: MLflow is away or refuses.
        OSError: it is away.
        TooMuchError: a run holds more than is read.
    """
    of_json, of_run = partial(found_in_json, metrics=metrics), partial(found_in_store, metrics=metrics)
    yield from search_runs(client, experiments, wanted, of_json, of_run)


def search_runs(
    client: MlflowClient,
    experiments: Sequence[str],
    wanted: str,
    of_json: Callable[[Mapping[str, Any]], T],
    of_run: Callable[[Run], T],
) -> Iterator[T]:
    """Yield what is read of each run in ``experiments`` that MLflow's filter ``wanted`` selects, the newest first.

    Args:
        client: A client of the tracking server, or of a store on this machine.
        experiments: Their ids.
        wanted: The filter.
        of_json: Reads a run that a server sent as JSON; any error of it is told as MLflow's.
        of_run: Reads one out of a store.

    Raises:
        MlflowException: MLflow is away or refuses.
        OSError: it is away.
        TooMuchError: a run holds more than is read.
    """
    if str(client.tracking_uri).startswith(("http://", "https://")):
        yield from _over_http(str(client.tracking_uri), experiments, wanted, of_json)
    else:
        yield from _of_store(client, experiments, wanted, of_run)


def newest_first(runs: Iterable[FoundRun]) -> list[FoundRun]:
    """Return runs in the order in which they were made, the newest first."""
    return sorted(runs, key=lambda run: (run.began, run.run_id), reverse=True)


def believed(found: Iterable[FoundRun], objectives: Mapping[TrialId, str]) -> dict[TrialId, FoundRun]:
    """Return the run of each trial that counts: for the controller, and for all who show what it acts on.

    Of those that our hooks or a controller made, that is the oldest with data. A controller that was killed, or that
    MLflow answered too late, leaves one without; so does a request that MLflow hears after another run was made.

    A script may make several itself. Of these the newest attempt counts, and of its runs the newest that has the
    objective, one that is nested in none of the others. A run of an earlier attempt is as one of the newest where its
    script logged the objective to it since: MLflow's own way to resume. It also counts where all runs of the newest
    have ended without the objective: there was nothing left to train.

    Args:
        found: the runs, in any order.
        objectives: name of the objective of each trial.
    """
    runs: dict[TrialId, list[FoundRun]] = {}
    for run in newest_first(found):
        runs.setdefault(run.trial, []).append(run)
    return {trial: _believed(several, objectives.get(trial, "")) for trial, several in runs.items()}


def _believed(runs: Sequence[FoundRun], objective: str) -> FoundRun:
    """Return which of one trial's runs counts, given the newest first."""
    ours = [run for run in runs if not run.attempt]
    own = [run for run in runs if run.attempt]
    if with_data := [run for run in ours if run.holds_data]:
        return with_data[-1]
    if not own:
        return ours[-1]
    newest = [run for run in own if run.attempt == own[0].attempt]
    began_ms = min(run.began for run in newest)
    through = not any(run.going_on or objective in run.metrics for run in newest)
    resumed = [
        run
        for run in own
        if objective in run.metrics
        and run.attempt != own[0].attempt
        and (through or run.metrics[objective].epoch_s * 1000 > began_ms)
    ]
    ids = {run.run_id for run in (*newest, *resumed)}
    # Of equals, max() takes the first, which is the newest.
    return max((*newest, *resumed), key=lambda run: (objective in run.metrics, run.parent not in ids, run.holds_data))


def _of_store(client: MlflowClient, experiments: Sequence[str], wanted: str, of_run: Callable[[Run], T]) -> Iterator[T]:
    token: str | None = None
    while True:
        page = client.search_runs(list(experiments), wanted, max_results=_PAGE, page_token=token)
        yield from map(of_run, page)
        token = page.token
        if not token:
            return


def _over_http(
    uri: str, experiments: Sequence[str], wanted: str, of_json: Callable[[Mapping[str, Any]], T]
) -> Iterator[T]:
    """Read the JSON itself: the objects that MLflow's client makes of it cost ten times as much."""
    query: dict[str, Any] = {"experiment_ids": list(experiments), "filter": wanted, "max_results": _PAGE}
    while True:
        try:
            answer = search_answer(uri, query)
        except TooMuchError:
            if query["max_results"] == 1:
                raise
            # Anybody may log a hundred thousand metrics: fewer runs at a time fit.
            query["max_results"] = max(1, query["max_results"] // _FEWER)
            continue
        try:
            runs = [of_json(run) for run in answer.get("runs", ())]
        except (LookupError, TypeError, ValueError, AttributeError, ArithmeticError) as error:
            message = f"{_OTHER_KIND}: {str(error)[:200]}"
            raise MlflowException(message) from error
        yield from runs
        token = answer.get("next_page_token") or ""
        if not isinstance(token, str) or token == query.get("page_token"):
            message = f"{_OTHER_KIND}: the next page is {token!r:.200}"
            raise MlflowException(message)
        if not token:
            return
        query["page_token"] = token


def found_in_store(run: Run, metrics: Collection[str]) -> FoundRun:
    """Return a trial's run out of a store on this machine, with those ``metrics``."""
    info = run.info
    return _of_interest(run.data.tags, info.run_id, newest_of(run), metrics, info.status, info.start_time)


def found_in_json(run: Mapping[str, Any], metrics: Collection[str]) -> FoundRun:
    """Return a trial's run as a server sent it, with those ``metrics``.

    Raises:
        LookupError: It is no such run; or a TypeError, ValueError, AttributeError or ArithmeticError.
    """
    data = run["data"]
    # No generator's next() here: its StopIteration would end the search as if there were no other run.
    tags = {tag["key"]: tag["value"] for tag in data["tags"]}
    trial = tags[contract.TAG_TRIAL_ID]
    points = {
        metric["key"]: newest_in_json(metric) if metric["key"] in metrics else None
        for metric in data.get("metrics", ())
    }
    info = run["info"]
    run_id, began = info["run_id"], int(info.get("start_time") or 0)
    own = (tags.get(contract.TAG_ATTEMPT, ""), tags.get(PARENT, ""))
    if not (run_id and all(isinstance(name, str) for name in (trial, run_id, *own, *points))):
        message = f"a run {run_id!r} of trial {trial!r}"
        raise ValueError(message)
    return _of_interest(tags, run_id, points, metrics, info.get("status"), began)


def _of_interest(
    tags: Mapping[str, str],
    run_id: str,
    points: Mapping[str, Any],
    metrics: Collection[str],
    status: str | None,
    began: int | None,
) -> FoundRun:
    """Return what is kept of a run: some trials log thousands of metrics that nobody looks at here."""
    own = (name for name in points if name not in metrics and not name.startswith(_SYSTEM))
    others = itertools.islice(own, _MOST_OTHERS)
    kept = {name: points[name] for name in metrics if name in points}
    names = frozenset(name[:_LONGEST_NAME] for name in others)
    return FoundRun(
        trial=TrialId(tags[contract.TAG_TRIAL_ID]),
        run_id=run_id,
        metrics=kept,
        others=names,
        going_on=(status or RUNNING) == RUNNING,
        began=began or 0,
        attempt=tags.get(contract.TAG_ATTEMPT, "")[:_LONGEST_NAME],
        parent=tags.get(PARENT, "")[:_LONGEST_NAME],
    )
