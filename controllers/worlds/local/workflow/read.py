"""From a manifest to checked templates; every problem is noted on the way."""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from controllers.core.expressions import SWEEP_UID, inside, is_count_of_workers, tries_given
from controllers.worlds.local.workflow.expression import ExpressionError, parse_expression
from controllers.worlds.local.workflow.fields import check_fields
from controllers.worlds.local.workflow.findings import Findings
from controllers.worlds.local.workflow.pods import read_outputs, read_pod, read_retry
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
from mlflow_hooks.foreign_json import parsed

_KINDS: Final = ("container", "script", "steps", "dag", "suspend")
_KINDS_OF_PODS: Final = frozenset({"container", "script"})
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
    findings = Findings()
    check_fields(findings, "workflow", workflow, "")
    if workflow.get("kind") != "Workflow":
        findings.unsupported("kind", f"only a Workflow can be run here, not {workflow.get('kind')!r}")
    spec = findings.mapping(workflow.get("spec"), "spec")
    check_fields(findings, "spec", spec, "spec")
    arguments = _workflow_arguments(findings, spec, parameters)
    source = CheckedWorkflow(
        templates=_templates(findings, spec),
        entrypoint=findings.text(spec.get("entrypoint"), "spec.entrypoint"),
        arguments=arguments,
        scope=_scope(findings, workflow, name, uid, arguments),
        parallelism=findings.whole(spec.get("parallelism"), "spec.parallelism") or None,
    )
    check_references(findings, source.templates, source.entrypoint, source.arguments, frozenset(source.scope))
    findings.raise_if_any()
    return source


def _workflow_arguments(findings: Findings, spec: Mapping[str, Any], overrides: Mapping[str, str]) -> dict[str, str]:
    node = findings.mapping(spec.get("arguments"), "spec.arguments")
    check_fields(findings, "arguments", node, "spec.arguments")
    declared = _parameters(findings, node, "spec.arguments", overrides)
    for unknown in overrides.keys() - declared.keys():
        known = ", ".join(sorted(declared)) or "none"
        findings.malformed(f"parameter {unknown!r}", f"is not one of the workflow's arguments ({known})")
    for name, value in declared.items():
        if value is None:
            findings.malformed(f"parameter {name!r}", "has no value; give it one")
    return {name: value for name, value in declared.items() if value is not None}


def _parameters(
    findings: Findings, node: Mapping[str, Any], path: str, overrides: Mapping[str, str]
) -> dict[str, str | None]:
    values: dict[str, str | None] = {}
    for index, item in enumerate(findings.sequence(node.get("parameters"), f"{path}.parameters")):
        where = f"{path}.parameters[{index}]"
        parameter = findings.mapping(item, where)
        check_fields(findings, "parameter", parameter, where)
        name = findings.text(parameter.get("name"), f"{where}.name")
        given = overrides.get(name, parameter.get("value", parameter.get("default")))
        values[name] = None if given is None else as_text(given)
        choices = [as_text(choice) for choice in findings.sequence(parameter.get("enum"), f"{where}.enum")]
        if choices and values[name] is not None and values[name] not in choices:
            findings.malformed(where, f"{values[name]!r} is none of {', '.join(choices)}")
    return values


def _scope(
    findings: Findings, workflow: Mapping[str, Any], name: str, uid: str, arguments: Mapping[str, str]
) -> dict[str, str]:
    metadata = findings.mapping(workflow.get("metadata"), "metadata")
    scope = {
        "workflow.name": name,
        "workflow.uid": uid,
        # Who reads a workflow that continues another one gives the id of that.
        inside(SWEEP_UID): uid,
        "workflow.namespace": as_text(metadata.get("namespace") or "default"),
        **{f"workflow.parameters.{key}": value for key, value in arguments.items()},
    }
    for kind in ("labels", "annotations"):
        for key, value in findings.mapping(metadata.get(kind), f"metadata.{kind}").items():
            scope[f"workflow.{kind}.{key}"] = as_text(value)
    return scope


def _templates(findings: Findings, spec: Mapping[str, Any]) -> dict[str, StepTemplate]:
    templates: dict[str, StepTemplate] = {}
    for index, item in enumerate(findings.sequence(spec.get("templates"), "spec.templates")):
        path = f"spec.templates[{index}]"
        template = _template(findings, findings.mapping(item, path), path, spec)
        if template.name in templates:
            findings.malformed(f"{path}.name", f"{template.name!r} is the name of another template too")
        templates[template.name] = template
    return templates


