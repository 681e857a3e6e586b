"""A sweep in a cluster as it is now, put together from its workflow, its pods and MLflow."""

import itertools
import math
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any, Final
from urllib.parse import urlsplit

from mlflow.entities import Run
from mlflow.exceptions import MlflowException
from mlflow.tracking import MlflowClient

from controllers.core import labels
from controllers.core.actions import Assessment
from controllers.core.errors import SpeconError
from controllers.core.forecast import EndRange, Forecast
from controllers.core.model import Category, NodeName, Phase, Progress, Snapshot, Trial, TrialId
from controllers.core.objectives import missing_objectives, with_what_they_logged
from controllers.core.promises import promises_told
from controllers.core.results import RunResult, told_remarks
from controllers.core.stop_rules import why_ended
from controllers.tracking.access import shown
from controllers.tracking.bounded_answers import TooMuchError
from controllers.tracking.client import CarefulClient
from controllers.tracking.logins import ForeignAddressError, check_address
from controllers.tracking.metric_source import FoundRun, believed, found_in_json, found_in_store, search_runs
from controllers.tracking.mlflow_source import Scope, newest_finite
from controllers.tracking.newest_by_time import MARKS, may_go_back, newest_by_time, unknown
from controllers.tracking.script_runs import Whereabouts
from controllers.tracking.values import MetricPoint
from controllers.worlds.argo.calls.untrusted import epoch, text
from controllers.worlds.argo.meaning.limits import given_up
from controllers.worlds.argo.meaning.shown import result_of, trial_of
from controllers.worlds.argo.meaning.trials import PodHistory, TrialState, group_by_trial
from controllers.worlds.argo.reading.planned import planned_trials
from controllers.worlds.argo.reading.pods import PodRecord
from controllers.worlds.argo.reading.workflows import WorkflowRecord, record_of
from hera_specon import formatting
from hera_specon.cluster.access import Access, find_workflow, read_pods, workflow_record
from hera_specon.records.tracked import TAG_POLICY
from hera_specon.sweep_state import SweepState
from mlflow_hooks import contract

_MOST_RUNS: Final = 20_000
_POINTS_S: Final = 5.0
"""Seconds for the points of trials that have ended: whose turn does not come is shown with its greatest step."""
_TOO_LONG: Final = "MLflow takes too long to tell all points"
_MOST_TEXT: Final = 300
_MOST_ERROR: Final = 100
_MOST_MESSAGE: Final = 300
_END_TAGS: Final = (contract.TAG_END_EARLIEST, contract.TAG_END, contract.TAG_END_LATEST)
RECOMMENDED: Final = "specon.recommended."
"""Begins the tags of a controller that acts on nothing; the rest is that of the tag it stands for."""


class MlflowUnreachableError(SpeconError):
    """MLflow does not answer, or its address is none."""


