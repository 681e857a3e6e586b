"""What must come back after a move, and the random state every Python training shares."""

import json
import random
import sys
from collections.abc import Callable, Collection, Iterable
from itertools import count
from pathlib import Path
from typing import Any, Final, Protocol, runtime_checkable

_CALLBACKS: Final = "callbacks.json"
_ARRAYS: Final = "callbacks.npz"
_ARRAY: Final = "__array__"
_TUPLE: Final = "__tuple__"
_FRAMES: Final = 6
"""Calls from a library's list of callbacks to a callback of ours; three at most today."""


class State(Protocol):
    """Something that a trial cannot continue without: a model, an optimizer, a position."""

    def save(self, folder: Path) -> None:
        """Write it into ``folder``, which is empty and exists."""
        ...

    def load(self, folder: Path) -> None:
        """Take back what ``save`` wrote into ``folder``."""
        ...


class Content(Protocol):
    """What a state holds at a step, which goes into a checkpoint: live until it is copied.

    Attributes:
        nbytes: about how large it is.
        to_copy: bytes of host memory that a copy takes beyond what is kept from the copy before.
    """

    nbytes: int
    to_copy: int

    def copy(self) -> None:
        """Copy it into the memory of the host, so that the training may change the state."""
        ...

    def give_back(self) -> None:
        """Give the memory back that is kept for the next copy."""
        ...

    def write(self, folder: Path) -> None:
        """Write it into ``folder``, as the state's own ``save`` does; from any thread once it is copied."""
        ...


@runtime_checkable
class CopiedState(State, Protocol):
    """A state that can be copied at a step, and written while the training goes on."""

    def content_at_step(self) -> Content | None:
        """Return what it holds now; None where it can only ``save``."""
        ...


def random_states() -> dict[str, Any]:
    """Return the states of Python's and (where imported) NumPy's global generators as plain data."""
    version, words, gauss = random.getstate()
    states: dict[str, Any] = {"python": [version, list(words), gauss]}
    if "numpy" in sys.modules:
        name, keys, position, has_gauss, cached = sys.modules["numpy"].random.get_state()
        states["numpy"] = [name, keys.tolist(), position, has_gauss, cached]
    return states


def restore_random_states(states: dict[str, Any]) -> None:
    """Put back what ``random_states`` returned."""
    version, words, gauss = states["python"]
    random.setstate((version, tuple(words), gauss))
    if "numpy" in states:
        import numpy as np  # noqa: PLC0415 - only scripts that use NumPy pay for it

        name, keys, position, has_gauss, cached = states["numpy"]
        np.random.set_state((name, np.array(keys, dtype=np.uint32), position, has_gauss, cached))  # noqa: NPY002 - the global generator is what is kept


def generator_state(generator: Any) -> Any:  # noqa: ANN401 - generators of several libraries
    """Return the state of a random generator of the script's own as plain data; a tensor where it is PyTorch's.

    Args:
        generator: a ``random.Random``, a ``torch.Generator``, or a ``Generator`` or ``RandomState`` of NumPy.

    Raises:
        TypeError: it is no such generator.
    """
    if isinstance(generator, random.Random):
        return generator.getstate()
    if "torch" in sys.modules and isinstance(generator, sys.modules["torch"].Generator):
        return generator.get_state()
    if (bits := _bits_of(generator)) is not None:
        return _with_lists(generator.get_state(legacy=False) if hasattr(generator, "get_state") else bits.state)
    message = f"a {type(generator).__name__} is no random generator"
    raise TypeError(message)


def restore_generator(generator: Any, state: Any) -> None:  # noqa: ANN401 - as above
    """Put back what ``generator_state`` returned."""
    if isinstance(generator, random.Random):
        generator.setstate(state)
    elif (bits := _bits_of(generator)) is None or hasattr(generator, "set_state"):
        generator.set_state(state)
    else:
        bits.state = state


def _bits_of(generator: Any) -> Any:  # noqa: ANN401 - as above
    """Return the source of NumPy's random bits below ``generator``, or None."""
    if "numpy" not in sys.modules:
        return None
    kinds = sys.modules["numpy"].random
    if isinstance(generator, kinds.Generator):
        return generator.bit_generator
    return generator if isinstance(generator, kinds.RandomState) else None


def _with_lists(state: Any) -> Any:  # noqa: ANN401 - as above
    """Return ``state`` with lists in place of arrays."""
    if isinstance(state, dict):
        return {name: _with_lists(value) for name, value in state.items()}
    return state.tolist() if hasattr(state, "tolist") else state


def save_random_states(folder: Path, states: dict[str, Any] | None = None) -> None:
    """Write ``states``, by default those of now, into ``folder``."""
    (folder / "random.json").write_text(json.dumps(states or random_states()))


def load_random_states(folder: Path) -> None:
    """Put back what ``save_random_states`` wrote into ``folder``."""
    restore_random_states(json.loads((folder / "random.json").read_text()))