def _template(findings: Findings, node: Mapping[str, Any], path: str, spec: Mapping[str, Any]) -> StepTemplate:
    check_fields(findings, "template", node, path)
    inputs = findings.mapping(node.get("inputs"), f"{path}.inputs")
    check_fields(findings, "arguments", inputs, f"{path}.inputs")
    template = StepTemplate(
        name=findings.text(node.get("name"), f"{path}.name"),
        path=path,
        inputs=_parameters(findings, inputs, f"{path}.inputs", {}),
        body=_body(findings, node, path, spec),
        parallelism=findings.whole(node.get("parallelism"), f"{path}.parallelism") or None,
        fail_fast=node.get("failFast") is True,
        outputs={} if _KINDS_OF_PODS & node.keys() else _handed_on(findings, node, path),
    )
    if not isinstance(template.body, Pod | GangTemplate) and node.get("retryStrategy"):
        findings.unsupported(f"{path}.retryStrategy", "only a container or script can be retried here")
    return template


def _handed_on(findings: Findings, node: Mapping[str, Any], path: str) -> dict[str, str]:
    """Return the output parameters of Steps or a DAG, each as the text with the tag of a step's output."""
    return {
        name: findings.text(source.get("parameter"), f"{where}.parameter")
        for name, source, where in read_outputs(findings, node, path)
    }


def _body(
    findings: Findings, node: Mapping[str, Any], path: str, spec: Mapping[str, Any]
) -> Pod | GangTemplate | SuspendTemplate | Steps | Dag:
    kinds = [kind for kind in _KINDS if node.get(kind) is not None]
    if len(kinds) != 1:
        findings.malformed(path, f"must have one of {', '.join(_KINDS)}, has {', '.join(kinds) or 'none'}")
        return Steps(())
    match kinds[0]:
        case "steps" if node.get("retryStrategy") and (gang := _gang(findings, node, path)) is not None:
            return gang
        case "steps":
            return _steps(findings, node["steps"], f"{path}.steps")
        case "dag":
            return _dag(findings, node["dag"], f"{path}.dag")
        case "suspend":
            return _suspend(findings, node["suspend"], f"{path}.suspend")
        case _:
            return read_pod(findings, node, path, spec)


def _steps(findings: Findings, node: object, path: str) -> Steps:
    groups = [
        tuple(
            read_call(findings, "step", call, f"{path}[{index}][{number}]")
            for number, call in enumerate(findings.sequence(group, f"{path}[{index}]"))
        )
        for index, group in enumerate(findings.sequence(node, path))
    ]
    steps = Steps(tuple(groups))
    _check_names(findings, [call.name for group in steps.groups for call in group], path)
    return steps


def _gang(findings: Findings, node: Mapping[str, Any], path: str) -> GangTemplate | None:
    """Read the template of a trial of several workers as authors' sweeps have it, None where it is none."""
    match node["steps"], findings.mapping(node["retryStrategy"], f"{path}.retryStrategy"):
        case [[{"withSequence": {"count": str(count)}, **call}]], {"expression": str(expression)} if (
            is_count_of_workers(count) and tries_given(expression) is not None
        ):
            # The count stands among the worker's inputs too. Here it is told by its environment alone.
            texts = substitute_known(call, {count.removeprefix("{{").removesuffix("}}"): ""})
            return GangTemplate(
                read_call(findings, "step", texts, f"{path}.steps[0][0]"), read_retry(findings, node, path)
            )
        case _:
            return None


def _dag(findings: Findings, node: object, path: str) -> Dag:
    dag = findings.mapping(node, path)
    check_fields(findings, "dag", dag, path)
    tasks = enumerate(findings.sequence(dag.get("tasks"), f"{path}.tasks"))
    calls = Dag(tuple(read_call(findings, "task", task, f"{path}.tasks[{index}]") for index, task in tasks))
    _check_names(findings, [call.name for call in calls.tasks], f"{path}.tasks")
    return calls


def _check_names(findings: Findings, names: list[str], path: str) -> None:
    for name in dict.fromkeys(names):
        if names.count(name) > 1:
            findings.malformed(path, f"{name!r} is the name of more than one")
        if not _DNS_NAME.fullmatch(name):
            findings.malformed(path, f"{name!r} must consist of letters, digits and '-'")


def _suspend(findings: Findings, node: object, path: str) -> SuspendTemplate:
    suspend = findings.mapping(node, path)
    check_fields(findings, "suspend", suspend, path)
    duration = suspend.get("duration")
    if duration is None:
        findings.unsupported(f"{path}.duration", "is needed: the local world has no way to resume a suspended step")
    elif not any(find_tags(duration)):
        findings.attempt(f"{path}.duration", lambda: parse_duration(duration))
    return SuspendTemplate(as_text(duration))


