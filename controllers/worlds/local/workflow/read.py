"""From a manifest to checked templates; every problem is noted on the way."""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from controllers.core.expressions import SWEEP_UID, failures_forgiven, inside, is_count_of_workers
from controllers.worlds.local.workflow.expression import ExpressionError, parse_expression
from controllers.worlds.local.workflow.fields import check_fields
from controllers.worlds.local.workflow.findings import Findings
from controllers.worlds.local.workflow.pods import read_pod, read_retry
from controllers.worlds.local.workflow.templates import (
    Call,
    Dag,
    GangTemplate,
    Loop,
    Pod,
    Steps,
    StepTemplate,
    SuspendTemplate,
    check_references,
)
from controllers.worlds.local.workflow.values import (
    ManifestValueError,
    as_text,
    find_tags,
    parse_duration,
    substitute_known,
)

_KINDS: Final = ("container", "script", "steps", "dag", "suspend")
_DNS_NAME: Final = re.compile(r"[A-Za-z0-9]([-A-Za-z0-9]*[A-Za-z0-9])?")


@dataclass(frozen=True, slots=True)
class CheckedWorkflow:
    """A checked workflow: its templates by name, the one it starts with, and the values known from the start."""

    templates: Mapping[str, StepTemplate]
    entrypoint: str
    arguments: Mapping[str, str]
    scope: Mapping[str, str]
    parallelism: int | None

    @property
    def name(self) -> str:
        """The workflow's name."""
        return self.scope["workflow.name"]


def read_source(workflow: Mapping[str, Any], name: str, uid: str, parameters: Mapping[str, str]) -> CheckedWorkflow:
    """Check ``workflow`` and return it.

    Raises:
        UnsupportedWorkflowError: This machine cannot honour some fields.
        WorkflowError: The workflow is malformed.
    """
    found = Findings()
    check_fields(found, "workflow", workflow, "")
    if workflow.get("kind") != "Workflow":
        found.unsupported("kind", f"only a Workflow can be run here, not {workflow.get('kind')!r}")
    spec = found.mapping(workflow.get("spec"), "spec")
    check_fields(found, "spec", spec, "spec")
    arguments = _workflow_arguments(found, spec, parameters)
    source = CheckedWorkflow(
        templates=_templates(found, spec),
        entrypoint=found.text(spec.get("entrypoint"), "spec.entrypoint"),
        arguments=arguments,
        scope=_scope(found, workflow, name, uid, arguments),
        parallelism=found.whole(spec.get("parallelism"), "spec.parallelism") or None,
    )
    check_references(found, source.templates, source.entrypoint, source.arguments, frozenset(source.scope))
    found.raise_if_any()
    return source


def _workflow_arguments(found: Findings, spec: Mapping[str, Any], overrides: Mapping[str, str]) -> dict[str, str]:
    node = found.mapping(spec.get("arguments"), "spec.arguments")
    check_fields(found, "arguments", node, "spec.arguments")
    declared = _parameters(found, node, "spec.arguments", overrides)
    for unknown in overrides.keys() - declared.keys():
        known = ", ".join(sorted(declared)) or "none"
        found.malformed(f"parameter {unknown!r}", f"is not one of the workflow's arguments ({known})")
    for name, value in declared.items():
        if value is None:
            found.malformed(f"parameter {name!r}", "has no value; give it one")
    return {name: value for name, value in declared.items() if value is not None}


def _parameters(
    found: Findings, node: Mapping[str, Any], path: str, overrides: Mapping[str, str]
) -> dict[str, str | None]:
    values: dict[str, str | None] = {}
    for index, item in enumerate(found.sequence(node.get("parameters"), f"{path}.parameters")):
        where = f"{path}.parameters[{index}]"
        parameter = found.mapping(item, where)
        check_fields(found, "parameter", parameter, where)
        name = found.text(parameter.get("name"), f"{where}.name")
        given = overrides.get(name, parameter.get("value", parameter.get("default")))
        values[name] = None if given is None else as_text(given)
        choices = [as_text(choice) for choice in found.sequence(parameter.get("enum"), f"{where}.enum")]
        if choices and values[name] is not None and values[name] not in choices:
            found.malformed(where, f"{values[name]!r} is none of {', '.join(choices)}")
    return values


def _scope(
    found: Findings, workflow: Mapping[str, Any], name: str, uid: str, arguments: Mapping[str, str]
) -> dict[str, str]:
    metadata = found.mapping(workflow.get("metadata"), "metadata")
    scope = {
        "workflow.name": name,
        "workflow.uid": uid,
        # Continuing another workflow is for clusters: a run here goes on by the command that began it.
        inside(SWEEP_UID): uid,
        "workflow.namespace": as_text(metadata.get("namespace") or "default"),
        **{f"workflow.parameters.{key}": value for key, value in arguments.items()},
    }
    for kind in ("labels", "annotations"):
        for key, value in found.mapping(metadata.get(kind), f"metadata.{kind}").items():
            scope[f"workflow.{kind}.{key}"] = as_text(value)
    return scope


