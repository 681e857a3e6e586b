"""Plain values of a script that must come back after a move: a best value so far, a patience, a decayed rate."""

import json
import sys
from collections import Counter, deque
from collections.abc import Iterator
from pathlib import Path, PurePath
from types import FrameType
from typing import Any, Final

from mlflow_hooks.foreign_json import parsed

_FILE: Final = "values.json"
_MOST_SHOWN: Final = 80
_MOST_ITEMS: Final = 1_000_000
"""Larger lists are not looked at: each is kept from one look to the next."""
_LOOKED_AT: Final = 64
_CHANGES: Final = 2
"""A list that has changed once may have been filled as training began, as a cache is."""


class Values:
    """Values by name, as attributes: ``v.best = min(v.best, loss)``.

    A value is a number, text, a bool, None, or a list or a dict with text as keys of such values. NaN and infinities
    are kept. A scalar of NumPy comes back as Python's number.

    Raises:
        TypeError: a value is of another kind; it is told when the value is set, or saved after it was changed inside.
        AttributeError: a name that was not tracked is set, or one cannot be an attribute.
    """

    def __init__(self, first: dict[str, Any]) -> None:
        values: dict[str, Any] = {}
        object.__setattr__(self, "_values", values)
        for name, value in first.items():
            if name.startswith("_") or hasattr(type(self), name):
                message = f"{name!r} cannot name a tracked value: choose a name without a leading '_', not save or load"
                raise AttributeError(message)
            values[name] = plain(value, name)

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401 - whatever the script tracks
        """Return a value."""
        values: dict[str, Any] = object.__getattribute__(self, "_values")
        if name not in values:
            raise AttributeError(_unknown(name, values))
        return values[name]

    def __setattr__(self, name: str, value: Any) -> None:  # noqa: ANN401 - as above
        """Set a value that is tracked."""
        values: dict[str, Any] = object.__getattribute__(self, "_values")
        if name not in values:
            raise AttributeError(_unknown(name, values))
        values[name] = plain(value, name)

    def __repr__(self) -> str:
        """Return all values."""
        values: dict[str, Any] = object.__getattribute__(self, "_values")
        return f"Values({', '.join(f'{name}={value!r}' for name, value in values.items())})"

    def save(self, folder: Path) -> None:
        """Write all values into ``folder``."""
        values: dict[str, Any] = object.__getattribute__(self, "_values")
        kept = {name: plain(value, name) for name, value in values.items()}
        (folder / _FILE).write_text(json.dumps(kept), encoding="utf-8")

    def load(self, folder: Path) -> None:
        """Take back what ``save`` wrote. A name that is new to the checkpoint keeps its first value."""
        saved = parsed((folder / _FILE).read_text(encoding="utf-8"))
        values: dict[str, Any] = object.__getattribute__(self, "_values")
        values.update({name: value for name, value in saved.items() if name in values})


def plain(value: Any, where: str) -> Any:  # noqa: ANN401 - whatever the script tracks
    """Return ``value`` as JSON has it; ``where`` names it in an error.

    Raises:
        TypeError: JSON would not give it back as it is.
    """
    if value is None or type(value) in {bool, int, float, str}:
        return value
    if type(value) is list:
        # The same list, so that the script may go on changing it.
        for number, item in enumerate(value):
            value[number] = plain(item, f"{where}[{number}]")
        return value
    if type(value) is dict:
        for key, item in value.items():
            if type(key) is not str:
                message = f"the tracked value {where} has the key {key!r:.{_MOST_SHOWN}}: keys must be text"
                raise TypeError(message)
            value[key] = plain(item, f"{where}[{key!r}]")
        return value
    if "numpy" in sys.modules and isinstance(value, sys.modules["numpy"].generic):
        return plain(value.item(), where)
    message = (
        f"the tracked value {where} is {value!r:.{_MOST_SHOWN}}, of type {type(value).__name__}: it must be a number, "
        "text, a bool, None, or a list or dict of these. Of a tensor or an array, track .item() or .tolist(); keep "
        "anything else by t.track() with an object that has save(folder) and load(folder)"
    )
    raise TypeError(message)


