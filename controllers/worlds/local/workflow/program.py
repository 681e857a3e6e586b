"""A workflow, read and checked, that can say at any time what should run.

Nothing is remembered between two calls: each walks all templates, with the outcomes of one moment.
"""

import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from controllers.core import labels
from controllers.worlds.local.workflow.expression import parse_expression, truth
from controllers.worlds.local.workflow.nodes import Branch, NodePhase, NodeStatus, admit, carries_on, gave_up
from controllers.worlds.local.workflow.pods import build_pod
from controllers.worlds.local.workflow.read import CheckedWorkflow, parse_items, read_source
from controllers.worlds.local.workflow.steps import LATE_TAGS, Delay, Expansion, PlannedTrial, StepOutcome, StepStatus
from controllers.worlds.local.workflow.templates import (
    Call,
    Dag,
    GangTemplate,
    Loop,
    Pod,
    Steps,
    StepTemplate,
    SuspendTemplate,
)
from controllers.worlds.local.workflow.values import (
    ManifestValueError,
    as_text,
    find_tags,
    parse_duration,
    substitute,
)

_DONE: Final = StepOutcome(StepStatus.SUCCEEDED)


class Program:
    """A checked workflow. Pure: the same outcomes always give the same expansion."""

    def __init__(self, source: CheckedWorkflow, nodes: Sequence[float] = ()) -> None:
        self._source = source
        self._nodes = tuple(nodes)

    def expand(self, outcomes: Mapping[str, StepOutcome], running: Collection[str]) -> Expansion:
        """Return what should exist now.

        Args:
            outcomes: How the steps and delays that are over ended, by id.
            running: Ids of the steps and delays that were started. These keep their places where ``parallelism`` or
                ``failFast`` holds others back: leave one out and it may be missing from the expansion.
        """
        root = Expander(self._source, outcomes, running, {}, self._nodes).root()
        pods = root.pods
        if self._source.parallelism is not None:
            room = self._source.parallelism - sum(pod.id in running for pod in pods)
            new = [pod.id for pod in pods if pod.id not in running][: max(room, 0)]
            pods = tuple(pod for pod in pods if pod.id in running or pod.id in new)
        return Expansion(
            pods=pods,
            delays=root.delays,
            finished=root.phase.ended,
            failed=root.phase.bad,
            message=root.message,
        )

    def trials(self) -> tuple[PlannedTrial, ...]:
        """Return the trials that are known before running, with the delay before each.

        Assumes that every step succeeds at once, prints nothing, and has empty output parameters. A trial that depends
        on what these are is not known.
        """
        planned: list[PlannedTrial] = []
        outcomes: dict[str, StepOutcome] = {}
        ends: dict[str, float] = {}
        while True:
            expander = Expander(self._source, outcomes, (), ends, self._nodes)
            root = expander.root()
            if root.phase.ended:
                return tuple(planned)
            trials = (pod for pod in root.pods if labels.LABEL_SWEEP in pod.labels)
            planned += [PlannedTrial(pod, expander.starts[pod.id]) for pod in trials]
            lengths = {pod.id: 0.0 for pod in root.pods} | {delay.id: delay.seconds for delay in root.delays}
            ends |= {name: expander.starts[name] + seconds for name, seconds in lengths.items()}
            outcomes |= dict.fromkeys(lengths, _DONE)
            outcomes |= {pod.id: replace(_DONE, outputs=dict.fromkeys(pod.outputs, "")) for pod in root.pods}


def read_workflow(
    workflow: Mapping[str, Any], name: str, uid: str, parameters: Mapping[str, str], nodes: Sequence[float] = ()
) -> Program:
    """Check ``workflow`` (as Hera's ``to_dict()`` gives it) and return it as a program.

    Args:
        workflow: The manifest.
        name: What ``{{workflow.name}}`` stands for.
        uid: What ``{{workflow.uid}}`` stands for.
        parameters: Values that override the workflow's own arguments.
        nodes: Cores of each node that it will run on, by which requests that nobody named are bounded.

    Raises:
        UnsupportedWorkflowError: The workflow has fields that this machine cannot honour; all are listed.
        WorkflowError: The workflow is malformed; all faults are listed.
    """
    return Program(read_source(workflow, name, uid, parameters), nodes)


