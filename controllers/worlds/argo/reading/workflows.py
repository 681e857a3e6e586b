"""Small records of workflows: which trials a workflow has begun, and how each step of them went."""

import math
import threading
import time
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from controllers.core import labels
from controllers.core.after_attempt import LEFT
from controllers.core.after_sweeps import NOT_AFTER, AfterSweeps, after_in
from controllers.core.annotations import most_read_of, size_of
from controllers.core.expressions import SWEEP_UID
from controllers.core.means import NO_MEANS, Means, means_in
from controllers.core.ports import ComingTrial
from controllers.core.queue_places import priority_in, weight_in
from controllers.core.stop_rules import NO_RULES, StopRules, rules_in
from controllers.worlds.argo.calls.api import Json
from controllers.worlds.argo.calls.untrusted import (
    PackedError,
    TooManyPartsError,
    at,
    count,
    epoch,
    gunzipped,
    mappings,
    parsed,
    text,
)
from controllers.worlds.argo.reading.definitions import TrialDefinition, aims_noted, warn_once
from controllers.worlds.argo.reading.planned import holds_trials_back, planned_trials
from controllers.worlds.argo.reading.plans import NO_PLAN, GangPlan
from controllers.worlds.argo.reading.pods import PodRecord, Resources
from controllers.worlds.argo.reading.templates import (
    EXPERIMENT,
    MOST_TEXT,
    NO_RETRIES,
    TRACKING_URI,
    Definitions,
    Retries,
    Template,
    filled,
    trial_templates,
)
from mlflow_hooks import contract

_MOST_NODES_BYTES = 32 * 2**20
_MOST_NODES_PARTS = 1_000_000
"""A few kilobytes of gzip can unpack to gigabytes. A step of Argo's takes about fifty values and a kilobyte."""
_MOST_STEPS = 20_000
_MOST_PARAMETER = 2**13
_MOST_UID = 253
_ONE_AT_A_TIME = threading.Lock()
_BAD_ENDS = frozenset({"Failed", "Error"})
_ENDS = frozenset({"Succeeded", *_BAD_ENDS})
_NEVER_RUN = frozenset({"Skipped", "Omitted"})
FORGET_AFTER_S: Final = 6 * 3600.0
"""Seconds after its end until a workflow is forgotten."""


@dataclass(frozen=True, slots=True)
class AttemptRecord:
    """One attempt of a step as Argo recorded it; it outlives the pods.

    ``node`` is where it ran, of a gang rank 0. ``exit_code`` is None where it is not known; that of a gang tells that
    it left only if all its workers did. ``killed`` tells that it was ended by force for a move.
    """

    node: str
    exit_code: int | None
    killed: bool = False

    @property
    def interrupted(self) -> bool:
        """Whether it left, or was lost once it had run, of an attempt that is over."""
        return self.exit_code in LEFT or self.killed or (self.exit_code is None and bool(self.node))


@dataclass(frozen=True, slots=True)
class Step:
    """A trial's step over all its attempts; it has ended only when Argo is done with it or has given up.

    ``asked`` is what its template asks for each worker, 0 where that is not plain; ``retries`` is what it says of
    further attempts.
    """

    name: str
    definition: TrialDefinition
    phase: str
    started_at: float | None
    finished_at: float | None
    attempts: tuple[AttemptRecord, ...]
    asked: Resources
    retries: Retries = NO_RETRIES

    @property
    def succeeded(self) -> bool:
        """Whether it came to a good end."""
        return self.phase == "Succeeded"

    @property
    def failed(self) -> bool:
        """Whether Argo makes no more attempts."""
        return self.phase in _BAD_ENDS


@dataclass(frozen=True, slots=True)
class SweepDefinition:
    """A sweep as the workflow's templates define it.

    ``weight`` and ``priority`` count within its namespace. ``several`` tells that it has several objectives.
    """

    id: str
    policy: str | None
    experiment: str
    tracking_uri: str
    weight: float = 1.0
    priority: int = 0
    means: Means = NO_MEANS
    stops: StopRules = NO_RULES
    after: AfterSweeps = NOT_AFTER
    several: bool = False


@dataclass(frozen=True, slots=True)
class TrialNotes:
    """What a workflow's annotations say of one of its trials.

    ``stopped`` is why it was stopped, empty where it was not; ``plan`` is a gang's. ``tries`` is after how many
    attempts a failure is the last, ``idle`` after how many one that leaves is; None where no controller has said.
    """

    stopped: str = ""
    plan: GangPlan = NO_PLAN
    tries: int | None = None
    idle: int | None = None