class OtherCallbacks:
    """What the callbacks beside an adapter's own have counted: a best value, a patience, the best weights.

    Kept are those of their attributes that have changed since the training began, as far as they are plain values,
    arrays of NumPy, or lists, tuples and dicts of these. What only the script sets stays as the script sets it.

    Args:
        settings: attributes that a library changes although they are settings; they are not kept.
    """

    def __init__(self, settings: Collection[str] = ()) -> None:
        self._settings = settings
        self._callbacks: dict[str, Any] = {}
        self._first: dict[str, dict[str, str]] = {}
        self._loaded: dict[str, dict[str, Any]] = {}

    def meet(self, callbacks: Iterable[Any]) -> None:
        """Get to know the callbacks once they have begun, and give them back what ``load`` has read."""
        for callback in callbacks:
            kind = type(callback).__name__
            name = next(name for number in count(1) if (name := f"{kind}-{number}") not in self._callbacks)
            self._callbacks[name] = callback
            self._first[name] = {key: json.dumps(value) for key, value in self._plain(callback, []).items()}
        for name, attributes in self._loaded.items():
            if name in self._callbacks:
                vars(self._callbacks[name]).update(attributes)

    def held(self) -> tuple[str, list[Any]]:
        """Return what is kept now as text, and the arrays in it."""
        arrays: list[Any] = []
        kept = {
            name: {
                key: value
                for key, value in self._plain(callback, arrays).items()
                if self._first[name].get(key) != json.dumps(value)
            }
            for name, callback in self._callbacks.items()
        }
        return json.dumps(kept), arrays

    @staticmethod
    def write(held: tuple[str, list[Any]], folder: Path) -> None:
        """Write what ``held`` returned into ``folder``."""
        text, arrays = held
        (folder / _CALLBACKS).write_text(text)
        if arrays:
            import numpy as np  # noqa: PLC0415 - it is there where arrays are

            np.savez(folder / _ARRAYS, allow_pickle=False, **{f"{i:05d}": array for i, array in enumerate(arrays)})

    def load(self, folder: Path) -> None:
        """Read what ``write`` wrote, for ``meet`` to give back; a checkpoint of version 0.2 has nothing of it."""
        if not (folder / _CALLBACKS).exists():
            return
        arrays: list[Any] = []
        if (folder / _ARRAYS).exists():
            import numpy as np  # noqa: PLC0415 - it is there where arrays are

            with np.load(folder / _ARRAYS, allow_pickle=False) as saved:
                arrays = [saved[name] for name in sorted(saved.files)]
        self._loaded = json.loads(
            (folder / _CALLBACKS).read_text(), object_hook=lambda found: _as_it_was(found, arrays)
        )

    def _plain(self, callback: Any, arrays: list[Any]) -> dict[str, Any]:  # noqa: ANN401 - callbacks of several libraries
        """Return the attributes that JSON has a form for; their arrays go into ``arrays``."""
        plain = {}
        for name, value in getattr(callback, "__dict__", {}).items():
            before = len(arrays)
            try:
                plain[name] = _as_json(value, arrays)
            except (TypeError, RecursionError):
                del arrays[before:]
        return {name: value for name, value in plain.items() if name not in self._settings}


def _as_json(value: Any, arrays: list[Any]) -> Any:  # noqa: ANN401 - whatever a callback keeps
    if value is None or type(value) in {bool, int, float, str}:
        return value
    if type(value) is list:
        return [_as_json(item, arrays) for item in value]
    if isinstance(value, tuple):
        return {_TUPLE: [_as_json(item, arrays) for item in value]}
    if type(value) is dict and all(type(key) is str for key in value):
        return {key: _as_json(item, arrays) for key, item in value.items()}
    if "numpy" in sys.modules and isinstance(value, sys.modules["numpy"].generic):
        return _as_json(value.item(), arrays)
    if "numpy" in sys.modules and isinstance(value, sys.modules["numpy"].ndarray) and not value.dtype.hasobject:
        arrays.append(value.copy())
        return {_ARRAY: len(arrays) - 1}
    raise TypeError


def _as_it_was(found: dict[str, Any], arrays: list[Any]) -> Any:  # noqa: ANN401 - as above
    if found.keys() == {_ARRAY}:
        return arrays[found[_ARRAY]]
    return tuple(found[_TUPLE]) if found.keys() == {_TUPLE} else found


def callbacks_before(mine: object, tell: Callable[[str], None], without: Collection[str] = ()) -> list[Any]:
    """Return the callbacks that a library calls before ``mine``, and tell of those behind, which have not begun yet.

    Args:
        mine: the callback that is called now.
        tell: tells a person.
        without: classes of callbacks behind ``mine`` that the library itself puts there.
    """
    around = callbacks_around(mine)
    place = next(place for place, one in enumerate(around) if one is mine)
    if behind := [name for one in around[place + 1 :] if (name := type(one).__name__) not in without]:
        tell(
            f"{', '.join(behind)} behind {type(mine).__name__} in callbacks=[...] will start again after a move: put "
            f"{type(mine).__name__} last"
        )
    return around[:place]


def callbacks_around(mine: object) -> list[Any]:
    """Return the list of callbacks that a library goes through as it calls ``mine``; only ``mine`` where none is known.

    No library hands its list to the callbacks in it.
    """
    frame = sys._getframe(1)  # noqa: SLF001 - there is no other way to it
    for _ in range(_FRAMES):
        lists = [*frame.f_locals.values(), getattr(frame.f_locals.get("self"), "callbacks", None)]
        # The last one first: LightGBM makes a list of its own of the one that it is given.
        for found in reversed(lists):
            if isinstance(found, list) and any(one is mine for one in found):
                return found
        if frame.f_back is None:
            break
        frame = frame.f_back
    return [mine]