@dataclass(frozen=True, slots=True)
class Spot:
    """A place in the workflow: the node's name, what tags stand for there, and since when it could begin."""

    name: str
    scope: Mapping[str, str]
    since: float = 0.0

    def below(self, suffix: str) -> "Spot":
        """Return the spot of a part of this one."""
        return replace(self, name=f"{self.name}{suffix}")


class Expander:
    """Walks the templates from the entrypoint down, with the outcomes of one moment.

    ``nodes`` are the cores of each node. ``ends`` may tell when steps and delays ended; ``starts`` then holds since
    when each of the others could begin.
    """

    def __init__(
        self,
        source: CheckedWorkflow,
        outcomes: Mapping[str, StepOutcome],
        running: Collection[str],
        ends: Mapping[str, float],
        nodes: Sequence[float],
    ) -> None:
        self._source = source
        self._outcomes = outcomes
        self._running = frozenset(running)
        self._ends = ends
        self._nodes = nodes
        self.starts: dict[str, float] = {}

    def root(self) -> NodeStatus:
        """Return the node of the entrypoint, which bears the workflow's name."""
        return self._run(Spot(self._source.name, {}), self._source.entrypoint, self._source.arguments)

    def _run(self, spot: Spot, template_name: str, arguments: Mapping[str, str]) -> NodeStatus:
        template = self._source.templates[template_name]
        inputs = {key: arguments.get(key, default) for key, default in template.inputs.items()}
        own = {f"inputs.parameters.{key}": value for key, value in inputs.items() if value is not None}
        inside = replace(spot, scope={**self._source.scope, "node.name": spot.name, **own})
        match template.body:
            case Pod() | SuspendTemplate() as body:
                return self._single(inside, template, body)
            case GangTemplate() as gang:
                return self._gang(inside, gang)
            case Steps() as steps:
                return self._steps(inside, template, steps)
            case Dag() as dag:
                return self._dag(inside, template, dag)

    def _single(self, spot: Spot, template: StepTemplate, body: Pod | SuspendTemplate) -> NodeStatus:
        if (outcome := self._outcomes.get(spot.name)) is not None:
            return _ended(spot.name, outcome, self._ends.get(spot.name, 0.0))
        self.starts[spot.name] = spot.since
        started = spot.name in self._running
        try:
            if isinstance(body, Pod):
                pod = build_pod(template, body, spot.name, spot.scope, self._nodes)
                return NodeStatus(NodePhase.RUNNING, pods=(pod,), started=started)
            delay = Delay(spot.name, parse_duration(substitute(body.duration, spot.scope)))
            return NodeStatus(NodePhase.RUNNING, delays=(delay,), started=started)
        except ManifestValueError as error:
            return _error(spot, error)

    def _gang(self, spot: Spot, gang: GangTemplate) -> NodeStatus:
        """Return the step that all workers are together, with what tags stand for in the first of them."""
        try:
            arguments = substitute(gang.worker.arguments, {**spot.scope, "item": "0"}, LATE_TAGS)
        except ManifestValueError as error:
            return _error(spot, error)
        template = self._source.templates[gang.worker.template]
        inputs = {key: arguments.get(key, default) for key, default in template.inputs.items()}
        own = {f"inputs.parameters.{key}": value for key, value in inputs.items() if value is not None}
        scope = {**self._source.scope, "node.name": spot.name, **own}
        assert isinstance(template.body, Pod)  # noqa: S101 - read_source has checked it
        return self._single(replace(spot, scope=scope), template, replace(template.body, retry=gang.retry))

    def _steps(self, spot: Spot, template: StepTemplate, steps: Steps) -> NodeStatus:
        before: list[NodeStatus] = []
        for index, group in enumerate(steps.groups):
            branches = [self._branch(spot.below(f"[{index}].{call.name}"), call) for call in group]
            branches = admit(branches, template, before)
            nodes = [node for branch in branches for node in branch.nodes]
            fault = next((branch.fault for branch in branches if branch.fault), None)
            if (end := _end(spot, template, [*before, *nodes], fault)) is not None:
                return end
            before += nodes
            since = max((node.until for node in nodes), default=spot.since)
            spot = replace(spot, scope={**spot.scope, **_outputs("steps", branches)}, since=since)
        outputs = _handed_on(template, spot.scope)
        return NodeStatus(NodePhase.SUCCEEDED, started=_started(before), outputs=outputs, until=spot.since)

    def _dag(self, spot: Spot, template: StepTemplate, dag: Dag) -> NodeStatus:
        branches: dict[str, Branch] = {}
        for call in _in_order(dag.tasks):
            earlier = [branches[name] for name in _closure(call, dag.tasks)]
            since = max((node.until for branch in earlier for node in branch.nodes), default=spot.since)
            scope = {**spot.scope, **_outputs("tasks", earlier)}
            below = Spot(f"{spot.name}.{call.name}", scope, since)
            branches[call.name] = self._task(below, call, [branches[need] for need in call.needs])
        admitted = admit([branches[call.name] for call in dag.tasks], template, ())
        nodes = [node for branch in admitted for node in branch.nodes]
        if (end := _end(spot, template, nodes, _dag_fault(admitted))) is not None:
            return end
        until = max((node.until for node in nodes), default=spot.since)
        outputs = _handed_on(template, {**spot.scope, **_outputs("tasks", admitted)})
        return NodeStatus(NodePhase.SUCCEEDED, started=_started(nodes), outputs=outputs, until=until)

    def _task(self, spot: Spot, call: Call, needs: Sequence[Branch]) -> Branch:
        if not all(need.phase.ended for need in needs):
            return Branch(call, (NodeStatus(NodePhase.WAITING),))
        if any(need.fault is not None or need.phase is NodePhase.OMITTED for need in needs):
            return Branch(call, (NodeStatus(NodePhase.OMITTED, until=spot.since),))
        return self._branch(spot, call)

    def _branch(self, spot: Spot, call: Call) -> Branch:
        if call.loop is None:
            return Branch(call, (self._call(spot, call),))
        try:
            items = loop_items(call.loop, spot.scope)
        except ManifestValueError as error:
            return Branch(call, (_error(spot, error),))
        spots = (
            replace(spot, name=item_name(spot.name, index, item), scope={**spot.scope, **item_scope(item)})
            for index, item in enumerate(items)
        )
        return Branch(call, tuple(self._call(each, call) for each in spots))

    def _call(self, spot: Spot, call: Call) -> NodeStatus:
        try:
            if call.when is not None and not truth(parse_expression(substitute(call.when, spot.scope)), None):
                return NodeStatus(NodePhase.SKIPPED, until=spot.since)
            arguments = substitute(call.arguments, spot.scope)
        except ManifestValueError as error:
            return _error(spot, error)
        return self._run(spot, call.template, arguments)