NO_NOTES: Final = TrialNotes()


@dataclass(frozen=True, slots=True)
class WorkflowRecord:
    """A workflow that has sweeps.

    ``sweep_uid`` begins the ids of its trials: its own uid, or that of the workflow which it continues.
    ``steps`` is by Argo's name of the step; empty where they are not to be read. ``to_come`` are trials that
    have no step yet. ``pod_ids`` is how Argo's record calls the pods that it made; empty where it is not to be read.
    ``unread`` says of the nodes of Argo's record why they are not to be read, None where they are.
    """

    uid: str
    sweep_uid: str
    namespace: str
    name: str
    phase: str
    created_at: float
    finished_at: float | None
    annotations: Mapping[str, str]
    sweeps: tuple[SweepDefinition, ...]
    steps: Mapping[str, Step] = field(default_factory=dict)
    to_come: tuple[ComingTrial, ...] = ()
    pod_ids: frozenset[str] = frozenset()
    unread: str | None = None

    def made(self, pod: PodRecord) -> bool:
        """Return whether Argo made ``pod`` for this workflow, as far as can be seen: anybody may name it as its owner.

        A pod that Argo made just now counts once Argo's record has it, a moment later.
        """
        ours = (pod.namespace, pod.workflow, pod.workflow_uid) == (self.namespace, self.name, self.uid)
        return ours and (not self.pod_ids or pod.node_id in self.pod_ids) and self.owns_id(pod)

    def owns_id(self, pod: PodRecord) -> bool:
        """Return whether the identity of a pod's trial is one of this workflow's trials."""
        return pod.definition is None or pod.definition.id.startswith(f"{self.sweep_uid}.")

    @property
    def weight(self) -> int:
        """How much room it takes, in kilobytes, roughly."""
        texts = sum(step.definition.length for step in self.steps.values())
        texts += sum(len(sweep.policy or "") + len(sweep.experiment) + len(sweep.tracking_uri) for sweep in self.sweeps)
        return 1 + len(self.steps) + len(self.to_come) + (texts + size_of(self.annotations)) // 1024

    @property
    def adopted(self) -> bool:
        """Whether it is marked as steered."""
        return self.annotations.get(labels.ANNOTATION_ADOPTED) == self.uid

    @property
    def finished(self) -> bool:
        """Whether the whole workflow is over."""
        return self.phase in _ENDS

    @property
    def failed(self) -> bool:
        """Whether it came to a bad end."""
        return self.phase in _BAD_ENDS

    def notes(self, trial: TrialDefinition) -> TrialNotes:
        """Return what the annotations say of ``trial``."""
        return TrialNotes(
            self.annotations.get(trial.mark(labels.ANNOTATION_STOP), ""),
            GangPlan.of(self.annotations, trial) if trial.gang else NO_PLAN,
            self._count(trial.mark(labels.ANNOTATION_TRIES)),
            self._count(trial.mark(labels.ANNOTATION_IDLE)),
        )

    def _count(self, mark: str) -> int | None:
        written = self.annotations.get(mark, "")
        return count(written) if written else None

    @property
    def over_since(self) -> float | None:
        """When it ended, in Unix seconds (infinite where that is not known); None while it runs."""
        return (self.finished_at or math.inf) if self.finished else None


def project_workflow(workflow: Json, now: float | None = None) -> WorkflowRecord | None:
    """Return the record of a workflow; None where it has no sweep, or ended long ago.

    Args:
        workflow: any JSON.
        now: Unix seconds by the clock that stamped it, None for those of our own.
    """
    finished = epoch(workflow, "status", "finishedAt")
    if finished is not None and (time.time() if now is None else now) - finished > FORGET_AFTER_S:
        return None
    # Several that are small and unpack to much would together take more than there is.
    with _ONE_AT_A_TIME:
        return record_of(workflow)


