"""What of a workflow should exist, given how its steps ended so far. Nothing is remembered between two calls."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum

from controllers.worlds.local.workflow.expression import parse_expression, truth
from controllers.worlds.local.workflow.loops import aggregate, item_name, item_scope, loop_items
from controllers.worlds.local.workflow.pods import build_pod
from controllers.worlds.local.workflow.quantity import parse_duration
from controllers.worlds.local.workflow.steps import Delay, PodStep, StepOutcome, StepStatus
from controllers.worlds.local.workflow.substitute import substitute
from controllers.worlds.local.workflow.templates import Call, Dag, Pod, Steps, Suspend, Template


class Phase(StrEnum):
    """Where a node of the workflow stands. ``HELD`` and ``WAITING`` ones don't exist yet in Argo."""

    WAITING = "Waiting"
    HELD = "Held"
    RUNNING = "Running"
    SUCCEEDED = "Succeeded"
    FAILED = "Failed"
    ERROR = "Error"
    SKIPPED = "Skipped"
    OMITTED = "Omitted"

    @property
    def ended(self) -> bool:
        """Whether nothing more will come of it."""
        return self not in {Phase.WAITING, Phase.HELD, Phase.RUNNING}

    @property
    def bad(self) -> bool:
        """Whether it ended otherwise than it should."""
        return self in {Phase.FAILED, Phase.ERROR}


@dataclass(frozen=True, slots=True)
class Node:
    """One run of a template: where it stands, and what should exist because of it.

    ``started`` tells whether anything in it has begun, so that it keeps its place under ``parallelism``.
    """

    phase: Phase
    pods: tuple[PodStep, ...] = ()
    delays: tuple[Delay, ...] = ()
    started: bool = False
    outputs: Mapping[str, str] = field(default_factory=dict)
    message: str = ""


@dataclass(frozen=True, slots=True)
class Branch:
    """A call and its nodes: one, or one per item of its loop."""

    call: Call
    nodes: tuple[Node, ...]

    @property
    def phase(self) -> Phase:
        """Where the call as a whole stands."""
        for node in self.nodes:
            if not node.phase.ended:
                return node.phase
        return next((node.phase for node in self.nodes if node.phase.bad), self._peaceful)

    @property
    def _peaceful(self) -> Phase:
        if self.call.loop is None:
            return self.nodes[0].phase
        return Phase.SUCCEEDED if self.nodes else Phase.SKIPPED

    @property
    def fault(self) -> Node | None:
        """The first node that ended badly and whose call does not carry on then."""
        return next((node for node in self.nodes if node.phase.bad and not carries_on(self.call, node.phase)), None)

    @property
    def outputs(self) -> Mapping[str, str]:
        """What later calls can read of this one."""
        if self.call.loop is None:
            return self.nodes[0].outputs
        return aggregate([node.outputs for node in self.nodes if node.phase is Phase.SUCCEEDED]) | {
            "status": self.phase
        }


def carries_on(call: Call, phase: Phase) -> bool:
    """Return whether ``call`` lets the others go on after it ended in ``phase``."""
    return call.on_failed if phase is Phase.FAILED else call.on_error if phase is Phase.ERROR else False


