"""Reading a step or DAG task: its arguments, loop, condition and dependencies."""

import json
import re
from collections.abc import Mapping
from typing import Any, Final

from controllers.worlds.local.workflow.expression import ExpressionError, parse_expression
from controllers.worlds.local.workflow.fields import check_fields
from controllers.worlds.local.workflow.findings import Findings
from controllers.worlds.local.workflow.substitute import as_text, find_tags, substitute_known
from controllers.worlds.local.workflow.templates import Call, Loop

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
            return _param(found, node["withParam"], f"{path}.withParam")
        case ["withSequence", *_]:
            return _sequence(found, node["withSequence"], f"{path}.withSequence")
        case _:
            return None


def _param(found: Findings, value: object, path: str) -> Loop:
    text = found.text(value, path)
    if text and not any(find_tags(text)):
        found.attempt(path, lambda: parse_items(text))
    return Loop(param=text)


def parse_items(text: str) -> tuple[Any, ...]:
    """Return the items of a ``withParam``.

    Raises:
        ValueError: ``text`` is not a JSON list.
    """
    try:
        items = json.loads(text)
    except json.JSONDecodeError:
        items = None
    if not isinstance(items, list):
        message = f"{text!r} is not a JSON list"
        raise ValueError(message)  # noqa: TRY004 - the value of a text is wrong, not its type
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