def record_of(workflow: Json) -> WorkflowRecord | None:
    """Return the record of a workflow, however long ago it ended; None where it has no sweep."""
    templates = trial_templates(workflow)
    uid = text(workflow, "metadata", "uid")
    if not templates or not uid:
        return None
    given = mappings(workflow, "spec", "arguments", "parameters")
    continued = next(
        (text(p, "value", most=_MOST_UID) for p in given if text(p, "name") == labels.PARAMETER_CONTINUE), ""
    )
    sweep_uid = continued or uid
    known = {"workflow.uid": uid, "workflow.name": text(workflow, "metadata", "name"), SWEEP_UID: sweep_uid}
    nodes, unread = _nodes(workflow)
    if unread:
        name = known["workflow.name"]
        warn_once(f"nodes {uid}", f"the nodes of workflow {name} {unread}; only its pods tell how trials went")
    sweeps, steps = _sweeps(templates, known), _steps(workflow, nodes, templates, known)
    return WorkflowRecord(
        uid=uid,
        sweep_uid=sweep_uid,
        namespace=text(workflow, "metadata", "namespace"),
        name=known["workflow.name"],
        phase=text(workflow, "status", "phase"),
        created_at=epoch(workflow, "metadata", "creationTimestamp") or 0.0,
        finished_at=epoch(workflow, "status", "finishedAt"),
        annotations=_annotations(workflow),
        sweeps=sweeps,
        steps=steps,
        to_come=_to_come(workflow, templates, sweeps, steps),
        pod_ids=frozenset(key for key, node in nodes.items() if text(node, "type") == "Pod"),
        unread=unread,
    )


def _annotations(workflow: Json) -> dict[str, str]:
    """Return the workflow's annotations of ours, each as long as its writers may make it."""
    annotations = at(workflow, "metadata", "annotations")
    names = [name for name in annotations if isinstance(name, str)] if isinstance(annotations, Mapping) else []
    ours = {name: text(annotations, name, most=most_read_of(name)) for name in names if name.startswith(labels.DOMAIN)}
    return {name: value for name, value in ours.items() if value}


def _to_come(
    workflow: Json,
    templates: Mapping[str, Template],
    sweeps: tuple[SweepDefinition, ...],
    steps: Mapping[str, Step],
) -> tuple[ComingTrial, ...]:
    # Argo sends the whole workflow for every change of a step: most workflows need no second look at all their items.
    if not holds_trials_back(workflow):
        return ()
    requests = {name: template.asked for name, template in templates.items()}
    begun = {step.definition.id for step in steps.values()}
    planned = planned_trials(workflow, (sweep.id for sweep in sweeps), requests)
    return tuple(trial for trial in planned if trial.id not in begun and not trial.id.endswith("."))


def _sweeps(templates: Mapping[str, Template], known: Mapping[str, str]) -> tuple[SweepDefinition, ...]:
    sweeps: dict[str, SweepDefinition] = {}
    for template in templates.values():
        env = filled(template.env, known)
        sweep = env.get(contract.ENV_SWEEP_ID) or env.get(contract.ENV_TRIAL_ID, "").rpartition(".")[0]
        if sweep.startswith(f"{known[SWEEP_UID]}.") and "{{" not in sweep:
            notes = dict(template.annotations)
            policy = notes.get(labels.ANNOTATION_POLICY)
            experiment, tracking = env.get(EXPERIMENT, ""), env.get(TRACKING_URI, "")
            weight = weight_in(notes.get(labels.ANNOTATION_WEIGHT, ""))
            priority = priority_in(notes.get(labels.ANNOTATION_PRIORITY, ""))
            # No tenant has a controller that all share compute for it.
            means, stops = means_in(notes), rules_in(notes).without_models()
            several = bool(aims_noted(f"sweep {sweep}", notes).further)
            sweeps.setdefault(
                sweep,
                SweepDefinition(
                    sweep, policy, experiment, tracking, weight, priority, means, stops, after_in(notes), several
                ),
            )
    return tuple(sweeps.values())


_definitions = Definitions()


def _steps(
    workflow: Json,
    nodes: Mapping[str, Mapping[str, Any]],
    templates: Mapping[str, Template],
    known: Mapping[str, str],
) -> dict[str, Step]:
    # A step with a retryStrategy is a node of type Retry, with a node for each attempt; one without is a single Pod.
    attempts = {child for node in nodes.values() if text(node, "type") == "Retry" for child in _children(node)}
    steps: dict[str, Step] = {}
    length = 0
    for key, node in nodes.items():
        if len(steps) >= _MOST_STEPS or length > MOST_TEXT:
            name = f"{text(workflow, 'metadata', 'namespace')}/{text(workflow, 'metadata', 'name')}"
            warn_once(f"steps of {name}", f"workflow {name}: only its first {len(steps)} steps are read")
            break
        template = templates.get(text(node, "templateName") or text(node, "templateRef", "template"))
        if template is None or key in attempts or text(node, "type") not in {"Retry", "Pod"}:
            continue
        step = None if text(node, "phase") in _NEVER_RUN else _step(node, template, nodes, known)
        if step is not None:
            steps[step.name] = step
            length += step.definition.length
    return steps