@dataclass(frozen=True, slots=True)
class Tracked:
    """A trial's run: the newest point of each metric that counts, the names of others, and tags. All untrusted.

    ``remark`` is what to know of the points, empty for nothing.
    """

    metrics: Mapping[str, MetricPoint]
    tags: Mapping[str, str]
    others: frozenset[str] = frozenset()
    remark: str = ""

    def assessment(self) -> Assessment | None:
        """Return what a policy thinks of the trial, None where none has said."""
        told = self._tag(contract.TAG_CATEGORY)
        category = Category(told) if told in set(Category) else None
        outlook = self._tag(contract.TAG_OUTLOOK)[:_MOST_TEXT]
        if category is None and not outlook:
            return None
        return Assessment(category, _finite(self._tag(contract.TAG_GROWTH)), outlook)

    def reason(self) -> str:
        """Return why it was acted on last."""
        return self._tag(contract.TAG_REASON)[:_MOST_TEXT]

    def end(self, origin: float) -> EndRange | None:
        """Return when it will end, in seconds after ``origin`` (Unix seconds); None where nobody has said."""
        instants = (_instant(self.tags.get(tag, "")) for tag in _END_TAGS)
        low, likely, high = (None if instant is None else instant - origin for instant in instants)
        if low is None or likely is None or high is None or not low <= likely <= high:
            return None
        return EndRange(low, likely, high)

    def progress(self, objective: str, also: Sequence[str] = ()) -> Progress | None:
        """Return how far it has come, None where it has not logged its objective; times are left out.

        ``also`` names the metrics that count beside that.
        """
        newest = self.metrics.get(objective)
        if newest is None or not math.isfinite(newest.value):
            return None
        total = self.metrics.get(contract.METRIC_STEPS_TOTAL)
        steps_total = int(total.value) if total is not None and 0 < total.value < 2**53 else None
        value, told = newest.value, newest_finite(self.metrics, also)
        return Progress(value, value, value, newest.step, at=0.0, steps_total=steps_total, also=told)

    def _tag(self, tag: str) -> str:
        return self.tags.get(tag) or self.tags.get(RECOMMENDED + tag.removeprefix("specon."), "")


def open_tracking(uri: str, *, named_by_reader: bool) -> MlflowClient:
    """Return a client of the tracking server at ``uri``.

    Raises:
        MlflowUnreachableError: It is no server's address, or a workflow names it and it would get the reader's login.
            A file that a manifest names is not opened.
    """
    if uri and not named_by_reader:
        try:
            check_address(uri, "the workflow")
        except ForeignAddressError as error:
            raise MlflowUnreachableError(str(error)) from error
    if urlsplit(uri).scheme not in {"http", "https"}:
        message = f"{shown(uri)!r} is not the address of an MLflow server, such as http://127.0.0.1:5000"
        raise MlflowUnreachableError(message)
    return CarefulClient(uri)


def _instant(text: str) -> float | None:
    """Return the Unix seconds of an instant as a forecast's tags have it."""
    try:
        return datetime.strptime(text, "%Y-%m-%dT%H:%M:%SZ").replace(tzinfo=UTC).timestamp()
    except (ValueError, OverflowError):
        return None


@dataclass(frozen=True, slots=True)
class TrackedSweeps:
    """What MLflow knows of each trial, and of each sweep by its id."""

    trials: Mapping[TrialId, Tracked] = field(default_factory=dict)
    sweeps: Mapping[str, Tracked] = field(default_factory=dict)

    def forecast(self, origin: float) -> Forecast:
        """Return what was foreseen last, in seconds after ``origin`` (Unix seconds)."""
        ends = {name: end for name, tracked in self.sweeps.items() if (end := tracked.end(origin)) is not None}
        trials = {name: end for name, tracked in self.trials.items() if (end := tracked.end(origin)) is not None}
        whole = [max(of) for of in zip(*((end.low, end.likely, end.high) for end in ends.values()), strict=True)]
        known = whole and len(ends) == len(self.sweeps)
        return Forecast(0.0, EndRange(*whole) if known else None, ends, trials)

    @property
    def cost(self) -> float | None:
        """What all sweeps have cost so far, None where nobody knows."""
        costs = [_finite(tracked.tags.get(contract.TAG_COST, "")) for tracked in self.sweeps.values()]
        known = [cost for cost in costs if cost is not None]
        return sum(known) if known else None


