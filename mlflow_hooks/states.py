"""What must come back after a move, and the random state every Python training shares."""

import json
import random
import sys
from pathlib import Path
from typing import Any, Protocol


class State(Protocol):
    """Something that a trial cannot continue without: a model, an optimizer, a position."""

    def save(self, folder: Path) -> None:
        """Write it into ``folder``, which is empty and exists."""
        ...

    def load(self, folder: Path) -> None:
        """Take back what ``save`` wrote into ``folder``."""
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


def save_random_states(folder: Path, states: dict[str, Any] | None = None) -> None:
    """Write ``states``, by default those of now, into ``folder``."""
    (folder / "random.json").write_text(json.dumps(states or random_states()))


def load_random_states(folder: Path) -> None:
    """Put back what ``save_random_states`` wrote into ``folder``."""
    restore_random_states(json.loads((folder / "random.json").read_text()))