class Expander:
    """Walks the templates from the entrypoint down, with the outcomes of one moment."""

    def __init__(
        self,
        templates: Mapping[str, Template],
        scope: Mapping[str, str],
        outcomes: Mapping[str, StepOutcome],
        running: Collection[str],
    ) -> None:
        self._templates = templates
        self._scope = scope
        self._outcomes = outcomes
        self._running = frozenset(running)

    def run(self, name: str, template_name: str, arguments: Mapping[str, str]) -> Node:
        """Return the node ``name``, which runs a template with ``arguments``."""
        template = self._templates[template_name]
        inputs = {key: arguments.get(key, default) for key, default in template.inputs.items()}
        scope = {f"inputs.parameters.{key}": value for key, value in inputs.items() if value is not None}
        return self._body(name, template, {**self._scope, "node.name": name, **scope})

    def _body(self, name: str, template: Template, scope: Mapping[str, str]) -> Node:
        match template.body:
            case Pod() as pod:
                return self._pod(name, template, pod, scope)
            case Suspend() as suspend:
                return self._suspend(name, suspend, scope)
            case Steps() as steps:
                return self._steps(name, template, steps, scope)
            case Dag() as dag:
                return self._dag(name, template, dag, scope)

    def _pod(self, name: str, template: Template, pod: Pod, scope: Mapping[str, str]) -> Node:
        if (outcome := self._outcomes.get(name)) is not None:
            return _ended(name, outcome)
        try:
            step = build_pod(template, pod, name, scope)
        except ValueError as error:
            return Node(Phase.ERROR, message=f"{name}: {error}")
        return Node(Phase.RUNNING, pods=(step,), started=name in self._running)

    def _suspend(self, name: str, suspend: Suspend, scope: Mapping[str, str]) -> Node:
        if (outcome := self._outcomes.get(name)) is not None:
            return _ended(name, outcome)
        try:
            delay = Delay(name, parse_duration(substitute(suspend.duration, scope)))
        except ValueError as error:
            return Node(Phase.ERROR, message=f"{name}: {error}")
        return Node(Phase.RUNNING, delays=(delay,), started=name in self._running)

    def _steps(self, name: str, template: Template, steps: Steps, scope: Mapping[str, str]) -> Node:
        before: list[Node] = []
        for index, group in enumerate(steps.groups):
            branches = [self._branch(f"{name}[{index}].{call.name}", call, scope) for call in group]
            branches = admit(branches, template, before)
            nodes = [node for branch in branches for node in branch.nodes]
            if not all(node.phase.ended for node in nodes) and not _gave_up(template, nodes, before):
                return _unfinished([*before, *nodes])
            fault = next((branch.fault for branch in branches if branch.fault), None)
            if fault is not None or _gave_up(template, nodes, before):
                return Node(Phase.FAILED, started=True, message=fault.message if fault else f"{name}: failFast")
            before += nodes
            scope = {**scope, **_outputs("steps", branches)}
        return Node(Phase.SUCCEEDED, started=_started(before))

    def _dag(self, name: str, template: Template, dag: Dag, scope: Mapping[str, str]) -> Node:
        branches: dict[str, Branch] = {}
        for call in _in_order(dag.tasks):
            needs = [branches[need] for need in call.needs]
            earlier = _outputs("tasks", [branches[task] for task in _closure(call, dag.tasks)])
            branches[call.name] = self._task(f"{name}.{call.name}", call, needs, {**scope, **earlier})
        admitted = admit([branches[call.name] for call in dag.tasks], template, ())
        nodes = [node for branch in admitted for node in branch.nodes]
        if not all(node.phase.ended for node in nodes) and not _gave_up(template, nodes, ()):
            return _unfinished(nodes)
        fault = _dag_fault(admitted)
        if fault is not None or _gave_up(template, nodes, ()):
            return Node(Phase.FAILED, started=True, message=fault.message if fault else f"{name}: failFast")
        return Node(Phase.SUCCEEDED, started=_started(nodes))

    def _task(self, name: str, call: Call, needs: Sequence[Branch], scope: Mapping[str, str]) -> Branch:
        if not all(need.phase.ended for need in needs):
            return Branch(call, (Node(Phase.WAITING),))
        if any(need.fault is not None or need.phase is Phase.OMITTED for need in needs):
            return Branch(call, (Node(Phase.OMITTED),))
        return self._branch(name, call, scope)

    def _branch(self, name: str, call: Call, scope: Mapping[str, str]) -> Branch:
        if call.loop is None:
            return Branch(call, (self._call(name, call, scope),))
        try:
            items = loop_items(call.loop, scope)
        except ValueError as error:
            return Branch(call, (Node(Phase.ERROR, message=f"{name}: {error}"),))
        return Branch(
            call,
            tuple(
                self._call(item_name(name, index, item), call, {**scope, **item_scope(item)})
                for index, item in enumerate(items)
            ),
        )

    def _call(self, name: str, call: Call, scope: Mapping[str, str]) -> Node:
        try:
            if call.when is not None and not truth(parse_expression(substitute(call.when, scope)), None):
                return Node(Phase.SKIPPED)
            arguments = substitute(call.arguments, scope)
        except ValueError as error:
            return Node(Phase.ERROR, message=f"{name}: {error}")
        return self.run(name, call.template, arguments)


