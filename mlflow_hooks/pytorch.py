"""PyTorch: models, optimizers, schedulers, scalers and the random state, without pickled code."""

from pathlib import Path
from typing import Any, Protocol

from mlflow_hooks.states import load_random_states, save_random_states
from mlflow_hooks.threads import follow_share

_FILE = "torch.pt"


class HasStateDict(Protocol):
    """Any part of PyTorch that can hand out its state and take it back."""

    def state_dict(self) -> dict[str, Any]:
        """Return the state."""
        ...

    def load_state_dict(self, state_dict: dict[str, Any], /) -> Any:  # noqa: ANN401 - what it returns differs by part
        """Take the state back."""
        ...


class TorchState:
    """The state of some parts of a PyTorch training and of the random generators.

    Attributes:
        of_model: it holds what belongs to a model, and none of the script's own variables.
    """

    of_model = True

    def __init__(self, parts: tuple[HasStateDict, ...]) -> None:
        self._parts = parts
        follow_share()

    def save(self, folder: Path) -> None:
        """Write everything into ``folder``."""
        import torch  # noqa: PLC0415 - importing the hooks must not import PyTorch

        content = {"parts": [part.state_dict() for part in self._parts], "cpu": torch.get_rng_state()}
        if torch.cuda.is_available():
            content["cuda"] = torch.cuda.get_rng_state_all()
        torch.save(content, folder / _FILE)
        save_random_states(folder)

    def load(self, folder: Path) -> None:
        """Take back what ``save`` wrote, on whichever device each part is now."""
        import torch  # noqa: PLC0415 - importing the hooks must not import PyTorch

        content = torch.load(folder / _FILE, map_location="cpu", weights_only=True)
        for part, state in zip(self._parts, content["parts"], strict=True):
            part.load_state_dict(state)
        torch.set_rng_state(content["cpu"])
        if "cuda" in content and torch.cuda.device_count() == len(content["cuda"]):
            torch.cuda.set_rng_state_all(content["cuda"])
        load_random_states(folder)


def torch_state(*parts: HasStateDict) -> TorchState:
    """Return a state to track: ``t.track(torch_state(model, optimizer, scheduler))``.

    PyTorch's, Python's and NumPy's global random generators come with it.

    Args:
        parts: anything with ``state_dict`` and ``load_state_dict``, in an order that stays.
    """
    return TorchState(parts)
