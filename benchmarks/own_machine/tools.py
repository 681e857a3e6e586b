"""The tools that run the trials, each as somebody uses it who knows it: one trial for each core at a time."""

import json
import shutil
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final

OWN: Final = "specon"
ORDER: Final = "order.json"
TRIALS: Final = "trials.txt"
STAMPS: Final = "stamps"
_TRAIN: Final = "benchmarks.own_machine.train"


@dataclass(frozen=True, slots=True)
class Order:
    """What a tool is told: which trials, as words of a command line without and with what all have in common."""

    workload: str
    sizes: str
    seed: int
    cores: int
    lists: tuple[tuple[str, ...], ...]
    common: tuple[str, ...]

    @property
    def trials(self) -> list[list[str]]:
        """The words of each trial."""
        return [[*words, *self.common] for words in self.lists]

    def write(self, folder: Path) -> None:
        """Write it for the processes of tools, and a line for each trial for those of a shell."""
        (folder / ORDER).write_text(json.dumps(asdict(self)), "utf-8")
        (folder / TRIALS).write_text("".join(f"{' '.join(words)}\n" for words in self.lists), "utf-8")

    @classmethod
    def read(cls, folder: Path) -> "Order":
        """Return what was written."""
        data: dict[str, Any] = json.loads((folder / ORDER).read_text("utf-8"))
        lists = tuple(map(tuple, data.pop("lists")))
        return cls(**data | {"lists": lists, "common": tuple(data["common"])})


@dataclass(frozen=True, slots=True)
class Tool:
    """How a tool is called in a folder that holds the order, what it needs, and how one installs that."""

    title: str
    command: Callable[[Order], Sequence[str]]
    package: str = ""
    program: str = ""
    install: str = ""

    @property
    def lacks(self) -> str:
        """What it cannot be run without and is not there; empty where all is."""
        if self.package and find_spec(self.package) is None:
            return f"the package {self.package} is not installed ({self.install})"
        if self.program and shutil.which(self.program) is None:
            return f"there is no program {self.program}"
        return ""


def _xargs(order: Order) -> list[str]:
    return ["xargs", "-a", TRIALS, "-P", str(order.cores), "-L", "1", sys.executable, "-m", _TRAIN, *order.common]


def _module(name: str) -> Callable[[Order], Sequence[str]]:
    return lambda _: [sys.executable, "-m", f"benchmarks.own_machine.{name}"]


def _specon(_: Order) -> list[str]:
    return [sys.executable, "-m", "hera_specon.cli", "run", str(Path(__file__).with_name("sweep.py"))]


TOOLS: Final[Mapping[str, Tool]] = {
    "xargs": Tool("`xargs -P`", _xargs, program="xargs"),
    "joblib": Tool("joblib", _module("in_joblib"), "joblib", install="pip install joblib"),
    "optuna": Tool("Optuna, processes", _module("in_optuna"), "optuna", install="pip install optuna"),
    "ray": Tool("Ray Tune", _module("in_ray"), "ray", install="pip install 'ray[tune]'"),
    OWN: Tool("`specon run`", _specon),
}