def tracked_sweeps(
    client: MlflowClient, sweeps: Mapping[str, str], counted: Mapping[TrialId, tuple[str, ...]]
) -> TrackedSweeps:
    """Return what is known of sweeps and of their trials: of several runs of one, that which its controller acts on.

    Args:
        client: of the tracking server.
        sweeps: the experiment of each sweep id.
        counted: the objective of each trial, and the metrics that count beside it.

    Raises:
        MlflowUnreachableError: MLflow does not answer.
    """
    try:
        experiments = [
            experiment for name in sorted(set(sweeps.values())) if (experiment := client.get_experiment_by_name(name))
        ]
        ids = [str(experiment.experiment_id) for experiment in experiments]
        if not ids:
            return TrackedSweeps()
        trials = {trial: found for sweep in sweeps for trial, found in _trials(client, ids, sweep, counted).items()}
        parents = {sweep: run for sweep in sweeps for run in _parents(client, ids, sweep)}
    except (MlflowException, OSError, TooMuchError) as error:
        message = f"MLflow does not answer ({str(error)[:_MOST_ERROR]})"
        raise MlflowUnreachableError(message) from error
    return TrackedSweeps(trials, {sweep: Tracked({}, run.data.tags) for sweep, run in parents.items()})


def _trials(
    client: MlflowClient, home: Sequence[str], sweep: str, counted: Mapping[TrialId, tuple[str, ...]]
) -> dict[TrialId, Tracked]:
    """Return what is known of the trials of a sweep; scripts may log to experiments of their own."""
    where = Whereabouts(client, lambda: Scope(home, sweep))
    found = _runs(client, home, sweep, counted)
    if {trial for trial in counted if trial.rpartition(".")[0] == sweep} - {run.trial for run, _ in found}:
        where.look()
        found += _runs(client, list(where.elsewhere), sweep, counted) if where.elsewhere else []
    objectives = {trial: names[0] for trial, names in counted.items()}
    tags = {run.run_id: told for run, told in found}
    counts = believed((run for run, _ in found if run.trial in counted), objectives)
    give_up = time.monotonic() + _POINTS_S
    for trial, run in counts.items():
        if may_go_back(run):
            in_time = time.monotonic() < give_up
            counts[trial] = newest_by_time(client, run, counted[trial]) if in_time else unknown(run, _TOO_LONG)
    return {trial: Tracked(run.metrics, tags[run.run_id], run.others, run.remark) for trial, run in counts.items()}


def _runs(
    client: MlflowClient, experiments: Sequence[str], sweep: str, counted: Mapping[TrialId, tuple[str, ...]]
) -> list[tuple[FoundRun, Mapping[str, str]]]:
    """Return the runs of the trials of a sweep, with their tags."""
    # An id comes from the cluster; its form was checked, so it cannot end the quotes.
    wanted = f"tags.`{contract.TAG_SWEEP_ID}` = '{sweep}' AND tags.`{contract.TAG_TRIAL_ID}` != ''"
    ours = (*MARKS, contract.METRIC_STEPS_TOTAL)
    metrics = tuple(dict.fromkeys((*itertools.chain.from_iterable(counted.values()), *ours)))
    runs = search_runs(
        client,
        experiments,
        wanted,
        lambda run: (found_in_json(run, metrics), {tag["key"]: str(tag["value"]) for tag in run["data"]["tags"]}),
        lambda run: (found_in_store(run, metrics), run.data.tags),
    )
    return list(itertools.islice(runs, _MOST_RUNS))


def _parents(client: MlflowClient, experiments: Sequence[str], sweep: str) -> Sequence[Run]:
    """Return the newest run of a sweep itself, none where it has none yet."""
    wanted = f"tags.`{contract.TAG_SWEEP_ID}` = '{sweep}' AND tags.`{TAG_POLICY}` != ''"
    newest = ["attributes.start_time DESC"]
    runs = client.search_runs(list(experiments), wanted, max_results=1, order_by=newest)
    return [run for run in runs if contract.TAG_TRIAL_ID not in run.data.tags]


def _finite(text: str) -> float | None:
    try:
        value = float(text)
    except ValueError:
        return None
    return value if math.isfinite(value) else None


