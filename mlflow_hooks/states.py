"""What must come back after a move, and the random state every Python training shares."""

import json
import random
import sys
from pathlib import Path
from typing import Any, Protocol, runtime_checkable


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