_DEPENDS: Final = re.compile(r"\s*[\w-]+(\s*&&\s*[\w-]+)*\s*")


def read_call(findings: Findings, kind: str, item: object, path: str) -> Call:
    """Read ``item``, a ``step`` or a ``task`` as ``kind`` says."""
    node = findings.mapping(item, path)
    check_fields(findings, kind, node, path)
    carry_on = findings.mapping(node.get("continueOn"), f"{path}.continueOn")
    check_fields(findings, "continueOn", carry_on, f"{path}.continueOn")
    return Call(
        name=findings.text(node.get("name"), f"{path}.name"),
        path=path,
        template=findings.text(node.get("template"), f"{path}.template"),
        arguments=_arguments(findings, node, path),
        loop=_loop(findings, node, path),
        when=_when(findings, node, path),
        needs=_needs(findings, node, path),
        on_failed=carry_on.get("failed") is True,
        on_error=carry_on.get("error") is True,
    )


def _arguments(findings: Findings, node: Mapping[str, Any], path: str) -> dict[str, str]:
    path = f"{path}.arguments"
    arguments = findings.mapping(node.get("arguments"), path)
    check_fields(findings, "arguments", arguments, path)
    values = {}
    for index, item in enumerate(findings.sequence(arguments.get("parameters"), f"{path}.parameters")):
        where = f"{path}.parameters[{index}]"
        argument = findings.mapping(item, where)
        check_fields(findings, "argument", argument, where)
        if argument.get("value") is None:
            findings.malformed(where, "has no value")
        values[findings.text(argument.get("name"), f"{where}.name")] = as_text(argument.get("value"))
    return values


def _loop(findings: Findings, node: Mapping[str, Any], path: str) -> Loop | None:
    kinds = [kind for kind in ("withItems", "withParam", "withSequence") if node.get(kind) is not None]
    if len(kinds) > 1:
        findings.malformed(path, f"has {' and '.join(kinds)}; only one can be")
    match kinds:
        case ["withItems", *_]:
            return Loop(items=tuple(findings.sequence(node["withItems"], f"{path}.withItems")))
        case ["withParam", *_]:
            text = findings.text(node["withParam"], f"{path}.withParam")
            if text and not any(find_tags(text)):
                findings.attempt(f"{path}.withParam", lambda: parse_items(text))
            return Loop(param=text)
        case ["withSequence", *_]:
            return _sequence(findings, node["withSequence"], f"{path}.withSequence")
        case _:
            return None


def parse_items(text: str) -> tuple[Any, ...]:
    """Return the items of a ``withParam``.

    Raises:
        ManifestValueError: ``text`` is not a JSON list.
    """
    try:
        items = parsed(text)
    except json.JSONDecodeError:
        items = None
    if not isinstance(items, list):
        message = f"{text!r} is not a JSON list"
        raise ManifestValueError(message)
    return tuple(items)


def _sequence(findings: Findings, value: object, path: str) -> Loop:
    node = findings.mapping(value, path)
    check_fields(findings, "withSequence", node, path)
    if any(find_tags(node)):
        findings.unsupported(path, "only plain numbers can be read here")
        return Loop()
    start = findings.whole(node.get("start"), f"{path}.start") or 0
    count, end = findings.whole(node.get("count"), f"{path}.count"), findings.whole(node.get("end"), f"{path}.end")
    if (count is None) == (end is None):
        findings.malformed(path, "needs either count or end")
    if end is None:
        return Loop(tuple(str(number) for number in range(start, start + (count or 0))))
    return Loop(tuple(str(number) for number in (range(start, end + 1) if start <= end else range(start, end - 1, -1))))


def _when(findings: Findings, node: Mapping[str, Any], path: str) -> str | None:
    if not node.get("when"):
        return None
    text = findings.text(node["when"], f"{path}.when")
    try:
        parse_expression(substitute_known(text, dict.fromkeys(find_tags(text), "x")))
    except ExpressionError as error:
        findings.unsupported(f"{path}.when", str(error))
    return text


def _needs(findings: Findings, node: Mapping[str, Any], path: str) -> tuple[str, ...]:
    needs = [as_text(name) for name in findings.sequence(node.get("dependencies"), f"{path}.dependencies")]
    if not node.get("depends"):
        return tuple(needs)
    if needs:
        findings.malformed(path, "has both dependencies and depends")
    depends = findings.text(node["depends"], f"{path}.depends")
    if not _DEPENDS.fullmatch(depends):
        findings.unsupported(f"{path}.depends", f"{depends!r} is more than names of tasks joined by '&&'")
        return ()
    return tuple(dict.fromkeys(name.strip() for name in depends.split("&&")))