def _handed_on(template: StepTemplate, scope: Mapping[str, str]) -> dict[str, str]:
    """Return the output parameters of Steps or a DAG; those that a skipped step would have given are left out."""
    outputs = {f"outputs.parameters.{name}": text for name, text in template.outputs.items()}
    return {name: substitute(text, scope) for name, text in outputs.items() if all(t in scope for t in find_tags(text))}


def _end(
    spot: Spot, template: StepTemplate, nodes: Sequence[NodeStatus], fault: NodeStatus | None
) -> NodeStatus | None:
    """Return where a template stands that is not through with ``nodes`` or failed in them, None where all is well."""
    until = max((node.until for node in nodes), default=spot.since)
    if gave_up(template, nodes):
        return NodeStatus(
            NodePhase.FAILED, started=True, message=f"{spot.name}: a part failed, and failFast is set", until=until
        )
    if not all(node.phase.ended for node in nodes):
        pods = tuple(pod for node in nodes for pod in node.pods)
        delays = tuple(delay for node in nodes for delay in node.delays)
        return NodeStatus(NodePhase.RUNNING, pods, delays, _started(nodes))
    return None if fault is None else NodeStatus(NodePhase.FAILED, started=True, message=fault.message, until=until)


def _error(spot: Spot, error: ManifestValueError) -> NodeStatus:
    return NodeStatus(NodePhase.ERROR, message=f"{spot.name}: {error}", until=spot.since)