def _templates(found: Findings, spec: Mapping[str, Any]) -> dict[str, StepTemplate]:
    templates: dict[str, StepTemplate] = {}
    for index, item in enumerate(found.sequence(spec.get("templates"), "spec.templates")):
        path = f"spec.templates[{index}]"
        template = _template(found, found.mapping(item, path), path, spec)
        if template.name in templates:
            found.malformed(f"{path}.name", f"{template.name!r} is the name of another template too")
        templates[template.name] = template
    return templates


def _template(found: Findings, node: Mapping[str, Any], path: str, spec: Mapping[str, Any]) -> StepTemplate:
    check_fields(found, "template", node, path)
    inputs = found.mapping(node.get("inputs"), f"{path}.inputs")
    check_fields(found, "arguments", inputs, f"{path}.inputs")
    template = StepTemplate(
        name=found.text(node.get("name"), f"{path}.name"),
        path=path,
        inputs=_parameters(found, inputs, f"{path}.inputs", {}),
        body=_body(found, node, path, spec),
        parallelism=found.whole(node.get("parallelism"), f"{path}.parallelism") or None,
        fail_fast=node.get("failFast") is True,
    )
    if not isinstance(template.body, Pod | GangTemplate) and node.get("retryStrategy"):
        found.unsupported(f"{path}.retryStrategy", "only a container or script can be retried here")
    return template


def _body(
    found: Findings, node: Mapping[str, Any], path: str, spec: Mapping[str, Any]
) -> Pod | GangTemplate | SuspendTemplate | Steps | Dag:
    kinds = [kind for kind in _KINDS if node.get(kind) is not None]
    if len(kinds) != 1:
        found.malformed(path, f"must have one of {', '.join(_KINDS)}, has {', '.join(kinds) or 'none'}")
        return Steps(())
    match kinds[0]:
        case "steps" if node.get("retryStrategy") and (gang := _gang(found, node, path)) is not None:
            return gang
        case "steps":
            return _steps(found, node["steps"], f"{path}.steps")
        case "dag":
            return _dag(found, node["dag"], f"{path}.dag")
        case "suspend":
            return _suspend(found, node["suspend"], f"{path}.suspend")
        case _:
            return read_pod(found, node, path, spec)


def _steps(found: Findings, node: object, path: str) -> Steps:
    groups = [
        tuple(
            read_call(found, "step", call, f"{path}[{index}][{number}]")
            for number, call in enumerate(found.sequence(group, f"{path}[{index}]"))
        )
        for index, group in enumerate(found.sequence(node, path))
    ]
    steps = Steps(tuple(groups))
    _check_names(found, [call.name for group in steps.groups for call in group], path)
    return steps


def _gang(found: Findings, node: Mapping[str, Any], path: str) -> GangTemplate | None:
    """Read the template of a trial of several workers as authors' sweeps have it, None where it is none."""
    match node["steps"], found.mapping(node["retryStrategy"], f"{path}.retryStrategy"):
        case [[{"withSequence": {"count": str(count)}, **call}]], {"expression": str(expression), **rest} if (
            is_count_of_workers(count) and (failures := failures_forgiven(expression)) is not None
        ):
            # The count stands among the worker's inputs too. Here it is told by its environment alone.
            texts = substitute_known(call, {count.removeprefix("{{").removesuffix("}}"): ""})
            retry = {"retryStrategy": {**rest, "expression": f"asInt(retries) < {failures}"}}
            return GangTemplate(read_call(found, "step", texts, f"{path}.steps[0][0]"), read_retry(found, retry, path))
        case _:
            return None


def _dag(found: Findings, node: object, path: str) -> Dag:
    dag = found.mapping(node, path)
    check_fields(found, "dag", dag, path)
    tasks = enumerate(found.sequence(dag.get("tasks"), f"{path}.tasks"))
    calls = Dag(tuple(read_call(found, "task", task, f"{path}.tasks[{index}]") for index, task in tasks))
    _check_names(found, [call.name for call in calls.tasks], f"{path}.tasks")
    return calls


def _check_names(found: Findings, names: list[str], path: str) -> None:
    for name in dict.fromkeys(names):
        if names.count(name) > 1:
            found.malformed(path, f"{name!r} is the name of more than one")
        if not _DNS_NAME.fullmatch(name):
            found.malformed(path, f"{name!r} must consist of letters, digits and '-'")


