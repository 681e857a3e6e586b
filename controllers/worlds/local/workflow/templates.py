"""A workflow's templates: what each would run, and whether everything that they name is there."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from graphlib import CycleError, TopologicalSorter
from typing import Any

from controllers.core.after_attempt import TrialRetries
from controllers.worlds.local.workflow.findings import Findings
from controllers.worlds.local.workflow.steps import LATE_TAGS, Mount, OutputFile, RetryRule
from controllers.worlds.local.workflow.values import find_tags


@dataclass(frozen=True, slots=True)
class Loop:
    """The items that a step runs once for: a list, or text with tags that will be a JSON list."""

    items: tuple[Any, ...] = ()
    param: str | None = None


@dataclass(frozen=True, slots=True)
class Call:
    """A step or DAG task: which template to run, with what, after what."""

    name: str
    path: str
    template: str
    arguments: Mapping[str, str] = field(default_factory=dict)
    loop: Loop | None = None
    when: str | None = None
    needs: tuple[str, ...] = ()
    on_failed: bool = False
    on_error: bool = False


@dataclass(frozen=True, slots=True)
class Pod:
    """A container or script. ``manifest`` has what tags may stand in: command, args, source, env, resources.

    ``timeout_s`` is how long an attempt may last, None for any time. ``outputs`` are the files of its output
    parameters.
    """

    manifest: Mapping[str, Any]
    retry: TrialRetries | RetryRule | None
    grace_s: float
    timeout_s: float | None
    mounts: tuple[Mount, ...] = ()
    outputs: Mapping[str, OutputFile] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class GangTemplate:
    """A container or script that runs once for each of several workers. They all start, end and are retried as one.

    ``worker`` calls its template. How many there are is up to the world.
    """

    worker: Call
    retry: TrialRetries | RetryRule | None


@dataclass(frozen=True, slots=True)
class SuspendTemplate:
    """A pause of ``duration``, which may hold tags."""

    duration: str


@dataclass(frozen=True, slots=True)
class Steps:
    """Groups of calls one after the other, the calls of a group at once."""

    groups: tuple[tuple[Call, ...], ...]


@dataclass(frozen=True, slots=True)
class Dag:
    """Calls, each after those it needs."""

    tasks: tuple[Call, ...]


@dataclass(frozen=True, slots=True)
class StepTemplate:
    """One template. ``inputs`` holds each input parameter with its default, None where it has none.

    ``outputs`` are the output parameters of Steps or a DAG, as texts with a tag of a step's output each.
    """

    name: str
    path: str
    inputs: Mapping[str, str | None]
    body: Pod | GangTemplate | SuspendTemplate | Steps | Dag
    parallelism: int | None = None
    fail_fast: bool = False
    outputs: Mapping[str, str] = field(default_factory=dict)

    @property
    def readable(self) -> tuple[str, ...]:
        """What a later step can read of one that runs the template."""
        given = self.body.outputs if isinstance(self.body, Pod) else self.outputs
        return (*STEP_OUTPUTS, *(f"outputs.parameters.{name}" for name in given))

    @property
    def calls(self) -> tuple[Call, ...]:
        """Every call of the template, in the order written."""
        if isinstance(self.body, Steps):
            return tuple(call for group in self.body.groups for call in group)
        if isinstance(self.body, GangTemplate):
            return (self.body.worker,)
        return self.body.tasks if isinstance(self.body, Dag) else ()


STEP_OUTPUTS = ("outputs.result", "exitCode", "status")
"""What a later step can read of any earlier one."""


def check_references(
    findings: Findings,
    templates: Mapping[str, StepTemplate],
    entrypoint: str,
    arguments: Mapping[str, str],
    known: frozenset[str],
) -> None:
    """Note each name in ``templates`` that nothing bears; ``known`` are the tags of the workflow itself."""
    if entrypoint in templates:
        _check_inputs(findings, templates[entrypoint], arguments, "spec.arguments")
    elif entrypoint:
        findings.malformed("spec.entrypoint", f"there is no template {entrypoint!r}")
    graph = {name: {call.template for call in template.calls} for name, template in templates.items()}
    if (cycle := _cycle(graph)) is not None:
        findings.unsupported(templates[cycle[0]].path, f"templates that call themselves: {' -> '.join(cycle)}")
    for template in templates.values():
        inputs = {f"inputs.parameters.{name}" for name in template.inputs}
        _check_body(findings, template, known | inputs | {"node.name"}, templates)
        for call in template.calls:
            if call.template in templates:
                _check_inputs(findings, templates[call.template], call.arguments, f"{call.path}.arguments")
            elif call.template:
                findings.malformed(f"{call.path}.template", f"there is no template {call.template!r}")
        if isinstance(template.body, GangTemplate):
            _check_worker(findings, template.body.worker, templates)


def _check_worker(findings: Findings, call: Call, templates: Mapping[str, StepTemplate]) -> None:
    template = templates.get(call.template)
    if template is None:
        return
    if not isinstance(template.body, Pod):
        findings.unsupported(f"{call.path}.template", "the workers of a gang can only be containers or scripts here")
    elif template.body.retry is not None:
        findings.unsupported(f"{template.path}.retryStrategy", "a gang is retried as a whole, no worker for itself")


def _check_inputs(findings: Findings, template: StepTemplate, arguments: Mapping[str, str], path: str) -> None:
    for name, default in template.inputs.items():
        if default is None and name not in arguments:
            findings.malformed(path, f"gives no {name!r}, which template {template.name!r} needs")


def _cycle(graph: Mapping[str, set[str]]) -> list[str] | None:
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        return list(error.args[1])
    return None


def _check_body(
    findings: Findings, template: StepTemplate, known: frozenset[str], templates: Mapping[str, StepTemplate]
) -> None:
    match template.body:
        case Pod() as pod:
            late = LATE_TAGS if pod.retry else frozenset()
            _check_tags(findings, pod.manifest, known | late, template.path)
        case GangTemplate(worker):
            _check_call(findings, worker, known | LATE_TAGS | {"item"})
        case SuspendTemplate(duration):
            _check_tags(findings, duration, known, f"{template.path}.suspend.duration")
        case Steps(groups):
            for group in groups:
                for call in group:
                    _check_call(findings, call, known)
                known |= frozenset().union(*(_readable("steps", call, templates) for call in group))
            _check_tags(findings, template.outputs, known, f"{template.path}.outputs")
        case Dag(tasks):
            _check_tasks(findings, tasks, known, template.path, templates)
            of_all = frozenset().union(*(_readable("tasks", call, templates) for call in tasks))
            _check_tags(findings, template.outputs, known | of_all, f"{template.path}.outputs")


def _readable(root: str, call: Call, templates: Mapping[str, StepTemplate]) -> frozenset[str]:
    """Return the tags that stand for what ``call`` hands on; ``root`` is ``steps`` or ``tasks``."""
    called = templates.get(call.template)
    # What the steps of a loop hand on is put together for their standard outputs alone.
    given = called.readable if called is not None and call.loop is None else STEP_OUTPUTS
    return frozenset(f"{root}.{call.name}.{output}" for output in given)


def _check_tasks(
    findings: Findings,
    tasks: tuple[Call, ...],
    known: frozenset[str],
    path: str,
    templates: Mapping[str, StepTemplate],
) -> None:
    needs = {task.name: set(task.needs) for task in tasks}
    by_name = {task.name: task for task in tasks}
    for task in tasks:
        for name in needs[task.name] - needs.keys():
            findings.malformed(f"{task.path}.dependencies", f"there is no task {name!r}")
    if (cycle := _cycle(needs)) is not None:
        findings.malformed(f"{path}.dag.tasks", f"wait for each other: {' -> '.join(cycle)}")
        return
    for task in tasks:
        before = [by_name[name] for name in _ancestors(task.name, needs) if name in by_name]
        earlier = (_readable("tasks", call, templates) for call in before)
        _check_call(findings, task, known.union(*earlier))


def _ancestors(name: str, needs: Mapping[str, set[str]]) -> Iterator[str]:
    for need in needs.get(name, ()):
        yield need
        yield from _ancestors(need, needs)


def _check_call(findings: Findings, call: Call, known: frozenset[str]) -> None:
    _check_tags(findings, call.loop.param if call.loop else None, known, f"{call.path}.withParam")
    items = _item_tags(call) if call.loop else frozenset()
    _check_tags(findings, call.arguments, known | items, f"{call.path}.arguments")
    _check_tags(findings, call.when, known | items, f"{call.path}.when")


def _item_tags(call: Call) -> frozenset[str]:
    """Return what ``{{item...}}`` can be; items that are only known later may have any part that is asked for."""
    if call.loop is not None and call.loop.param is None:
        keys = {f"item.{key}" for item in call.loop.items if isinstance(item, Mapping) for key in item}
        return frozenset({"item", *keys})
    asked = find_tags([call.arguments, call.when])
    return frozenset(tag for tag in asked if tag.partition(".")[0] == "item")


def _check_tags(findings: Findings, value: Any, known: frozenset[str], path: str) -> None:  # noqa: ANN401 - any JSON value
    for tag in dict.fromkeys(find_tags(value)):
        if tag in known:
            continue
        if tag.startswith("="):
            findings.unsupported(path, f"{{{{{tag}}}}} is an expression; only plain tags can be filled in here")
        else:
            findings.malformed(path, f"{{{{{tag}}}}} stands for nothing that is known there")
