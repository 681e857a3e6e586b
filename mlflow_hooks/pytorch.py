"""PyTorch: models, optimizers, schedulers, scalers and the random state, without pickled code."""

from pathlib import Path
from typing import Any, Protocol

from mlflow_hooks.host_copies import HostCopies, TorchContent
from mlflow_hooks.states import (
    generator_state,
    load_random_states,
    random_states,
    restore_generator,
    save_random_states,
)
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


class _OwnGenerator:
    """A random generator of the script's own, as a part."""

    def __init__(self, generator: Any) -> None:  # noqa: ANN401 - generators of several libraries
        self._generator = generator

    def state_dict(self) -> dict[str, Any]:
        """Return the state."""
        return {"generator": generator_state(self._generator)}

    def load_state_dict(self, state_dict: dict[str, Any], /) -> None:
        """Take the state back."""
        restore_generator(self._generator, state_dict["generator"])


class TorchState:
    """The state of some parts of a PyTorch training and of the random generators.

    Attributes:
        of_model: it holds what belongs to a model, and none of the script's own variables.
    """

    of_model = True

    def __init__(self, parts: tuple[HasStateDict, ...]) -> None:
        self._parts = parts
        self._copies = HostCopies()
        follow_share()

    def save(self, folder: Path) -> None:
        """Write everything into ``folder``."""
        self.content_at_step().write(folder)

    def content_at_step(self) -> TorchContent:
        """Return everything, live until it is copied."""
        return TorchContent(self.held(), self.write, self._copies)

    def held(self) -> tuple[dict[str, Any], dict[str, Any]]:
        """Return what PyTorch's file holds, live, and the random states of Python and NumPy."""
        import torch  # noqa: PLC0415 - importing the hooks must not import PyTorch

        content = {"parts": [part.state_dict() for part in self._parts], "cpu": torch.get_rng_state()}
        # To ask a program that computes on the CPU would take hundreds of megabytes of each device for nothing.
        if torch.cuda.is_initialized():  # type: ignore[no-untyped-call]
            content["cuda"] = torch.cuda.get_rng_state_all()
        return content, random_states()

    @staticmethod
    def write(held: Any, folder: Path) -> None:  # noqa: ANN401 - what state_dict() returns of any part
        """Write what ``held`` returned, or a copy of it, into ``folder``."""
        import torch  # noqa: PLC0415 - importing the hooks must not import PyTorch

        content, random = held
        torch.save(content, folder / _FILE)
        save_random_states(folder, random)

    def load(self, folder: Path) -> None:
        """Take back what ``save`` wrote, on whichever device each part is now."""
        import torch  # noqa: PLC0415 - importing the hooks must not import PyTorch

        content = torch.load(folder / _FILE, map_location="cpu", weights_only=True)
        for part, state in zip(self._parts, content["parts"], strict=True):
            part.load_state_dict(state)
        torch.set_rng_state(content["cpu"])
        if "cuda" in content and torch.cuda.is_available():
            for device, state in enumerate(content["cuda"][: torch.cuda.device_count()]):
                torch.cuda.set_rng_state(state, device)
        load_random_states(folder)


def torch_state(*parts: Any) -> TorchState:  # noqa: ANN401 - generators have no type in common
    """Return a state to track: ``t.track(torch_state(model, optimizer, scheduler))``.

    PyTorch's, Python's and NumPy's global random generators come with it.

    Args:
        parts: anything with ``state_dict`` and ``load_state_dict``, and random generators of your own
            (``torch.Generator``, ``numpy.random.Generator``, ``random.Random``), in an order that stays.

    Raises:
        TypeError: a part is neither.
    """
    return TorchState(tuple(_as_part(part, place) for place, part in enumerate(parts)))


def _as_part(part: Any, place: int) -> HasStateDict:  # noqa: ANN401 - as above
    if hasattr(part, "state_dict") and hasattr(part, "load_state_dict"):
        return part  # type: ignore[no-any-return]
    try:
        generator_state(part)
    except TypeError as error:
        message = (
            f"part {place} of torch_state() is a {type(part).__name__}: it has no state_dict() and load_state_dict(), "
            "and is no random generator. Keep plain values by t.track_values(), and anything else by t.track() with "
            "an object that has save(folder) and load(folder)"
        )
        raise TypeError(message) from error
    return _OwnGenerator(part)
