"""Progress out of MLflow: one bulk query for a whole sweep, whatever its number of trials.

Whatever MLflow holds is untrusted data.
"""

import itertools
import json
import logging
import math
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from mlflow.exceptions import MlflowException
from mlflow.tracking import MlflowClient
from mlflow.utils.credentials import get_default_host_creds
from mlflow.utils.rest_utils import http_request
from urllib3.exceptions import HTTPError

from controllers.core.errors import SpeconError
from controllers.core.model import Sample, TrialId
from controllers.tracking.access import shown
from mlflow_hooks import contract

_LOG = logging.getLogger(__name__)
_PAGE: Final = 500
"""Runs asked for at once: MLflow takes about a millisecond for each."""
_SEARCH: Final = "/api/2.0/mlflow/runs/search"
_ANSWER_S: Final = 30
"""Seconds that a page may take: nobody waits for it, and a busy server is not away."""
_POLL_S: Final = 60.0
"""Seconds that all pages together may take: the next sweep is waiting."""
_MOST_ANSWER: Final = 16 * 2**20
_MOST_PARTS: Final = 1_000_000
"""Bytes of an answer, of which one wide character makes four times as many in memory, and values in it: these take a
hundred megabytes."""
_OTHER_KIND: Final = "MLflow answered a search of runs with JSON of another kind"
_FEWER: Final = 8
_MOST_OTHERS: Final = 20
_LONGEST_NAME: Final = 100
_OURS: Final = (contract.METRIC_CPU_SECONDS, contract.METRIC_OBJECTIVE_FIRST, contract.METRIC_STEPS_TOTAL)
_WITHOUT_OBJECTIVE_S = 60.0
_LAG_S: Final = 15.0
"""Seconds that a report may take from its trial to MLflow."""


class TooMuchError(SpeconError):
    """MLflow answered with more than this process will hold."""


@dataclass(frozen=True, slots=True)
class Reported:
    """One metric's newest point as MLflow keeps it."""

    value: float
    step: int
    epoch_s: float


@dataclass(frozen=True, slots=True)
class FoundRun:
    """A trial's run, the newest point of each of its metrics that are wanted, and the names of some others."""

    trial: TrialId
    run_id: str
    metrics: Mapping[str, Reported]
    others: frozenset[str] = frozenset()

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


def believed(found: Iterable[FoundRun]) -> dict[TrialId, FoundRun]:
    """Return the run of each trial. Of several, given the newest first, that is the oldest of those with data.

    A controller that was killed, or that MLflow answered too late, leaves one without; so does a request that MLflow
    hears after another run was made.
    """
    runs: dict[TrialId, FoundRun] = {}
    for run in found:
        known = runs.get(run.trial)
        if known is None or run.holds_data or not known.holds_data:
            runs[run.trial] = run
    return runs


def _of_store(
    client: MlflowClient, experiments: Sequence[str], wanted: str, metrics: Collection[str]
) -> Iterator[FoundRun]:
    token: str | None = None
    while True:
        page = client.search_runs(list(experiments), wanted, max_results=_PAGE, page_token=token)
        for run in page:
            # run.data.metrics drops step and timestamp; the protobuf form keeps them.
            found = {m.key: Reported(m.value, m.step, m.timestamp / 1000) for m in run.data.to_proto().metrics}
            trial = TrialId(run.data.tags[contract.TAG_TRIAL_ID])
            yield _of_interest(trial, run.info.run_id, found, metrics)
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
            found = [_found_in_json(run, metrics) for run in answer.get("runs", ())]
        except (LookupError, TypeError, ValueError, AttributeError, ArithmeticError) as error:
            message = f"{_OTHER_KIND}: {str(error)[:200]}"
            raise MlflowException(message) from error
        yield from found
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
        found = json.loads(content)
    except (ValueError, RecursionError) as error:
        message = f"MLflow answered a search of runs without JSON: {str(error)[:200]}"
        raise MlflowException(message) from error
    if not isinstance(found, dict):
        message = f"{_OTHER_KIND}: {found!r:.200}"
        raise MlflowException(message)
    return found