def read_state(access: Access, wanted: str | None, tracking_uri: str | None) -> SweepState:
    """Return the sweep that ``wanted`` names: by its workflow, by its own name, or the newest for None.

    Args:
        access: The cluster and namespace.
        wanted: See above.
        tracking_uri: Where MLflow answers from here; None for the address that the pods use.

    Raises:
        SpeconError: There is no such sweep, or the cluster does not answer. MLflow may be away: what is missing
            then stands in the state.
    """
    workflow = find_workflow(access, wanted)
    record = workflow_record(workflow)
    pods = [pod for pod in read_pods(access, record.name) if pod.workflow_uid == record.uid]
    states = trial_states(record, pods)
    known, missing = _read_tracked(record, states, tracking_uri)
    tracked = known.trials
    if record.unread:
        lost = "trials without pods are not shown, and none as failed before the workflow ends"
        missing = (*missing, f"The nodes of Argo's record {record.unread}: {lost}.")
    if record.finished:
        steered = "it is over"
    elif record.annotations.get(labels.ANNOTATION_ADOPTED) == record.uid:
        steered = "a controller steers it"
    else:
        steered = "no controller has adopted it: trials run where the scheduler put them"
    ended = epoch(workflow, "status", "finishedAt")
    message = text(workflow, "status", "message")[:_MOST_MESSAGE]
    stopped = [(state.definition.sweep, state.stopped) for state in states.values()]
    return SweepState(
        name=record.name,
        where=f"in namespace {record.namespace}",
        phase=(record.phase or "Pending") + (f" ({message})" if message else ""),
        policy=_policies(record),
        steered=steered,
        total=max(len(states), len(planned_trials(workflow, (sweep.id for sweep in record.sweeps), {}))),
        snapshot=Snapshot(
            now=max(0.0, (ended or time.time()) - record.created_at),
            trials=tuple(_show_trial(state, record, tracked.get(name)) for name, state in sorted(states.items())),
            nodes=(),
        ),
        assessments={
            name: assessment for name, trial in tracked.items() if (assessment := trial.assessment()) is not None
        },
        reasons={name: trial.reason() for name, trial in tracked.items()} | _failures(states) | _queued(states),
        missing=missing,
        forecast=known.forecast(record.created_at),
        cost=known.cost,
        endings=why_ended(stopped),
        promises=promises_told(stopped),
        over=record.finished,
        warnings=(
            *(() if missing else _objective_lines(record, states, known)),
            *_unsaved(record),
            *_kept_shares(states),
            *told_remarks({formatting.short_id(name): trial.remark for name, trial in tracked.items()}),
        ),
    )


def objective_warnings(workflow: Mapping[str, Any], tracking_uri: str | None) -> tuple[str, ...]:
    """Return what is wrong with the objectives of a workflow's sweeps; nothing where MLflow does not tell.

    Args:
        workflow: As the API server has it.
        tracking_uri: Where MLflow answers from here; None for the address that the pods use.
    """
    record = record_of(dict(workflow))
    if record is None:
        return ()
    if record.unread:
        return (f"the nodes of Argo's record {record.unread}: whether trials lack their objective is not known here",)
    states = trial_states(record, ())
    known, missing = _read_tracked(record, states, tracking_uri)
    return () if missing else _objective_lines(record, states, known)


def _objective_lines(
    record: WorkflowRecord, states: Mapping[TrialId, TrialState], known: TrackedSweeps
) -> tuple[str, ...]:
    logged = {formatting.short_id(name): run.others | run.metrics.keys() for name, run in known.trials.items()}
    trials = [result_of(state, formatting.short_id(name), None, record.created_at) for name, state in states.items()]
    told = with_what_they_logged(trials, lambda trial: logged.get(trial.id, frozenset()))
    return missing_objectives(RunResult(_policies(record), told)).lines


def _policies(record: WorkflowRecord) -> str:
    return ", ".join(sorted({sweep.policy or "of the controller" for sweep in record.sweeps}))


