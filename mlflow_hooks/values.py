"""Plain values of a script that must come back after a move: a best value so far, a patience, a decayed rate."""

import json
import sys
from pathlib import Path
from typing import Any, Final

_FILE: Final = "values.json"
_MOST_SHOWN: Final = 80


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
        saved = json.loads((folder / _FILE).read_text(encoding="utf-8"))
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
