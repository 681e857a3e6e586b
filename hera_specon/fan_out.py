"""The templates that start a sweep's trials: all at once, or each after a delay of its own."""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from hera.workflows.models import (
    Arguments,
    Artifact,
    Inputs,
    Item,
    ParallelSteps,
    Parameter,
    SuspendTemplate,
    Template,
    WorkflowStep,
)

from controllers.core import labels
from hera_specon.settings import input_name
from hera_specon.space import Point, value_text
from hera_specon.trial_template import params_text, placeholder

_MOST_NAMED: Final = 1000
"""Up to so many trials, each value stands beside its hyperparameter's name, so that people can read it. In a larger
sweep the trials' numbers have more digits as well, so a sweep that gets more trials keeps the form that it began
with."""


@dataclass(frozen=True, slots=True)
class FanOut:
    """The trials of a sweep, and the delay before each (in seconds) if they do not all come at once.

    ``added`` are inputs of the sweep that its author declared; each trial gets them as they are. ``goals`` are inputs
    too, with a value for each trial. Points without hyperparameters are left to a search.
    """

    sweep: str
    points: tuple[Point, ...]
    delays: tuple[float, ...] | None
    added: Inputs
    parallelism: int | None
    goals: Mapping[str, tuple[str, ...]]

    @property
    def names(self) -> tuple[str, ...]:
        """Input parameters that each trial gets a value of its own for."""
        delay = () if self.delays is None else (labels.INPUT_DELAY,)
        whole = (labels.INPUT_PARAMS,) if self.gives_json else ()
        return (labels.INPUT_TRIAL, *whole, *map(input_name, self.points[0]), *self.goals, *delay)

    @property
    def keys(self) -> tuple[str, ...]:
        """What stands before each value in a trial's item: of large sweeps only the place of its name in ``names``.

        A cluster takes a workflow of a megabyte or so, and the names of three hyperparameters take a third of an item.
        """
        names = self.names
        return names if len(self.points) <= _MOST_NAMED else tuple(map(str, range(len(names))))

    @property
    def last_number(self) -> str:
        """Number of the last trial; the numbers of all are equally long."""
        return self.number(len(self.points) - 1)

    def number(self, place: int) -> str:
        """Return the number of the trial at ``place``, from 0."""
        return f"t{place:0{self._width}}"

    @property
    def _width(self) -> int:
        return max(3, len(str(len(self.points) - 1)))

    @property
    def gives_json(self) -> bool:
        """Whether each trial gets its hyperparameters as JSON too, since its template cannot make that."""
        return params_text(self.points) == placeholder(labels.INPUT_PARAMS)


def sweep_template(fan_out: FanOut) -> Template:
    """Return the template that runs every trial side by side.

    A trial that fails for good stops no other: the steps of a group all run to their end, then the group fails, so
    that Argo's Retry starts the failed trials alone. To go on regardless, call the sweep as a step with
    ``continue_on``.
    """
    waits = fan_out.delays is not None
    given = {name: f"{{{{item.{key}}}}}" for name, key in zip(fan_out.names, fan_out.keys, strict=True)}
    step = WorkflowStep(
        name="arrival" if waits else "trial",
        template=fan_out.sweep + (labels.SUFFIX_ARRIVAL if waits else labels.SUFFIX_TRIAL),
        arguments=_arguments(given, fan_out.added),
        with_items=[Item(root=item) for item in _items(fan_out)],
    )
    return Template(
        name=fan_out.sweep,
        inputs=fan_out.added if fan_out.added.parameters or fan_out.added.artifacts else None,
        steps=[ParallelSteps(root=[step])],
        parallelism=fan_out.parallelism,
    )


def arrival_template(fan_out: FanOut) -> Template:
    """Return the template that waits, then runs one trial."""
    trial = tuple(name for name in fan_out.names if name != labels.INPUT_DELAY)
    wait = WorkflowStep(
        name="wait",
        template=fan_out.sweep + labels.SUFFIX_DELAY,
        arguments=_arguments({labels.INPUT_DELAY: placeholder(labels.INPUT_DELAY)}, Inputs()),
    )
    run = WorkflowStep(
        name="trial",
        template=fan_out.sweep + labels.SUFFIX_TRIAL,
        arguments=_arguments({name: placeholder(name) for name in trial}, fan_out.added),
    )
    added = fan_out.added
    return Template(
        name=fan_out.sweep + labels.SUFFIX_ARRIVAL,
        inputs=Inputs(parameters=[*_declare(fan_out.names), *(added.parameters or [])], artifacts=added.artifacts),
        steps=[ParallelSteps(root=[wait]), ParallelSteps(root=[run])],
    )


def delay_template(fan_out: FanOut) -> Template:
    """Return the template that only waits."""
    return Template(
        name=fan_out.sweep + labels.SUFFIX_DELAY,
        inputs=Inputs(parameters=_declare((labels.INPUT_DELAY,))),
        suspend=SuspendTemplate(duration=placeholder(labels.INPUT_DELAY)),
    )


def _items(fan_out: FanOut) -> Iterable[dict[str, object]]:
    gives_json = fan_out.gives_json
    keys = dict(zip(fan_out.names, fan_out.keys, strict=True))
    for number, point in enumerate(fan_out.points):
        # Argo puts a string of an item in as its JSON without the quotes, so JSON inside a string would arrive
        # escaped; an object arrives as JSON. Values of their own are text, so that no number is written differently.
        item: dict[str, object] = {labels.INPUT_TRIAL: fan_out.number(number)}
        if gives_json:
            item[labels.INPUT_PARAMS] = point
        item |= {input_name(name): value_text(value) for name, value in point.items()}
        item |= {name: values[number] for name, values in fan_out.goals.items()}
        if fan_out.delays is not None:
            item[labels.INPUT_DELAY] = f"{json.dumps(fan_out.delays[number])}s"
        yield {keys[name]: value for name, value in item.items()}


def _arguments(values: dict[str, str], added: Inputs) -> Arguments:
    passed = {parameter.name: placeholder(parameter.name) for parameter in added.parameters or []}
    artifacts = [Artifact(name=a.name, from_=f"{{{{inputs.artifacts.{a.name}}}}}") for a in added.artifacts or []]
    return Arguments(
        parameters=[Parameter(name=name, value=value) for name, value in {**values, **passed}.items()],
        artifacts=artifacts or None,
    )


def _declare(names: tuple[str, ...]) -> list[Parameter]:
    return [Parameter(name=name) for name in names]