def _found_in_json(run: Mapping[str, Any], metrics: Collection[str]) -> FoundRun:
    data = run["data"]
    # No generator's next() here: its StopIteration would end the search as if there were no other run.
    trial = {tag["key"]: tag["value"] for tag in data["tags"]}[contract.TAG_TRIAL_ID]
    found = {one["key"]: _reported(one) if one["key"] in metrics else None for one in data.get("metrics", ())}
    run_id = run["info"]["run_id"]
    if not (run_id and all(isinstance(name, str) for name in (trial, run_id, *found))):
        message = f"a run {run_id!r} of trial {trial!r}"
        raise ValueError(message)
    return _of_interest(TrialId(trial), run_id, found, metrics)


def _of_interest(trial: TrialId, run_id: str, found: Mapping[str, Any], metrics: Collection[str]) -> FoundRun:
    """Return what is kept of a run: some trials log thousands of metrics that nobody looks at here."""
    others = itertools.islice((name for name in found if name not in metrics), _MOST_OTHERS)
    kept = {name: found[name] for name in metrics if name in found}
    return FoundRun(trial, run_id, kept, frozenset(name[:_LONGEST_NAME] for name in others))


def _reported(metric: Mapping[str, Any]) -> Reported:
    # Zero is left out of protobuf's JSON, and not-a-number is a string in it: both are what float and int take.
    value, step, at = (metric.get(name, 0) for name in ("value", "step", "timestamp"))
    return Reported(float(value), int(step), int(at) / 1000)


@dataclass(frozen=True, slots=True)
class Scope:
    """Where a sweep's trials are found: their experiments, and what their ``specon.sweep_id`` begins with."""

    experiment_ids: Sequence[str]
    sweep_prefix: str


@dataclass(frozen=True, slots=True)
class _Stamp:
    """A report by its step and its node's clock, and when it was made by ours, in Unix seconds."""

    report: tuple[int, float]
    epoch_s: float


