"""Runs out of MLflow, in bulk queries, and what trials fail to log there.

Whatever MLflow holds is untrusted data.
"""

import itertools
import json
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from mlflow.exceptions import MlflowException
from mlflow.tracking import MlflowClient
from mlflow.utils.credentials import get_default_host_creds
from mlflow.utils.rest_utils import http_request
from urllib3.exceptions import HTTPError

from controllers.core.errors import SpeconError
from controllers.core.model import TrialId
from controllers.tracking.run_context import PARENT
from controllers.tracking.values import MetricPoint, newest_in_json, newest_of
from mlflow_hooks import contract

_PAGE: Final = 500
"""Runs asked for at once: MLflow takes about a millisecond for each."""
_SEARCH: Final = "/api/2.0/mlflow/runs/search"
_ANSWER_S: Final = 30
"""Seconds that a page may take: nobody waits for it, and a busy server is not away."""
_MOST_ANSWER: Final = 16 * 2**20
"""Bytes of an answer: a single wide character in it makes it four times as large in memory."""
_MOST_PARTS: Final = 1_000_000
"""Values in an answer: so many take a hundred megabytes."""
_OTHER_KIND: Final = "MLflow answered a search of runs with JSON of another kind"
_FEWER: Final = 8
RUNNING: Final = "RUNNING"
"""Status of a run that goes on."""
_MOST_OTHERS: Final = 20
_LONGEST_NAME: Final = 100
_SYSTEM: Final = "system/"
"""Begins the metrics of the machine that MLflow itself may log: they are many, and none is of the training."""


class TooMuchError(SpeconError):
    """MLflow answered with more than this process will hold."""


@dataclass(frozen=True, slots=True)
class FoundRun:
    """A trial's run, the newest point of each of its metrics that are wanted, and the names of some others.

    ``going_on`` tells that it has not ended; ``began`` is when it was made, in milliseconds since 1970. ``attempt`` is
    the token of the attempt whose script made it, empty where our hooks or a controller did; ``parent`` the id of the
    run that it is nested under.
    """

    trial: TrialId
    run_id: str
    metrics: Mapping[str, MetricPoint]
    others: frozenset[str] = frozenset()
    going_on: bool = True
    began: int = 0
    attempt: str = ""
    parent: str = ""

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
    if str(client.tracking_uri).startswith(("http://", "https://")):
        yield from _over_http(str(client.tracking_uri), experiments, wanted, metrics)
    else:
        yield from _of_store(client, experiments, wanted, metrics)


def believed(newest_first: Iterable[FoundRun], objectives: Mapping[TrialId, str]) -> dict[TrialId, FoundRun]:
    """Return the run of each trial that counts.

    Of those that our hooks or a controller made, that is the oldest with data. A controller that was killed, or that
    MLflow answered too late, leaves one without; so does a request that MLflow hears after another run was made.

    A script may make several itself. Of these the newest attempt counts, as the training began again with it; and of
    its runs the newest that has the objective, one that is nested in none of the others.

    Args:
        newest_first: the runs, the newest first.
        objectives: name of the objective of each trial.
    """
    runs: dict[TrialId, list[FoundRun]] = {}
    for run in newest_first:
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
    ids = {run.run_id for run in newest}
    # Of equals, max() takes the first, which is the newest.
    return max(newest, key=lambda run: (objective in run.metrics, run.parent not in ids, run.holds_data))


def _of_store(
    client: MlflowClient, experiments: Sequence[str], wanted: str, metrics: Collection[str]
) -> Iterator[FoundRun]:
    token: str | None = None
    while True:
        page = client.search_runs(list(experiments), wanted, max_results=_PAGE, page_token=token)
        for run in page:
            info = run.info
            yield _of_interest(run.data.tags, info.run_id, newest_of(run), metrics, info.status, info.start_time)
        token = page.token
        if not token:
            return


def _over_http(uri: str, experiments: Sequence[str], wanted: str, metrics: Collection[str]) -> Iterator[FoundRun]:
    """Read the JSON itself: the objects that MLflow's client makes of it cost ten times as much."""
    query: dict[str, Any] = {"experiment_ids": list(experiments), "filter": wanted, "max_results": _PAGE}
    while True:
        try:
            answer = _answer(uri, query)
        except TooMuchError:
            if query["max_results"] == 1:
                raise
            # Anybody may log a hundred thousand metrics: fewer runs at a time fit.
            query["max_results"] = max(1, query["max_results"] // _FEWER)
            continue
        try:
            runs = [_found_in_json(run, metrics) for run in answer.get("runs", ())]
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


def _answer(uri: str, query: Mapping[str, Any]) -> Mapping[str, Any]:
    credentials = get_default_host_creds(uri)  # type: ignore[no-untyped-call]
    response = http_request(  # type: ignore[no-untyped-call]
        credentials, _SEARCH, "POST", timeout=_ANSWER_S, json=query, stream=True
    )
    with response:
        try:
            content = response.raw.read(_MOST_ANSWER + 1, decode_content=True)
        except HTTPError as error:
            message = f"MLflow's answer to a search of runs broke off: {str(error)[:200]}"
            raise MlflowException(message) from error
        if response.status_code != 200:  # noqa: PLR2004 - HTTP's OK
            message = f"MLflow answered a search of runs with status {response.status_code}: {content[:200]!r}"
            raise MlflowException(message)
    if len(content) > _MOST_ANSWER or sum(map(content.count, (b",", b"[", b"{"))) > _MOST_PARTS:
        message = f"MLflow's answer to a search of {query['max_results']} runs holds more than is read"
        raise TooMuchError(message)
    try:
        parsed = json.loads(content)
    except (ValueError, RecursionError) as error:
        message = f"MLflow answered a search of runs without JSON: {str(error)[:200]}"
        raise MlflowException(message) from error
    if not isinstance(parsed, dict):
        message = f"{_OTHER_KIND}: {parsed!r:.200}"
        raise MlflowException(message)
    return parsed


def _found_in_json(run: Mapping[str, Any], metrics: Collection[str]) -> FoundRun:
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
