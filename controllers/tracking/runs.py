"""The runs of many trials at once, as MLflow's search answers. Whatever MLflow holds is untrusted data."""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from mlflow.entities import Run
from mlflow.exceptions import MlflowException
from mlflow.tracking import MlflowClient
from mlflow.utils.credentials import get_default_host_creds
from mlflow.utils.rest_utils import http_request, verify_rest_response

from controllers.core.model import TrialId
from mlflow_hooks import contract

_PAGE: Final = 500
"""Runs asked for at once: MLflow takes about a millisecond for each."""
_SEARCH: Final = "/api/2.0/mlflow/runs/search"
_ANSWER_S: Final = 30
"""Seconds that a page may take: nobody waits for it, and a busy server is not away."""


@dataclass(frozen=True, slots=True)
class Reported:
    """One metric's newest point as MLflow keeps it."""

    value: float
    step: int
    epoch_s: float


@dataclass(frozen=True, slots=True)
class FoundRun:
    """A trial's run, and the newest point of each of its metrics."""

    trial: TrialId
    run_id: str
    metrics: Mapping[str, Reported]


def find_runs(client: MlflowClient, experiments: Sequence[str], wanted: str) -> Iterator[FoundRun]:
    """Yield the trials' runs in ``experiments`` that MLflow's filter ``wanted`` selects.

    Raises:
        MlflowException: MLflow is away or refuses.
        OSError: it is away.
    """
    if str(client.tracking_uri).startswith(("http://", "https://")):
        yield from _over_http(str(client.tracking_uri), experiments, wanted)
    else:
        yield from _of_store(client, experiments, wanted)


def _of_store(client: MlflowClient, experiments: Sequence[str], wanted: str) -> Iterator[FoundRun]:
    token: str | None = None
    while True:
        page = client.search_runs(list(experiments), wanted, max_results=_PAGE, page_token=token)
        yield from (_found_in_store(run) for run in page)
        token = page.token
        if not token:
            return


def _found_in_store(run: Run) -> FoundRun:
    # run.data.metrics drops step and timestamp; the protobuf form keeps them.
    metrics = {m.key: Reported(m.value, m.step, m.timestamp / 1000) for m in run.data.to_proto().metrics}
    return FoundRun(TrialId(run.data.tags[contract.TAG_TRIAL_ID]), run.info.run_id, metrics)


def _over_http(uri: str, experiments: Sequence[str], wanted: str) -> Iterator[FoundRun]:
    """Read the JSON itself: MLflow's client makes of it objects that cost ten times as much."""
    query: dict[str, Any] = {"experiment_ids": list(experiments), "filter": wanted, "max_results": _PAGE}
    while True:
        answer = _answer(uri, query)
        try:
            yield from [_found_in_json(run) for run in answer.get("runs", ())]
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            message = f"MLflow answers a search of runs with something else: {str(error)[:200]}"
            raise MlflowException(message) from error
        query["page_token"] = answer.get("next_page_token")
        if not query["page_token"]:
            return


def _answer(uri: str, query: Mapping[str, Any]) -> Mapping[str, Any]:
    credentials = get_default_host_creds(uri)  # type: ignore[no-untyped-call]
    response = http_request(credentials, _SEARCH, "POST", timeout=_ANSWER_S, json=query)  # type: ignore[no-untyped-call]
    if response.status_code != 200:  # noqa: PLR2004 - HTTP's OK
        verify_rest_response(response, _SEARCH)
    try:
        found = json.loads(response.content)
    except (ValueError, RecursionError) as error:
        message = f"MLflow answers a search of runs with no JSON: {str(error)[:200]}"
        raise MlflowException(message) from error
    return found if isinstance(found, dict) else {}


def _found_in_json(run: Mapping[str, Any]) -> FoundRun:
    data = run["data"]
    trial = next(tag["value"] for tag in data["tags"] if tag["key"] == contract.TAG_TRIAL_ID)
    metrics = {m["key"]: _reported(m) for m in data.get("metrics", ())}
    return FoundRun(TrialId(trial), str(run["info"]["run_id"]), metrics)


def _reported(metric: Mapping[str, Any]) -> Reported:
    # Zero is left out of protobuf's JSON, and not-a-number is a string in it: both are what float and int take.
    value, step, at = (metric.get(name, 0) for name in ("value", "step", "timestamp"))
    return Reported(float(value), int(step), int(at) / 1000)