def admit(branches: Sequence[Branch], template: Template, before: Sequence[Node]) -> list[Branch]:
    """Hold back the nodes for which ``template``'s parallelism has no room, or all new ones after a failFast."""
    nodes = [node for branch in branches for node in branch.nodes]
    room = len(nodes) if template.parallelism is None else template.parallelism
    room -= sum(node.phase is Phase.RUNNING and node.started for node in nodes)
    if template.fail_fast and any(node.phase.bad for node in (*before, *nodes)):
        room = 0
    admitted = []
    for branch in branches:
        kept: list[Node] = []
        for node in branch.nodes:
            new = node.phase is Phase.RUNNING and not node.started
            kept.append(Node(Phase.HELD) if new and room <= 0 else node)
            room -= new
        admitted.append(replace(branch, nodes=tuple(kept)))
    return admitted


def _gave_up(template: Template, nodes: Sequence[Node], before: Sequence[Node]) -> bool:
    """Tell whether a failFast template has a failure and nothing that still runs."""
    bad = any(node.phase.bad for node in (*before, *nodes))
    return template.fail_fast and bad and not any(node.phase is Phase.RUNNING for node in nodes)


def _ended(name: str, outcome: StepOutcome) -> Node:
    good = outcome.status is StepStatus.SUCCEEDED
    outputs = {"status": str(outcome.status), "exitCode": str(outcome.exit_code)}
    if outcome.result is not None:
        outputs["outputs.result"] = outcome.result
    message = "" if good else f"{name} failed with exit code {outcome.exit_code}"
    return Node(Phase.SUCCEEDED if good else Phase.FAILED, started=True, outputs=outputs, message=message)


def _unfinished(nodes: Sequence[Node]) -> Node:
    pods = tuple(pod for node in nodes for pod in node.pods)
    delays = tuple(delay for node in nodes for delay in node.delays)
    return Node(Phase.RUNNING, pods, delays, _started(nodes))


def _started(nodes: Sequence[Node]) -> bool:
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
    found: set[str] = set()
    open_ends = list(call.needs)
    while open_ends:
        name = open_ends.pop()
        if name not in found:
            found.add(name)
            open_ends += by_name[name].needs
    return found


def _dag_fault(branches: Sequence[Branch]) -> Node | None:
    """Return why the DAG failed: a leaf ended badly, or never began because of a task before it."""
    by_name = {branch.call.name: branch for branch in branches}
    needed = {need for branch in branches for need in branch.call.needs}
    for name, branch in by_name.items():
        if name not in needed and (fault := _origin(branch, by_name)) and not carries_on(branch.call, fault.phase):
            return fault
    return None


def _origin(branch: Branch, by_name: Mapping[str, Branch]) -> Node | None:
    """Return the bad node that decides the end of ``branch``; a task that never ran takes over its needs' end."""
    if branch.phase.bad:
        return next(node for node in branch.nodes if node.phase.bad)
    if branch.phase not in {Phase.OMITTED, Phase.SKIPPED}:
        return None
    origins = (_origin(by_name[need], by_name) for need in branch.call.needs)
    return next((origin for origin in origins if origin is not None), None)