def trial_states(record: WorkflowRecord, pods: Sequence[PodRecord]) -> Mapping[TrialId, TrialState]:
    """Return the trials that have a step or a pod."""
    steps = {step.definition.id: step for step in record.steps.values()}
    by_trial = group_by_trial(pods)
    facts = {pod.definition.id: pod.definition for pod in pods if pod.definition is not None}
    facts |= {name: step.definition for name, step in steps.items()}
    return {
        name: TrialState(
            of,
            steps.get(name),
            PodHistory().after(by_trial.get(name, [])),
            record.over_since,
            record.notes(of),
        )
        for name, of in facts.items()
    }


def _failures(states: Mapping[TrialId, TrialState]) -> dict[TrialId, str]:
    """Return how those trials failed that have, as far as their pods are still there."""
    told = {}
    for name, state in states.items():
        newest = state.history.newest
        if state.phase is Phase.FAILED and newest is not None and newest.failure is not None:
            again = ", twice alike at once: it was not tried again" if given_up(state) else ""
            told[name] = f"exit code {newest.failure.code}: {newest.failure.words or 'it said nothing'}{again}"
    return told


def _queued(states: Mapping[TrialId, TrialState]) -> dict[TrialId, str]:
    """Return of the trials that wait for Kueue in which queue they do."""
    told = {}
    for name, state in states.items():
        attempt = None if state.phase.ended else state.attempt
        if attempt is not None and attempt.queued and not attempt.over and attempt.lead.queueing is not None:
            queue = attempt.lead.queueing.queue
            told[name] = f"waits for Kueue to admit it{f' from queue {queue}' if queue else ''}"
    return told


def _unsaved(record: WorkflowRecord) -> tuple[str, ...]:
    """Return why states of the controller are not kept."""
    told = sorted(record.annotations.items())
    return tuple(why[:_MOST_MESSAGE] for name, why in told if name.startswith(labels.ANNOTATION_UNSAVED))


def _kept_shares(states: Mapping[TrialId, TrialState]) -> tuple[str, ...]:
    """Return why the shares of some trials never change, once for all of them."""
    running = (state.attempt for state in states.values() if not state.phase.ended)
    whys = [why for attempt in running if attempt is not None and (why := attempt.why_no_shares)]
    return tuple(f"{whys.count(why)} trials keep their shares: {why}" for why in dict.fromkeys(whys))


def _show_trial(state: TrialState, record: WorkflowRecord, tracked: Tracked | None) -> Trial:
    trial, attempt = trial_of(state, record.created_at), state.attempt
    recorded = state.step.attempts[-1].node if state.step is not None and state.step.attempts else ""
    nodes = attempt.nodes if attempt is not None and attempt.node else (recorded,) if recorded else ()
    if trial.phase.ended and nodes:
        # The world shows an ended trial on no node; people want to know where it ran.
        trial = replace(trial, nodes=tuple(NodeName(node) for node in nodes))
    return (
        trial
        if tracked is None
        else replace(trial, progress=tracked.progress(state.definition.objective, trial.aims.metrics))
    )


def _read_tracked(
    record: WorkflowRecord, states: Mapping[TrialId, TrialState], given: str | None
) -> tuple[TrackedSweeps, tuple[str, ...]]:
    uri = given or next((sweep.tracking_uri for sweep in record.sweeps if sweep.tracking_uri), "")
    try:
        return tracked_sweeps(
            open_tracking(uri, named_by_reader=bool(given)),
            {sweep.id: sweep.experiment for sweep in record.sweeps},
            {name: _counted(state) for name, state in states.items()},
        ), ()
    except MlflowUnreachableError as error:
        advice = "" if given else "; say where it answers from here with --mlflow-tracking-uri"
        where = shown(uri) or "no MLflow is named"
        told = f"Category, growth, step, metric and reason are missing: {where}: {shown(str(error))}{advice}"
        return TrackedSweeps(), (told,)


def _counted(state: TrialState) -> tuple[str, ...]:
    aims = state.definition.aims
    return (state.definition.objective, *(aims.metrics if aims else ()))