def _ended(name: str, outcome: StepOutcome, until: float) -> NodeStatus:
    good = outcome.status is StepStatus.SUCCEEDED
    outputs = {"status": str(outcome.status), "exitCode": str(outcome.exit_code)}
    outputs |= {f"outputs.parameters.{name}": value for name, value in outcome.outputs.items()}
    if outcome.result is not None:
        outputs["outputs.result"] = outcome.result
    message = "" if good else f"{name} failed with exit code {outcome.exit_code}"
    return NodeStatus(
        NodePhase.SUCCEEDED if good else NodePhase.FAILED, started=True, outputs=outputs, message=message, until=until
    )


def _started(nodes: Sequence[NodeStatus]) -> bool:
    return any(node.started for node in nodes)


def _outputs(root: str, branches: Sequence[Branch]) -> dict[str, str]:
    return {
        f"{root}.{branch.call.name}.{key}": value
        for branch in branches
        if branch.phase.ended
        for key, value in branch.outputs.items()
    }


def _in_order(tasks: Sequence[Call]) -> list[Call]:
    """Return ``tasks`` with each after those it needs, otherwise as written."""
    done: dict[str, Call] = {}
    while len(done) < len(tasks):
        ready = [task for task in tasks if task.name not in done and all(need in done for need in task.needs)]
        done |= {task.name: task for task in ready}
    return list(done.values())


def _closure(call: Call, tasks: Sequence[Call]) -> set[str]:
    by_name = {task.name: task for task in tasks}
    needed: set[str] = set()
    open_ends = list(call.needs)
    while open_ends:
        name = open_ends.pop()
        if name not in needed:
            needed.add(name)
            open_ends += by_name[name].needs
    return needed


def _dag_fault(branches: Sequence[Branch]) -> NodeStatus | None:
    """Return why the DAG failed: a leaf ended badly, or never began because of a task before it."""
    by_name = {branch.call.name: branch for branch in branches}
    needed = {need for branch in branches for need in branch.call.needs}
    for name, branch in by_name.items():
        if name not in needed and (fault := _origin(branch, by_name)) and not carries_on(branch.call, fault.phase):
            return fault
    return None


def _origin(branch: Branch, by_name: Mapping[str, Branch]) -> NodeStatus | None:
    """Return the bad node that decides the end of ``branch``; a task that never ran takes over its needs' end."""
    if branch.phase.bad:
        return next(node for node in branch.nodes if node.phase.bad)
    if branch.phase not in {NodePhase.OMITTED, NodePhase.SKIPPED}:
        return None
    origins = (_origin(by_name[need], by_name) for need in branch.call.needs)
    return next((origin for origin in origins if origin is not None), None)


def loop_items(loop: Loop, scope: Mapping[str, str]) -> tuple[Any, ...]:
    """Return the items of ``loop``.

    Raises:
        ManifestValueError: A tag has no value, or the text is not a JSON list.
    """
    if loop.param is None:
        return tuple(substitute(item, scope) for item in loop.items)
    return parse_items(substitute(loop.param, scope))


def item_scope(item: Any) -> dict[str, str]:  # noqa: ANN401 - any JSON value
    """Return what ``{{item}}`` and its parts stand for."""
    if not isinstance(item, Mapping):
        return {"item": as_text(item)}
    whole = json.dumps(item, separators=(",", ":"), sort_keys=True, ensure_ascii=False)
    return {"item": whole, **{f"item.{key}": as_text(value) for key, value in item.items()}}


def item_name(name: str, index: int, item: Any) -> str:  # noqa: ANN401 - any JSON value
    """Return Argo's name for the step of ``item``, such as ``train(0:lr:0.1,units:8)``."""
    described = as_text(item)
    if isinstance(item, Mapping):
        described = ",".join(sorted(f"{key}:{as_text(value)}" for key, value in item.items()))
    return f"{name}({index}:{described.replace('(', '').replace(')', '')})"
