"""How a trial's author defined it: on the template in the workflow, and again on every pod."""

import logging
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final

from controllers.core import annotations as notes
from controllers.core import labels
from controllers.core.aims import NO_AIMS, Aims
from controllers.core.goals import AskedGoals, GoalError, aims_in, goals_in
from controllers.core.lineage import lineage_in
from controllers.core.model import Direction, Parameters, Point, TrialId
from controllers.core.parameters import parameters_in
from mlflow_hooks import contract, foreign_json

_LOG = logging.getLogger(__name__)
_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,252}")
MOST_WORKERS: Final = 64
_LONGEST = 8
"""Digits: Python refuses to read a number of thousands of them."""
_warned: set[str] = set()
_MOST_WARNINGS = 1000
"""Labels are anybody's to write: without a bound they could fill log and memory."""


@dataclass(frozen=True, slots=True)
class TrialDefinition:
    """A trial as its author defined it. ``name`` is short: unique in the workflow, the same in every run of it.

    It has from ``min_workers`` to ``workers`` workers.
    ``policy`` is None where its author left that open; ``params`` is the JSON text of its hyperparameters, and
    ``parameters`` are those of them that policies see. Where ``search`` gives it these, they are there once it did.
    ``lineage`` are the trials whose checkpoints it went on from.
    """

    id: TrialId
    sweep: str
    number: str
    objective: str
    direction: Direction
    policy: str | None
    workers: int
    params: str
    goals: AskedGoals = field(default_factory=AskedGoals)
    parameters: Parameters = ()
    search: str = ""
    min_workers: int = 1
    aims: Aims = NO_AIMS
    lineage: tuple[TrialId, ...] = ()

    @property
    def gang(self) -> bool:
        """Whether it may have several workers."""
        return self.workers > 1

    @property
    def asks(self) -> bool:
        """Whether a search has yet to give it its hyperparameters."""
        return bool(self.search) and not self.params

    @property
    def point(self) -> Point:
        """What a search gave it: for the annotations of its next pod."""
        given = self.hyperparameters() if self.search else {}
        return tuple((name, value) for name, value in given.items() if isinstance(value, str | int | float))

    def with_params(self, params: str, lineage: tuple[TrialId, ...]) -> "TrialDefinition":
        """Return this definition with what a search gave the trial, or a clone of one of ``lineage``."""
        return replace(self, params=params, parameters=parameters_in(params), lineage=lineage)

    @property
    def length(self) -> int:
        """How many characters it holds: a short placeholder may stand for many."""
        own = (self.id, self.sweep, self.number, self.objective, self.policy or "", self.params, self.search)
        texts = (*own, *self.aims.written, *self.lineage)
        return sum(map(len, texts))

    @property
    def name(self) -> str:
        """Sweep and number, as ``first-nodes`` names the trial."""
        return f"{self.sweep}.{self.number}"

    def mark(self, kind: str) -> str:
        """Return the name of the workflow's annotation of a ``kind`` of the trial's: Argo splits such at every dot."""
        return notes.of_trial(kind, self.sweep, self.number)

    def hyperparameters(self) -> dict[str, Any]:
        """Return the hyperparameters; none where the text is no JSON object."""
        try:
            parsed = foreign_json.parsed(self.params) if self.params else {}
        except ValueError:
            return {}
        return parsed if isinstance(parsed, dict) else {}


def read_definition(
    where: str, given_labels: Mapping[str, str], annotations: Mapping[str, str], env: Mapping[str, str]
) -> TrialDefinition | None:
    """Return what labels, annotations and environment of the main container say; None, and a warning, if that is amiss.

    Args:
        where: what they were found on, for the warning.
        given_labels: the labels.
        annotations: the annotations.
        env: the environment, with Argo's placeholders filled in.
    """
    trial, sweep = env.get(contract.ENV_TRIAL_ID, ""), env.get(contract.ENV_SWEEP_ID, "")
    direction = annotations.get(labels.ANNOTATION_DIRECTION, "")
    workers = annotations.get(labels.ANNOTATION_WORKERS, "1")
    least = annotations.get(labels.ANNOTATION_MIN_WORKERS, workers)
    checks = (
        (contract.ENV_TRIAL_ID, trial, _ID.fullmatch(trial)),
        (contract.ENV_SWEEP_ID, sweep, not sweep or _ID.fullmatch(sweep)),
        (labels.ANNOTATION_DIRECTION, direction, direction in set(Direction)),
        (labels.ANNOTATION_OBJECTIVE, "", annotations.get(labels.ANNOTATION_OBJECTIVE)),
        (labels.ANNOTATION_WORKERS, workers, 0 < _whole(workers) <= MOST_WORKERS),
        (labels.ANNOTATION_MIN_WORKERS, least, 0 < _whole(least) <= _whole(workers)),
    )
    problems = [f"{name} is {value!r}" for name, value, right in checks if not right]
    if problems:
        warn_once(where, f"{where} is left out: {problems[0][:300]}")
        return None
    params = env.get(contract.ENV_PARAMS, "") or annotations.get(labels.ANNOTATION_PARAMS, "")
    return TrialDefinition(
        id=TrialId(trial),
        sweep=given_labels.get(labels.LABEL_SWEEP, ""),
        number=given_labels.get(labels.LABEL_TRIAL, ""),
        objective=annotations[labels.ANNOTATION_OBJECTIVE],
        direction=Direction(direction),
        policy=annotations.get(labels.ANNOTATION_POLICY),
        workers=int(workers),
        params=params,
        goals=_goals(where, annotations),
        parameters=parameters_in(params),
        search=annotations.get(labels.ANNOTATION_SEARCH, ""),
        min_workers=int(least),
        aims=aims_noted(where, annotations),
        lineage=lineage_in(annotations.get(labels.ANNOTATION_LINEAGE, ""), TrialId(trial)),
    )


def _whole(written: str) -> int:
    """Return the whole number that is written, 0 where it is none."""
    return int(written) if written.isdecimal() and len(written) <= _LONGEST else 0


def _goals(where: str, annotations: Mapping[str, str]) -> AskedGoals:
    try:
        return goals_in(annotations)
    except GoalError as error:
        warn_once(f"{where}: goals", f"{where} goes on without goals: {error}")
        return AskedGoals()


def aims_noted(where: str, annotations: Mapping[str, str]) -> Aims:
    """Return what a sweep wants beside its first objective; what cannot be read is told once, and left out."""
    try:
        return aims_in(annotations)
    except GoalError as error:
        warn_once(f"{where}: aims", f"{where} goes on with its first objective alone: {error}")
        return NO_AIMS


def warn_once(key: str, message: str) -> None:
    """Log ``message`` once per ``key``."""
    if key not in _warned and len(_warned) < _MOST_WARNINGS:
        _warned.add(key)
        _LOG.warning("%s", message)