def _step(
    node: Mapping[str, Any],
    template: Template,
    nodes: Mapping[str, Mapping[str, Any]],
    known: Mapping[str, str],
) -> Step | None:
    begun = [nodes[child] for child in _children(node) if child in nodes] if text(node, "type") == "Retry" else [node]
    # An attempt of a gang is a node of type Steps, with one for its only group of steps, and that has the pods.
    tries = [
        _pods_below(attempt, nodes) if text(attempt, "type") == "Steps" else _only_pods([attempt]) for attempt in begun
    ]
    tries = [pods for pods in tries if pods]
    known_inputs = (list(mappings(holder, "inputs", "parameters")) for holder in (node, *(pods[0] for pods in tries)))
    inputs = next(filter(None, known_inputs), [])
    given = {f"inputs.parameters.{text(p, 'name')}": text(p, "value", most=_MOST_PARAMETER) for p in inputs}
    name = text(node, "name")
    definition = _definitions.of(f"step {name}", template, tuple({**known, **given, "node.name": name}.items()))
    if definition is None:
        return None
    if not definition.id.startswith(f"{known[SWEEP_UID]}."):
        # It would go on in the run of somebody else's trial.
        warn_once(name, f"step {name} is left out: its trial {definition.id!r} is not one of this workflow")
        return None
    return Step(
        name=name,
        definition=definition,
        phase=text(node, "phase"),
        started_at=epoch(node, "startedAt"),
        finished_at=epoch(node, "finishedAt"),
        attempts=tuple(_attempt(pods) for pods in tries),
        asked=template.asked,
        retries=template.retries,
    )


def _attempt(pods: list[Mapping[str, Any]]) -> AttemptRecord:
    killed = any(labels.MOVED_MESSAGE in text(pod, "message") for pod in pods)
    return AttemptRecord(text(pods[0], "hostNodeName", most=253), _exit_code_of(pods), killed)


def _pods_below(attempt: Mapping[str, Any], nodes: Mapping[str, Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    groups = [nodes[child] for child in _children(attempt) if child in nodes]
    return _only_pods(nodes[child] for group in groups for child in _children(group) if child in nodes)


def _only_pods(nodes: Iterable[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    # Argo lists the pods of lifecycle hooks beside those of attempts.
    return [node for node in nodes if text(node, "type") == "Pod" and at(node, "nodeFlag", "hooked") is not True]


def _exit_code_of(pods: Iterable[Mapping[str, Any]]) -> int | None:
    """Return the exit code of an attempt: of several workers, first that of one which neither left nor ended well."""
    codes = [_exit_code(pod) for pod in pods]
    return min(codes, key=lambda code: (code == 0, code in LEFT))


def _exit_code(node: Mapping[str, Any]) -> int | None:
    code = text(node, "outputs", "exitCode", most=8)
    return int(code) if code.isdecimal() else None


def _children(node: Mapping[str, Any]) -> Iterator[str]:
    children = at(node, "children")
    yield from (child for child in (children if isinstance(children, list) else []) if isinstance(child, str))


def _nodes(workflow: Json) -> tuple[dict[str, Mapping[str, Any]], str | None]:
    """Return the nodes of the status, unpacked where Argo packed them; and why not, where they are not to be read."""
    plain = at(workflow, "status", "nodes")
    unread: str | None = None
    packed = at(workflow, "status", "compressedNodes")
    if not plain and isinstance(packed, str) and packed:
        try:
            plain = parsed(gunzipped(packed, _MOST_NODES_BYTES), _MOST_NODES_PARTS)
        except (ValueError, PackedError, TooManyPartsError) as error:
            unread = f"cannot be unpacked: {str(error)[:200]}"
    elif not plain and at(workflow, "status", "offloadNodeStatusVersion"):
        unread = "are in a database (nodeStatusOffLoad)"
    nodes = plain if isinstance(plain, Mapping) else {}
    return {key: node for key, node in nodes.items() if isinstance(node, Mapping)}, unread
