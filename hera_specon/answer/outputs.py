"""The names under which later steps of a workflow find what a sweep came to, for Hera's arguments."""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final, SupportsIndex, overload

from hera_specon.errors import SweepError
from hera_specon.settings import input_name, is_whole

PARAM: Final = "param-"
TOP: Final = "top-"
PLAIN: Final = ("value", "trial", "run-id", "checkpoint", "params", "trials")
"""Outputs that every sweep has which tells its answer."""
FRONT: Final = "front"
"""The output that only a sweep of several objectives has."""
OF_MODEL: Final = ("model-version", "model-uri")
"""Those that only a sweep with ``register=`` has."""
MOST_TOP: Final = 100
"""Greatest number of best trials to fan out over."""
DEFAULT_ALIAS: Final = "best"
_MODEL: Final = re.compile(r"[A-Za-z0-9_]([A-Za-z0-9_. -]{0,98}[A-Za-z0-9_])?")
_ALIAS: Final = re.compile(r"[A-Za-z0-9_-]{1,100}")
_VERSION: Final = re.compile(r"[vV]\d+")


class BestParams(str):
    """The hyperparameters of the best trial as JSON text; with a name, the value of that one alone.

    ``search.best.params`` and ``search.best.params["lr"]`` are both texts that Argo fills in.
    """

    __slots__ = ("_names", "_tag")
    _names: tuple[str, ...]
    _tag: Callable[[str], str]

    @classmethod
    def of(cls, tag: Callable[[str], str], names: Sequence[str]) -> "BestParams":
        """Return the parameters of ``names``; ``tag`` gives what Argo replaces by an output."""
        made = cls(tag("params"))
        made._tag, made._names = tag, tuple(names)
        return made

    @overload
    def __getitem__(self, key: SupportsIndex | slice) -> str: ...

    @overload
    def __getitem__(self, key: str) -> str: ...

    def __getitem__(self, key: str | SupportsIndex | slice) -> str:
        """Return the value of one hyperparameter, as it stands on a command line.

        Raises:
            SweepError: The sweep has no hyperparameter of that name.
        """
        if not isinstance(key, str):
            return super().__getitem__(key)
        if key not in self._names:
            problem = f"best.params[{key!r}]: the sweep has no such hyperparameter; it has {', '.join(self._names)}"
            raise SweepError(problem)
        return self._tag(f"{PARAM}{input_name(key)}")


@dataclass(frozen=True, slots=True)
class BestTrial:
    """What a sweep came to, for the arguments of later steps. Each is a text that Argo fills in as the sweep has ended.

    ``tag`` gives what Argo replaces by an output, ``names`` are those of the hyperparameters. ``registers`` tells
    that the sweep has ``register=``.
    """

    tag: Callable[[str], str]
    names: tuple[str, ...]
    registers: bool

    @property
    def params(self) -> BestParams:
        """The best trial's hyperparameters as JSON text; ``params["lr"]`` is the value of one."""
        return BestParams.of(self.tag, self.names)

    @property
    def value(self) -> str:
        """Its last value of the objective."""
        return self.tag("value")

    @property
    def trial(self) -> str:
        """Its number in the sweep, such as ``t007``."""
        return self.tag("trial")

    @property
    def run_id(self) -> str:
        """Its run in MLflow."""
        return self.tag("run-id")

    @property
    def checkpoint(self) -> str:
        """Where its checkpoints are: a folder of the volume for state, or an address in the store of ``state=``."""
        return self.tag("checkpoint")

    @property
    def trials(self) -> str:
        """All trials as a JSON list, the best first: at most 64 KiB of them."""
        return self.tag("trials")

    @property
    def model_version(self) -> str:
        """The version that ``register=`` made of its model.

        Raises:
            SweepError: The sweep has no ``register=``.
        """
        return self._of_model("model-version")

    @property
    def model_uri(self) -> str:
        """That version as MLflow loads it, such as ``models:/digits/3``.

        Raises:
            SweepError: The sweep has no ``register=``.
        """
        return self._of_model("model-uri")

    def _of_model(self, name: str) -> str:
        if not self.registers:
            problem = f"best.{name.replace('-', '_')} needs register=, which puts the best model into MLflow's registry"
            raise SweepError(problem)
        return self.tag(name)


def output_names(names: Sequence[str], tops: Sequence[int], *, registers: bool, several: bool) -> tuple[str, ...]:
    """Return the names of all outputs of a sweep that tells its answer.

    Args:
        names: Those of its hyperparameters.
        tops: How many of the best trials are asked for as lists.
        registers: Whether it registers the best model.
        several: Whether it has several objectives.
    """
    of_params = (f"{PARAM}{input_name(name)}" for name in names)
    also = (*((FRONT,) if several else ()), *(OF_MODEL if registers else ()))
    return (*PLAIN, *of_params, *(f"{TOP}{count}" for count in sorted(tops)), *also)


def check_top(count: object) -> int:
    """Return how many of the best trials are asked for.

    Raises:
        SweepError: It is no whole number from 1 to ``MOST_TOP``.
    """
    if not is_whole(count) or not 1 <= count <= MOST_TOP:
        problem = f"top() takes a whole number of trials from 1 to {MOST_TOP}, not {count!r}"
        raise SweepError(problem)
    return count


def registered_model(given: object) -> str | None:
    """Return the name and the alias that ``register=`` says, as ``name@alias``; None for None.

    Raises:
        SweepError: MLflow takes no such name or alias.
    """
    if given is None:
        return None
    name, at, alias = given.partition("@") if isinstance(given, str) else ("", "", "")
    if not _MODEL.fullmatch(name):
        problem = f"register= is a model's name of letters, digits and '_', '-', '.' or ' ' inside, not {given!r}"
        raise SweepError(problem)
    if at and (not _ALIAS.fullmatch(alias) or _VERSION.fullmatch(alias) or alias.lower() == "latest"):
        problem = (
            f"register={given!r}: MLflow takes no alias {alias!r}; one has letters, digits, '_' and '-', and is "
            "neither 'latest' nor a version such as 'v1'"
        )
        raise SweepError(problem)
    return f"{name}@{alias or DEFAULT_ALIAS}"
