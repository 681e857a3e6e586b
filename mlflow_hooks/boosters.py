"""What must come back of a boosted model, whichever library boosts it."""

from pathlib import Path
from typing import Any

from mlflow_hooks.states import OtherCallbacks, load_random_states, save_random_states


class BoosterState:
    """A booster with all its trees, what other callbacks have counted, and the random states of Python and NumPy.

    Args:
        file: name of the file that keeps the booster; its ending tells the library the format.

    Attributes:
        booster: what ``save`` writes, as soon as there is one.
        path: the model that earlier attempts made, if there is one: the code that begins the training passes it on.
        others: the callbacks beside the adapter's own.
    """

    def __init__(self, file: str) -> None:
        self._file = file
        self.booster: Any = None
        self.path: str | None = None
        self.others = OtherCallbacks()

    def save(self, folder: Path) -> None:
        """Write the booster into ``folder``."""
        self.booster.save_model(folder / self._file)
        save_random_states(folder)
        self.others.write(self.others.held(), folder)

    def load(self, folder: Path) -> None:
        """Note where the model is."""
        self.path = str(folder / self._file)
        load_random_states(folder)
        self.others.load(folder)
