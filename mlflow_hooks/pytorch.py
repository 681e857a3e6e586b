"""PyTorch: models, optimizers, schedulers, scalers and the random state, without pickled code."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

from mlflow_hooks.errors import StateMismatchError
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


def module_modes(module: Any) -> dict[str, dict[str, bool]]:  # noqa: ANN401 - a torch.nn.Module
    """Return what a ``state_dict`` leaves out: which parameters are trained, and which modules are in training mode."""
    return {
        "requires_grad": {name: it.requires_grad for name, it in module.named_parameters()},
        "training": {name: it.training for name, it in module.named_modules()},
    }


def restore_modes(module: Any, modes: Mapping[str, Mapping[str, bool]]) -> None:  # noqa: ANN401 - as above
    """Put back what ``module_modes`` returned."""
    for name, parameter in module.named_parameters():
        parameter.requires_grad_(modes["requires_grad"].get(name, parameter.requires_grad))
    for name, inner in module.named_modules():
        inner.training = modes["training"].get(name, inner.training)


class Parts:
    """The parts of a training, and what of them an attempt that begins cannot know: what changes while it trains.

    Layers are thawed, and parameters join an optimizer, in the midst of a training. The next attempt makes its parts as
    they were at the beginning.

    Args:
        parts: as they are before anything is restored.
    """

    def __init__(self, parts: Sequence[HasStateDict]) -> None:
        self._parts = parts
        self._first_groups = [[len(group["params"]) for group in _groups(part)] for part in parts]
        self._first_names = [set(_names(part)) for part in parts]

    def held(self) -> dict[str, Any]:
        """Return the state of all parts, live, and their ``changes``.

        Raises:
            StateMismatchError: the next attempt could not take it back.
        """
        self._check_layers()
        return {**self.changes(), "parts": [part.state_dict() for part in self._parts]}

    def take_back(self, held: Mapping[str, Any]) -> None:
        """Give each part what ``held`` returned."""
        self.change(held)
        for part, state in zip(self._parts, held["parts"], strict=True):
            part.load_state_dict(state)

    def changes(self) -> dict[str, Any]:
        """Return what of the parts has changed, apart from the state of each, as plain data.

        Raises:
            StateMismatchError: an optimizer has parameters that the next attempt could not find.
        """
        return {
            "modes": [module_modes(part) if _is_module(part) else None for part in self._parts],
            "groups": [self._joined(place) for place in range(len(self._parts))],
        }

    def change(self, changes: Mapping[str, Any]) -> None:
        """Do again what ``changes`` returned; a checkpoint of version 0.2 has none."""
        for part, modes in zip(self._parts, changes.get("modes", ()), strict=False):
            if modes is not None:
                restore_modes(part, modes)
        for part, groups in zip(self._parts, changes.get("groups", ()), strict=False):
            self._join(part, groups)

    def _check_layers(self) -> None:
        for place, (first, part) in enumerate(zip(self._first_names, self._parts, strict=True)):
            if new := [name for name in _names(part) if name not in first]:
                message = (
                    f"part {place} ({type(part).__name__}) has the parameter {new[0]!r}, which it did not have before "
                    "the training, so the next attempt could not restore it: make all layers before torch_state(), "
                    "and let those that come later wait by requires_grad_(False)"
                )
                raise StateMismatchError(message)

    def _joined(self, place: int) -> list[list[tuple[int, str]] | None]:
        """Return the parameters of each group that has changed, as part and name; None of one that has not."""
        names: list[list[tuple[int, str]] | None] = []
        first = self._first_groups[place]
        for index, group in enumerate(_groups(self._parts[place])):
            if index < len(first) and len(group["params"]) == first[index]:
                names.append(None)
                continue
            known = self._parameters()
            found = [known.get(id(parameter)) for parameter in group["params"]]
            names.append([name for name in found if name is not None])
            if None in found:
                kind = type(self._parts[place]).__name__
                message = (
                    f"parameter group {index} of part {place} ({kind}) was not there before the training, and its "
                    "parameters are of none of the parts, so the next attempt could not restore it: pass the module "
                    "that has them, as in torch_state(model, module, optimizer), or call "
                    "optimizer.add_param_group() before torch_state()"
                )
                raise StateMismatchError(message)
        return names

    def _join(self, part: HasStateDict, groups: Sequence[Sequence[tuple[int, str]] | None]) -> None:
        """Have the parameters join an optimizer that have joined it in the attempt that saved."""
        for index, names in enumerate(groups):
            if names is not None:
                parameters = [dict(self._parts[of].named_parameters())[name] for of, name in names]  # type: ignore[attr-defined]  # a module
                if index < len(_groups(part)):
                    _groups(part)[index]["params"] = parameters
                else:
                    part.add_param_group({"params": parameters})  # type: ignore[attr-defined]  # an optimizer

    def _parameters(self) -> dict[int, tuple[int, str]]:
        """Return part and name of each parameter of a module, by its identity."""
        modules = [(place, part) for place, part in enumerate(self._parts) if _is_module(part)]
        return {id(it): (place, name) for place, module in modules for name, it in module.named_parameters()}  # type: ignore[attr-defined]  # a module


def _groups(part: HasStateDict) -> list[dict[str, Any]]:
    """Return the parameter groups of an optimizer; none of any other part."""
    return part.param_groups if hasattr(part, "add_param_group") and hasattr(part, "param_groups") else []


def _is_module(part: HasStateDict) -> bool:
    return hasattr(part, "named_parameters") and hasattr(part, "named_modules")


def _names(part: HasStateDict) -> list[str]:
    """Return the names of a module's parameters; none where the module has a way of its own to take its state back."""
    import torch  # noqa: PLC0415 - importing the hooks must not import PyTorch

    plain = isinstance(part, torch.nn.Module) and type(part).load_state_dict is torch.nn.Module.load_state_dict
    return [name for name, _ in part.named_parameters()] if plain else []  # type: ignore[attr-defined]  # a module


class TorchState:
    """The state of some parts of a PyTorch training and of the random generators.

    Attributes:
        of_model: it holds what belongs to a model, and none of the script's own variables.
    """

    of_model = True

    def __init__(self, parts: tuple[HasStateDict, ...]) -> None:
        self._parts = Parts(parts)
        self._copies = HostCopies()
        follow_share()

    def save(self, folder: Path) -> None:
        """Write everything into ``folder``."""
        self.content_at_step().write(folder)

    def content_at_step(self) -> TorchContent:
        """Return everything, live until it is copied."""
        return TorchContent(self.held(), self.write, self._copies)

    def held(self) -> tuple[dict[str, Any], dict[str, Any]]:
        """Return what PyTorch's file holds, live, and the random states of Python and NumPy.

        Raises:
            StateMismatchError: a part has grown by what the next attempt could not restore.
        """
        import torch  # noqa: PLC0415 - importing the hooks must not import PyTorch

        content = {**self._parts.held(), "cpu": torch.get_rng_state()}
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
        self._parts.take_back(content)
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
