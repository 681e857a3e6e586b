"""The texts of a manifest: Argo's ``{{...}}`` tags, resource quantities and durations."""

import json
import re
from collections.abc import Callable, Collection, Iterator, Mapping
from typing import Any, Final

from controllers.core.errors import SpeconError

_TAG: Final = re.compile(r"\{\{(.*?)\}\}", re.DOTALL)
_ROOTS: Final = frozenset(
    {"item", "inputs", "outputs", "steps", "tasks", "workflow", "pod", "node", "retries", "lastRetry"}
)


class ManifestValueError(SpeconError):
    """A text of a manifest stands for no value of its kind; the message carries the text."""


class UnresolvedTagError(ManifestValueError):
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


_QUANTITY: Final = re.compile(r"([+-]?(?:\d+(?:\.\d*)?|\.\d+))(m|u|n|k|M|G|T|P|E|Ki|Mi|Gi|Ti|Pi|Ei|[eE][+-]?\d+)?")
_SCALES: Final = {
    "": 1.0,
    "n": 1e-9,
    "u": 1e-6,
    "m": 1e-3,
    **{letter: 1000.0**power for power, letter in enumerate("kMGTPE", start=1)},
    **{f"{letter}i": 1024.0**power for power, letter in enumerate("KMGTPE", start=1)},
}
_DURATION_PART: Final = re.compile(r"(\d+(?:\.\d*)?|\.\d+)(ns|us|µs|ms|s|m|h)")
_DURATION_SCALES: Final = {"ns": 1e-9, "us": 1e-6, "µs": 1e-6, "ms": 1e-3, "s": 1.0, "m": 60.0, "h": 3600.0}


def parse_quantity(value: object) -> float:
    """Return a resource quantity such as ``"100m"``, ``"512Mi"`` or ``2`` as a number of cores or bytes.

    Raises:
        ManifestValueError: ``value`` is no quantity, or is negative.
    """
    match = _QUANTITY.fullmatch(str(value)) if isinstance(value, str | int | float) else None
    if match is None or isinstance(value, bool):
        message = f"{value!r} is not a quantity such as '100m', '0.5' or '512Mi'"
        raise ManifestValueError(message)
    number, suffix = float(match[1]), match[2] or ""
    amount = number * _SCALES[suffix] if suffix in _SCALES else float(match[1] + suffix)
    if amount < 0:
        message = f"{value!r} is negative"
        raise ManifestValueError(message)
    return amount


def parse_duration(value: object) -> float:
    """Return a duration such as ``"90"``, ``"1m30s"`` or ``20`` in seconds.

    Raises:
        ManifestValueError: ``value`` is no duration, or is negative.
    """
    text = str(value).strip()
    parts = _DURATION_PART.findall(text)
    if parts and "".join(number + unit for number, unit in parts) == text:
        return float(sum(float(number) * _DURATION_SCALES[unit] for number, unit in parts))
    if re.fullmatch(r"\d+(?:\.\d+)?", text):
        return float(text)
    message = f"{value!r} is not a duration such as '90', '20s' or '1m30s'"
    raise ManifestValueError(message)