def _suspend(found: Findings, node: object, path: str) -> SuspendTemplate:
    suspend = found.mapping(node, path)
    check_fields(found, "suspend", suspend, path)
    duration = suspend.get("duration")
    if duration is None:
        found.unsupported(f"{path}.duration", "is needed: the local world has no way to resume a suspended step")
    elif not any(find_tags(duration)):
        found.attempt(f"{path}.duration", lambda: parse_duration(duration))
    return SuspendTemplate(as_text(duration))


_DEPENDS: Final = re.compile(r"\s*[\w-]+(\s*&&\s*[\w-]+)*\s*")


def read_call(found: Findings, kind: str, item: object, path: str) -> Call:
    """Read ``item``, a ``step`` or a ``task`` as ``kind`` says."""
    node = found.mapping(item, path)
    check_fields(found, kind, node, path)
    carry_on = found.mapping(node.get("continueOn"), f"{path}.continueOn")
    check_fields(found, "continueOn", carry_on, f"{path}.continueOn")
    return Call(
        name=found.text(node.get("name"), f"{path}.name"),
        path=path,
        template=found.text(node.get("template"), f"{path}.template"),
        arguments=_arguments(found, node, path),
        loop=_loop(found, node, path),
        when=_when(found, node, path),
        needs=_needs(found, node, path),
        on_failed=carry_on.get("failed") is True,
        on_error=carry_on.get("error") is True,
    )


def _arguments(found: Findings, node: Mapping[str, Any], path: str) -> dict[str, str]:
    path = f"{path}.arguments"
    arguments = found.mapping(node.get("arguments"), path)
    check_fields(found, "arguments", arguments, path)
    values = {}
    for index, item in enumerate(found.sequence(arguments.get("parameters"), f"{path}.parameters")):
        where = f"{path}.parameters[{index}]"
        argument = found.mapping(item, where)
        check_fields(found, "argument", argument, where)
        if argument.get("value") is None:
            found.malformed(where, "has no value")
        values[found.text(argument.get("name"), f"{where}.name")] = as_text(argument.get("value"))
    return values


def _loop(found: Findings, node: Mapping[str, Any], path: str) -> Loop | None:
    kinds = [kind for kind in ("withItems", "withParam", "withSequence") if node.get(kind) is not None]
    if len(kinds) > 1:
        found.malformed(path, f"has {' and '.join(kinds)}; only one can be")
    match kinds:
        case ["withItems", *_]:
            return Loop(items=tuple(found.sequence(node["withItems"], f"{path}.withItems")))
        case ["withParam", *_]:
            text = found.text(node["withParam"], f"{path}.withParam")
            if text and not any(find_tags(text)):
                found.attempt(f"{path}.withParam", lambda: parse_items(text))
            return Loop(param=text)
        case ["withSequence", *_]:
            return _sequence(found, node["withSequence"], f"{path}.withSequence")
        case _:
            return None


def parse_items(text: str) -> tuple[Any, ...]:
    """Return the items of a ``withParam``.

    Raises:
        ManifestValueError: ``text`` is not a JSON list.
    """
    try:
        items = json.loads(text)
    except json.JSONDecodeError:
        items = None
    if not isinstance(items, list):
        message = f"{text!r} is not a JSON list"
        raise ManifestValueError(message)
    return tuple(items)


def _sequence(found: Findings, value: object, path: str) -> Loop:
    node = found.mapping(value, path)
    check_fields(found, "withSequence", node, path)
    if any(find_tags(node)):
        found.unsupported(path, "only plain numbers can be read here")
        return Loop()
    start = found.whole(node.get("start"), f"{path}.start") or 0
    count, end = found.whole(node.get("count"), f"{path}.count"), found.whole(node.get("end"), f"{path}.end")
    if (count is None) == (end is None):
        found.malformed(path, "needs either count or end")
    if end is None:
        return Loop(tuple(str(number) for number in range(start, start + (count or 0))))
    return Loop(tuple(str(number) for number in (range(start, end + 1) if start <= end else range(start, end - 1, -1))))


def _when(found: Findings, node: Mapping[str, Any], path: str) -> str | None:
    if not node.get("when"):
        return None
    text = found.text(node["when"], f"{path}.when")
    try:
        parse_expression(substitute_known(text, dict.fromkeys(find_tags(text), "x")))
    except ExpressionError as error:
        found.unsupported(f"{path}.when", str(error))
    return text


def _needs(found: Findings, node: Mapping[str, Any], path: str) -> tuple[str, ...]:
    needs = [as_text(name) for name in found.sequence(node.get("dependencies"), f"{path}.dependencies")]
    if not node.get("depends"):
        return tuple(needs)
    if needs:
        found.malformed(path, "has both dependencies and depends")
    depends = found.text(node["depends"], f"{path}.depends")
    if not _DEPENDS.fullmatch(depends):
        found.unsupported(f"{path}.depends", f"{depends!r} is more than names of tasks joined by '&&'")
        return ()
    return tuple(dict.fromkeys(name.strip() for name in depends.split("&&")))