def _unknown(name: str, values: dict[str, Any]) -> str:
    return f"{name!r} is not tracked; the tracked values are {sorted(values)}: add it to track_values({name}=...)"


class ChangedInPlace:
    """Notices lists and the like of a script that change in place from step to step: nothing brings them back.

    ``random.shuffle(rows)`` in each epoch is such a change. A list that a step makes is another one each time.
    It looks at the variables of the loop and its module, and at the attributes of objects whose classes the script
    defines: after the first steps, and then ever more rarely.
    """

    def __init__(self) -> None:
        self._seen: dict[str, tuple[Any, int]] = {}
        self._changes: Counter[str] = Counter()
        self._steps = 0
        self._next = 0

    def look(self, frame: FrameType, tracked: Iterator[Any]) -> str | None:
        """Return the name of one that has changed again, unless it is ``tracked``; call it before and after each step.

        Args:
            frame: of the loop.
            tracked: what comes back.
        """
        self._steps += 1
        if self._steps <= self._next:
            return None
        self._next = max(self._next + 1, self._next * 3 // 2)
        known = {id(one) for one in tracked}
        before, self._seen = self._seen, {}
        for name, held in _containers(frame):
            if id(held) in known or (mark := _mark(held)) is None:
                continue
            known.add(id(held))  # under its first name only
            self._seen[name] = held, mark
            if name in before and before[name][0] is held and before[name][1] != mark:
                self._changes[name] += 1
                if self._changes[name] == _CHANGES:
                    return name
        return None


def _containers(frame: FrameType) -> Iterator[tuple[str, Any]]:
    """Yield the lists and the like that a loop can reach by a name, or by a name and an attribute."""
    for name, value in {**frame.f_globals, **frame.f_locals}.items():
        if name.startswith("_"):
            continue
        if _changes_in_place(value):
            yield name, value
        elif type(value).__module__ == frame.f_globals.get("__name__") and not _saves_itself(value):
            for inner, held in getattr(value, "__dict__", {}).items():
                if _changes_in_place(held) and not inner.startswith("_"):
                    yield f"{name}.{inner}", held


def _changes_in_place(value: Any) -> bool:  # noqa: ANN401 - any variable
    if isinstance(value, list | dict | set | deque):
        return 0 < len(value) <= _MOST_ITEMS
    if "numpy" in sys.modules and isinstance(value, sys.modules["numpy"].ndarray):
        # An order of rows; each step mostly fills other arrays again.
        return value.ndim == 1 and value.dtype.kind in "iu" and 0 < value.size <= _MOST_ITEMS
    return False


def _saves_itself(value: Any) -> bool:  # noqa: ANN401 - any variable
    return hasattr(value, "state_dict") or (hasattr(value, "save") and hasattr(value, "load"))


def _mark(held: Any) -> int | None:  # noqa: ANN401 - what changes in place
    """Return a number that is another one once the first entries have changed; None where one is no plain value.

    Those that hold tensors must not be kept from one look to the next: they may hold the memory of a whole step.
    """
    entries = held.items() if isinstance(held, dict) else held
    first = [entry for entry, _ in zip(entries, range(_LOOKED_AT), strict=False)]
    if not all(_is_plain(entry) or (isinstance(entry, list | tuple) and all(map(_is_plain, entry))) for entry in first):
        return None
    return hash((len(held), *(id(entry) if isinstance(entry, list) else entry for entry in first)))


def _is_plain(value: Any) -> bool:  # noqa: ANN401 - what a list may hold
    return (
        value is None
        or isinstance(value, bool | int | float | str | PurePath)
        or ("numpy" in sys.modules and isinstance(value, sys.modules["numpy"].generic))
    )
