"""The experiments that others published, F1 to B1, as ``published.toml`` has them: that file says whose they are."""

import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Final

from pydantic import BaseModel, BeforeValidator, ConfigDict, TypeAdapter

from controllers.lab.simulation.experiments.arrivals import FixedInterval, Trace, UniformWindow
from controllers.lab.simulation.experiments.experiment import Assumptions, Experiment, Published
from controllers.lab.simulation.experiments.jobs import (
    FLOWCON_JOBS,
    STRESS_JOBS,
    TrainingJob,
    jobs_named,
    specon_jobs,
    specon_vae,
)
from controllers.lab.simulation.measures import CLUSTER, RunMeasure, watched

_FILE: Final = Path(__file__).with_name("published.toml")
_JOBS: Final = {"flowcon": FLOWCON_JOBS, "vae": (specon_vae(),), "stress": STRESS_JOBS}


def _read_jobs(told: str | list[str] | dict[str, float]) -> tuple[TrainingJob, ...]:
    match told:
        case str():
            return _JOBS[told]
        case list():
            return jobs_named(FLOWCON_JOBS, *told)
        case _:
            return specon_jobs(**told)


def _read_measures(told: str | dict[str, int]) -> tuple[RunMeasure, ...]:
    return {"cluster": CLUSTER}[told] if isinstance(told, str) else (watched(**told),)


def _read_quotients(told: dict[str, Any]) -> dict[str, Any]:
    """Return what was published of a run, with a number in place of each text such as ``4/5``."""
    values = {key: str(value).partition("/") for key, value in told.items()}
    return told | {key: float(over) / float(under) for key, (over, sign, under) in values.items() if sign}


class _Entry(BaseModel):
    """An experiment as the file has it; its fields are those of ``Experiment``."""

    model_config = ConfigDict(extra="forbid")

    title: str
    jobs: Annotated[tuple[TrainingJob, ...], BeforeValidator(_read_jobs)]
    drawn: int | None = None
    arrivals: FixedInterval | UniformWindow | Trace
    nodes: int
    sizes: tuple[float, ...] = ()
    assumptions: Assumptions = Assumptions()
    measures: Annotated[tuple[RunMeasure, ...], BeforeValidator(_read_measures)] = ()
    settings: dict[str, dict[str, int | float]] = {}
    published: tuple[Annotated[Published, BeforeValidator(_read_quotients)], ...]


def read_experiments(text: str) -> dict[str, Experiment]:
    """Return the experiments of a text such as ``published.toml`` holds, by id.

    Raises:
        ValidationError: An entry lacks a key, has one that is not known, or a value of another kind.
    """
    entries = TypeAdapter(dict[str, _Entry]).validate_python(tomllib.loads(text))
    return {name: Experiment(id=name, **dict(entry)) for name, entry in entries.items()}


EXPERIMENTS: Final[Mapping[str, Experiment]] = read_experiments(_FILE.read_text(encoding="utf-8"))
"""By id, as ``specon simulate`` names them."""