class MlflowSource:
    """Reads the newest point of each trial's metrics.

    Args:
        client: a client of the tracking server.
        scope: tells where the trials log to, as far as that is known.
        objectives: name of the objective of each trial known so far.
        to_sweep_time: turns Unix seconds into seconds of the sweep's clock.
        epoch: gives the time in Unix seconds.
    """

    def __init__(
        self,
        client: MlflowClient,
        scope: Callable[[], Scope],
        objectives: Callable[[], Mapping[TrialId, str]],
        to_sweep_time: Callable[[float], float],
        epoch: Callable[[], float] = time.time,
    ) -> None:
        self._epoch = epoch
        self._stamps: dict[TrialId, _Stamp] = {}
        self._polled_s = -math.inf
        self._client = client
        self._scope = scope
        self._objectives = objectives
        self._to_sweep_time = to_sweep_time
        self.run_ids: Mapping[TrialId, str] = {}
        self.logged: Mapping[TrialId, frozenset[str]] = {}
        self.away = False

    def poll(self) -> Mapping[TrialId, Sample]:
        """Return the newest sample of each trial; empty, and ``away`` set, if MLflow does not answer."""
        try:
            objectives = self._objectives()
            runs = believed(self._find_runs(objectives))
        except (MlflowException, OSError, TooMuchError) as error:
            if not self.away:
                _LOG.warning("MLflow does not answer: %s", shown(str(error))[:200])
            self.away = True
            return {}
        self.away = False
        now = self._epoch()
        self._stamps = {
            trial: stamp
            for trial, run in runs.items()
            if (stamp := self._stamped(trial, run.metrics.get(objectives.get(trial, "")), now)) is not None
        }
        self._polled_s = now
        self.run_ids = {trial: run.run_id for trial, run in runs.items()}
        self.logged = {trial: run.others | run.metrics.keys() for trial, run in runs.items()}
        samples = {trial: self._sample(trial, run.metrics, objectives.get(trial, "")) for trial, run in runs.items()}
        return {trial: sample for trial, sample in samples.items() if sample is not None}

    def _find_runs(self, objectives: Mapping[TrialId, str]) -> Sequence[FoundRun]:
        """Return the runs of the trials in ``objectives``: anybody may give a run the mark of somebody else's sweep."""
        scope = self._scope()
        wanted = f"tags.`{contract.TAG_SWEEP_ID}` LIKE '{scope.sweep_prefix}%' AND tags.`{contract.TAG_TRIAL_ID}` != ''"
        if not scope.experiment_ids:
            return []
        metrics = (*dict.fromkeys(objectives.values()), *_OURS)
        give_up = time.monotonic() + _POLL_S
        found: list[FoundRun] = []
        for run in find_runs(self._client, scope.experiment_ids, wanted, metrics):
            if run.trial in objectives:
                found.append(run)
            if time.monotonic() > give_up:
                message = f"the runs of {scope.sweep_prefix}* take more than {_POLL_S:g} s to read"
                raise TooMuchError(message)
        return found

    def _stamped(self, trial: TrialId, newest: Reported | None, now: float) -> "_Stamp | None":
        """Return when a report was made, whatever the clock of its node says: after the last look, and before now."""
        if newest is None:
            return None
        known = self._stamps.get(trial)
        if known is not None and known.report == (newest.step, newest.epoch_s):
            return known
        # A run that was not there before may have begun before the last look, as after an outage of MLflow.
        earliest = -math.inf if known is None else max(known.epoch_s, self._polled_s - _LAG_S)
        return _Stamp((newest.step, newest.epoch_s), min(max(newest.epoch_s, earliest), now))

    def _sample(self, trial: TrialId, metrics: Mapping[str, Reported], objective: str) -> Sample | None:
        newest = metrics.get(objective)
        if newest is None:
            return None
        total = _value(metrics, contract.METRIC_STEPS_TOTAL)
        return Sample(
            value=newest.value,
            step=newest.step,
            at=self._to_sweep_time(self._stamps[trial].epoch_s),
            cpu_seconds=_value(metrics, contract.METRIC_CPU_SECONDS),
            first=_value(metrics, contract.METRIC_OBJECTIVE_FIRST),
            steps_total=int(total) if total is not None and 0 < total < 2**53 else None,
        )


def _value(metrics: Mapping[str, Reported], name: str) -> float | None:
    found = metrics.get(name)
    return None if found is None else found.value


class ObjectiveWatch:
    """Notices a trial that never logs its objective, a minute after its first metrics."""

    def __init__(self) -> None:
        self._since: dict[TrialId, float] = {}

    def complaints(
        self,
        now: float,
        objectives: Mapping[TrialId, str],
        logged: Mapping[TrialId, frozenset[str]],
        ended: Collection[TrialId],
    ) -> Mapping[TrialId, str]:
        """Look once, at ``now`` seconds; return for each such trial its objective, and what it does log."""
        found: dict[TrialId, str] = {}
        for trial, objective, ours in _without_objective(objectives, logged):
            since = self._since.setdefault(trial, now)
            if trial in ended or now - since > _WITHOUT_OBJECTIVE_S:
                found[trial] = (
                    f"trial {trial} never logged its objective {objective!r} in {now - since:.0f} s of logging "
                    f"{', '.join(sorted(ours))}: name one of these in Sweep(objective=...), or log {objective!r}"
                )
        return found


def _without_objective(
    objectives: Mapping[TrialId, str], logged: Mapping[TrialId, frozenset[str]]
) -> Iterator[tuple[TrialId, str, frozenset[str]]]:
    """Yield the trials that log something, but not their objective, with the names of their own metrics."""
    for trial, names in logged.items():
        objective = objectives.get(trial)
        ours = frozenset(name for name in names if not name.startswith("specon."))
        if objective is not None and objective not in names and ours:
            yield trial, objective, ours
