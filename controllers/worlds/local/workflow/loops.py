"""The items of a loop: their values in tags, and Argo's names for the steps made of them."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from controllers.worlds.local.workflow.calls import parse_items
from controllers.worlds.local.workflow.substitute import as_text, substitute
from controllers.worlds.local.workflow.templates import Loop


def loop_items(loop: Loop, scope: Mapping[str, str]) -> tuple[Any, ...]:
    """Return the items of ``loop``.

    Raises:
        ValueError: A tag has no value, or the text is not a JSON list.
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


def aggregate(outputs: Sequence[Mapping[str, str]]) -> dict[str, str]:
    """Return the results of a loop's steps as one JSON list; a result that is JSON itself goes in as such."""
    results = [_json_or_text(output["outputs.result"]) for output in outputs if "outputs.result" in output]
    return {"outputs.result": json.dumps(results, separators=(",", ":"), ensure_ascii=False)}


def _json_or_text(text: str) -> Any:  # noqa: ANN401 - any JSON value
    try:
        return json.loads(text)
    except json.JSONDecodeError:
        return text
