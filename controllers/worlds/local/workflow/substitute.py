"""Argo's ``{{...}}`` tags in the strings of a manifest."""

import json
import re
from collections.abc import Callable, Collection, Iterator, Mapping
from typing import Any, Final

_TAG: Final = re.compile(r"\{\{(.*?)\}\}", re.DOTALL)
_ROOTS: Final = frozenset(
    {"item", "inputs", "outputs", "steps", "tasks", "workflow", "pod", "node", "retries", "lastRetry"}
)


class UnresolvedTagError(ValueError):
    """A tag stands for something that has no value."""

    def __init__(self, tag: str) -> None:
        super().__init__(f"{{{{{tag}}}}} has no value")


def substitute(value: Any, scope: Mapping[str, str], keep: Collection[str] = ()) -> Any:  # noqa: ANN401 - any JSON value
    """Return ``value`` with each tag in its strings replaced from ``scope``; tags in ``keep`` stay.

    Raises:
        UnresolvedTagError: A tag of Argo's is in neither.
    """
    return _walk(value, lambda match: _replacement(match, scope, keep))


def substitute_known(value: Any, scope: Mapping[str, str]) -> Any:  # noqa: ANN401 - any JSON value
    """Return ``value`` with the tags that are in ``scope`` replaced, and all others as they were."""
    return _walk(value, lambda match: scope.get(match[1].strip(), match[0]))


def find_tags(value: Any) -> Iterator[str]:  # noqa: ANN401 - any JSON value
    """Yield the tags of Argo's in the strings of ``value``; an expression tag begins with ``=``."""
    if isinstance(value, str):
        yield from (tag for match in _TAG.finditer(value) if _is_argos(tag := match[1].strip()))
    elif isinstance(value, Mapping):
        for key, item in value.items():
            yield from find_tags(key)
            yield from find_tags(item)
    elif isinstance(value, list | tuple):
        for item in value:
            yield from find_tags(item)


def as_text(value: Any) -> str:  # noqa: ANN401 - any JSON value
    """Return a parameter's value as Argo writes it into a template: text bare, all else as compact JSON."""
    return value if isinstance(value, str) else json.dumps(value, separators=(",", ":"), ensure_ascii=False)


def _walk(value: Any, replacement: Callable[[re.Match[str]], str]) -> Any:  # noqa: ANN401 - any JSON value
    if isinstance(value, str):
        return _TAG.sub(replacement, value)
    if isinstance(value, Mapping):
        return {_walk(key, replacement): _walk(item, replacement) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_walk(item, replacement) for item in value]
    return value


def _replacement(match: re.Match[str], scope: Mapping[str, str], keep: Collection[str]) -> str:
    tag = match[1].strip()
    if tag in scope:
        return scope[tag]
    if tag in keep or not _is_argos(tag):
        return match[0]
    raise UnresolvedTagError(tag)


def _is_argos(tag: str) -> bool:
    """Argo leaves braces alone that begin with none of its own words, such as those of a script's own language."""
    return tag.startswith("=") or tag.partition(".")[0] in _ROOTS
