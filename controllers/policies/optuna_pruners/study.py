"""What a pruner of Optuna's knows of a sweep, and the study in memory that shows it to the pruner."""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Annotated, Any, Final

from pydantic import Field

from controllers.core.model import Direction, Phase, Trial, TrialId
from controllers.core.optuna_library import quiet_optuna

if TYPE_CHECKING:
    from optuna.pruners import BasePruner
    from optuna.study import Study

MOST_LOOKS: Final = 100
"""Of a pruner at one training that tells its steps: more would make no better choice, and no state that can be kept."""
MOST_KEPT: Final = 2 * MOST_LOOKS
"""Values of a training that goes on beyond what it told, or told nothing; then every second one is kept."""
_NAME: Final = "sweep"
"""Of the study: Hyperband draws a trial's bracket from it."""


@dataclass(frozen=True, slots=True)
class PrunerView:
    """What a pruner knows of a trial: values by step, what it noted itself, and whether the trial has succeeded.

    ``number`` counts the trials of ``sweep`` in the order in which they first reported. ``every`` is the number of
    steps between two values that are kept, the same for all trials of a sweep.
    """

    sweep: str
    number: int
    every: int
    values: tuple[tuple[int, float], ...] = ()
    notes: Mapping[str, float] = field(default_factory=dict)
    over: bool = False

    def has(self, trial: Trial) -> bool:
        """Whether all that ``trial`` shows is known."""
        if self.over != (trial.phase is Phase.SUCCEEDED):
            return False
        return trial.progress is None or (bool(self.values) and self.values[-1][0] >= self._step(trial.progress.step))

    def with_report(self, trial: Trial) -> "PrunerView":
        """Return this with the newest report of ``trial``.

        Steps between two looks get the value of the later one: pruners that compare trials at the same step would
        otherwise find few that were seen at just that step.
        """
        progress, over = trial.progress, trial.phase is Phase.SUCCEEDED
        if progress is None:
            return replace(self, over=over)
        newest, before = self._step(progress.step), self.values[-1][0] if self.values else -self.every
        filled = range(before + self.every, newest, self.every) if progress.steps_total else ()
        steps = (*filled, newest) if newest > before else ()
        return replace(self, values=(*self.values, *((step, progress.latest) for step in steps)), over=over)

    def every_needed(self, step: int) -> int:
        """Return how far apart the values must lie for those up to ``step`` to be few enough."""
        every = self.every
        while step // every >= MOST_KEPT or (every == self.every and len(self.values) > MOST_KEPT):
            every *= 2
        return every

    def thin(self, every: int) -> "PrunerView":
        """Return this with values that lie ``every`` steps apart, the first of each stretch."""
        kept: dict[int, float] = {}
        for step, value in self.values:
            kept.setdefault(step // every * every, value)
        return replace(self, every=every, values=tuple(kept.items()))

    def _step(self, step: int) -> int:
        return max(0, step) // self.every * self.every


def steps_between_looks(trials: Iterable[Trial], sweep: str) -> int:
    """Return how many steps lie between two looks at the trials of ``sweep``, by the longest that tells its steps."""
    told = [trial.progress.steps_total or 1 for trial in trials if trial.sweep == sweep and trial.progress]
    return max(1, math.ceil(max(told, default=1) / MOST_LOOKS))


class PrunedStudy:
    """A study of Optuna's with the trials of one sweep. Which of them were stopped makes no difference to a pruner."""

    def __init__(self, direction: Direction) -> None:
        optuna = quiet_optuna()
        self._storage = optuna.storages.InMemoryStorage()
        self._study: Study = optuna.create_study(study_name=_NAME, storage=self._storage, direction=direction.value)
        self._known: list[PrunerView] = []
        self._ids: list[int] = []

    def learn(self, reported: Iterable[PrunerView]) -> None:
        """Take in all trials of the sweep that have reported, as they are known now."""
        for view in sorted(reported, key=lambda view: view.number):
            if view.number == len(self._known):
                self._begin(view)
            elif view is not self._known[view.number]:
                self._go_on(view)

    def prunes(self, pruner: "BasePruner", view: PrunerView) -> tuple[bool, PrunerView]:
        """Return whether ``pruner`` would prune a trial, and what is known of it with what the pruner noted."""
        pruned = pruner.prune(self._study, self._study.get_trials(deepcopy=False)[view.number])
        noted = self._study.get_trials(deepcopy=False)[view.number].system_attrs
        known = replace(view, notes={name: float(value) for name, value in noted.items()})
        self._known[view.number] = known
        return pruned, known

    def _begin(self, view: PrunerView) -> None:
        optuna = quiet_optuna()
        running = optuna.trial.create_trial(
            state=optuna.trial.TrialState.RUNNING,
            intermediate_values=dict(view.values),
            system_attrs=dict(view.notes),
        )
        self._study.add_trial(running)
        study = self._storage.get_study_id_from_name(_NAME)
        self._ids.append(self._storage.get_trial_id_from_study_id_trial_number(study, view.number))
        self._known.append(replace(view, over=False))
        self._go_on(view)

    def _go_on(self, view: PrunerView) -> None:
        before = self._known[view.number]
        for step, value in view.values[len(before.values) :]:
            self._storage.set_trial_intermediate_value(self._ids[view.number], step, value)
        if view.over and not before.over:
            self._study.tell(view.number, view.values[-1][1])
        self._known[view.number] = view


@dataclass(frozen=True, slots=True)
class PrunerState:
    """What is known of the trials that have reported: of those that go on by name, of the others in ``ended``.

    ``ended`` is None before the first look. ``studies`` spares the next decision to build the studies again; it is not
    kept with the state, and who takes it takes it out.
    """

    trials: Mapping[TrialId, PrunerView] = field(default_factory=dict)
    ended: tuple[PrunerView, ...] | None = None
    studies: Annotated[dict[str, Any], Field(exclude=True)] = field(default_factory=dict, compare=False, repr=False)

    def take_studies(self) -> dict[str, PrunedStudy]:
        """Return the studies of this state by sweep, once: they change with the next decision."""
        studies = dict(self.studies)
        self.studies.clear()
        return studies
