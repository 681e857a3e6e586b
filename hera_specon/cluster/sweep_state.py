"""A sweep in a cluster as it is now, put together from its workflow, its pods and MLflow."""

import time
from collections.abc import Mapping, Sequence
from dataclasses import replace

from controllers.core import labels
from controllers.core.model import NodeName, Snapshot, Trial, TrialId
from controllers.worlds.argo.api import Json
from controllers.worlds.argo.pods import PodRecord
from controllers.worlds.argo.trials import PodHistory, TrialState, group_by_trial
from controllers.worlds.argo.untrusted import epoch, mappings, text
from controllers.worlds.argo.workflows import WorkflowRecord
from hera_specon.cluster.access import Access
from hera_specon.cluster.records import find_workflow, read_pods, workflow_record
from hera_specon.cluster.tracked import Tracked, TrackingError, open_tracking, tracked_trials
from hera_specon.display.state import SweepState

_MOST_MESSAGE = 300


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
    tracked, missing = _tracked(record, tracking_uri)
    states = _trial_states(record, pods)
    ended = epoch(workflow, "status", "finishedAt")
    return SweepState(
        name=record.name,
        where=f"in namespace {record.namespace}",
        phase=_phase(workflow, record),
        policy=", ".join(sorted({sweep.policy or "of the controller" for sweep in record.sweeps})),
        steered=_steered(record),
        total=max(len(states), planned_trials(workflow, record)),
        snapshot=Snapshot(
            now=max(0.0, (ended or time.time()) - record.created_at),
            trials=tuple(_shown(state, record, tracked.get(name)) for name, state in sorted(states.items())),
            nodes=(),
        ),
        assessments={name: found for name, known in tracked.items() if (found := known.assessment()) is not None},
        reasons={name: known.reason() for name, known in tracked.items()},
        missing=(*missing, *_unknown(record, states)),
        over=record.finished,
    )


def planned_trials(workflow: Json, record: WorkflowRecord) -> int:
    """Return how many trials the sweeps of a workflow have by their templates, begun or not."""
    names = {sweep.id.removeprefix(f"{record.sweep_uid}.") for sweep in record.sweeps}
    starting = [template for template in mappings(workflow, "spec", "templates") if text(template, "name") in names]
    groups = [group for template in starting for group in template.get("steps") or [] if isinstance(group, list)]
    items = [step.get("withItems") for group in groups for step in group if isinstance(step, Mapping)]
    return sum(len(found) for found in items if isinstance(found, list))


def _phase(workflow: Json, record: WorkflowRecord) -> str:
    message = text(workflow, "status", "message")[:_MOST_MESSAGE]
    return (record.phase or "Pending") + (f" ({message})" if message else "")


def _steered(record: WorkflowRecord) -> str:
    if record.finished:
        return "it is over"
    if record.annotations.get(labels.ANNOTATION_ADOPTED) == record.uid:
        return "a controller steers it"
    return "no controller has taken it up: trials run where the scheduler put them"


def _trial_states(record: WorkflowRecord, pods: Sequence[PodRecord]) -> Mapping[TrialId, TrialState]:
    steps = {step.definition.id: step for step in record.steps.values()}
    by_trial = group_by_trial(pods)
    facts = {pod.definition.id: pod.definition for pod in pods if pod.definition is not None}
    facts |= {name: step.definition for name, step in steps.items()}
    return {
        name: TrialState(of, steps.get(name), PodHistory().after(by_trial.get(name, [])), record.over_since)
        for name, of in facts.items()
    }


def _shown(state: TrialState, record: WorkflowRecord, tracked: Tracked | None) -> Trial:
    trial = state.as_trial(record.created_at, gate_opens=False)
    if trial.phase.ended and (node := _last_node(state)):
        trial = replace(trial, nodes=(node,))
    return trial if tracked is None else replace(trial, progress=tracked.progress(state.definition.objective))


def _last_node(state: TrialState) -> NodeName:
    """Return where a trial ran last, by its newest pod or by Argo's record; empty where neither knows."""
    recorded = state.step.attempts[-1].node if state.step is not None and state.step.attempts else ""
    return NodeName(state.pod.node if state.pod is not None and state.pod.node else recorded)


def _tracked(record: WorkflowRecord, given: str | None) -> tuple[Mapping[TrialId, Tracked], tuple[str, ...]]:
    uri = given or next((sweep.tracking_uri for sweep in record.sweeps if sweep.tracking_uri), "")
    try:
        return tracked_trials(open_tracking(uri), {sweep.id: sweep.experiment for sweep in record.sweeps}), ()
    except TrackingError as error:
        advice = "" if given else "; say where it answers from here with --mlflow-tracking-uri"
        told = f"Category, growth, step, metric and reason are missing: {uri or 'no MLflow is named'}: {error}{advice}"
        return {}, (told,)


def _unknown(record: WorkflowRecord, states: Mapping[TrialId, TrialState]) -> tuple[str, ...]:
    if record.steps or not states or not record.finished:
        return ()
    return ("Argo keeps the steps of this workflow in a database: trials whose pods are gone are not shown.",)
