"""Optuna's own pruners as a policy: what they say becomes a stop.

They see what they would see in a study of Optuna's: the value that each trial reported at each step, as far as it was
read, and which trials have ended. Their rules are theirs (``optuna.pruners``); nothing of them is rewritten here.
"""

import warnings
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from types import ModuleType
from typing import TYPE_CHECKING, Any, ClassVar, Final, Literal

from pydantic import Field

from controllers.core.model import Action, Decision, Direction, Phase, Proposal, Snapshot, Stop, Trial, TrialId
from controllers.policies.kit.settings import PolicyParameterError, PolicySettings

if TYPE_CHECKING:
    from optuna.pruners import BasePruner
    from optuna.study import Study
    from optuna.trial import FrozenTrial

Kind = Literal["asha", "hyperband", "median", "percentile", "threshold", "patient", "wilcoxon"]
CLASSES: Final[Mapping[str, str]] = {
    "asha": "SuccessiveHalvingPruner",
    "hyperband": "HyperbandPruner",
    "median": "MedianPruner",
    "percentile": "PercentilePruner",
    "threshold": "ThresholdPruner",
    "patient": "PatientPruner",
    "wilcoxon": "WilcoxonPruner",
}
"""Optuna's class for each kind; its successive halving is asynchronous (ASHA)."""
DIVERGED: Final = "its objective is NaN or infinite"
_NAME: Final = "sweep"
"""Of the study: Hyperband draws a trial's bracket from it."""


@dataclass(frozen=True, slots=True)
class Reported:
    """What a pruner knows of a trial: values by step, what it noted itself, and whether the trial has ended.

    ``number`` counts the trials in the order in which they first reported.
    """

    number: int
    values: tuple[tuple[int, float], ...] = ()
    notes: Mapping[str, float] = field(default_factory=dict)
    over: bool = False


@dataclass(frozen=True, slots=True)
class PrunerState:
    """What is known of the trials that have reported: of those that go on by name, of the others in ``ended``.

    ``ended`` is None before the first look.
    """

    trials: Mapping[TrialId, Reported] = field(default_factory=dict)
    ended: tuple[Reported, ...] | None = None


class OptunaPruner(PolicySettings):
    """Stops trials by a pruner of Optuna's.

    A pruner is asked whenever a trial has reported something new. Settings that are left out are Optuna's own; each
    belongs to the pruners that have one of that name.
    """

    name: ClassVar[str] = "optuna"
    summary: ClassVar[str] = "a pruner of Optuna's stops trials: ASHA, Hyperband, median and others, as they are"
    source: ClassVar[str] = "optuna.pruners (Akiba et al. 2019)"
    needs: ClassVar[frozenset[type[Action]]] = frozenset({Stop})
    stops: ClassVar[str] = "trials that the pruner would prune, and those that diverged"

    pruner: Kind = Field(default="asha", description="which of Optuna's pruners")
    min_resource: int | None = Field(default=None, ge=1, description="asha, hyperband: steps before the first look")
    max_resource: int | None = Field(default=None, ge=1, description="hyperband: steps of a whole training")
    reduction_factor: int | None = Field(default=None, ge=2, description="asha, hyperband: one of so many goes on")
    min_early_stopping_rate: int | None = Field(default=None, ge=0, description="asha: rungs to leave out")
    bootstrap_count: int | None = Field(default=None, ge=0, description="asha, hyperband: trials that a rung waits for")
    percentile: float | None = Field(default=None, ge=0, le=100, description="percentile: how many of 100 go on")
    n_startup_trials: int | None = Field(default=None, ge=0, description="median, percentile: trials that end first")
    n_warmup_steps: int | None = Field(
        default=None, ge=0, description="median, percentile, threshold: steps before the first look"
    )
    interval_steps: int | None = Field(
        default=None, ge=1, description="median, percentile, threshold: steps between two looks"
    )
    n_min_trials: int | None = Field(default=None, ge=1, description="median, percentile: trials to compare with")
    lower: float | None = Field(default=None, description="threshold: least value that goes on")
    upper: float | None = Field(default=None, description="threshold: greatest value that goes on")
    patience: int | None = Field(default=None, ge=0, description="patient: steps without an improvement")
    min_delta: float | None = Field(default=None, ge=0, description="patient: what counts as an improvement")
    p_threshold: float | None = Field(default=None, ge=0, le=1, description="wilcoxon: level of significance")
    n_startup_steps: int | None = Field(default=None, ge=0, description="wilcoxon: steps before the first look")
    interval: float = Field(default=1.0, gt=0, description="seconds between two looks at what the trials report")

    def __init__(self, **parameters: Any) -> None:  # noqa: ANN401 - pydantic checks them
        super().__init__(**parameters)
        self.made()

    @property
    def state_type(self) -> type[PrunerState]:
        """Type of the state."""
        return PrunerState

    def initial(self) -> PrunerState:
        """Return the state before the first decision."""
        return PrunerState()

    def made(self) -> "BasePruner":
        """Return the pruner.

        Raises:
            PolicyParameterError: It does not take these settings, or needs one that is not given.
        """
        given = {name: getattr(self, name) for name in type(self).model_fields if name not in {"pruner", "interval"}}
        settings = {name: value for name, value in given.items() if value is not None}
        if self.pruner == "patient":
            settings["wrapped_pruner"] = None
        try:
            made: BasePruner = getattr(_optuna().pruners, CLASSES[self.pruner])(**settings)
        except (TypeError, ValueError) as error:
            message = f"{self.name}: Optuna's pruner {self.pruner!r} cannot be made: {error}"
            raise PolicyParameterError(message) from None
        return made

    def decide(self, snapshot: Snapshot, state: PrunerState) -> Decision[PrunerState]:
        """Ask the pruner about each trial that has reported something new, the oldest report first."""
        known, ended = dict(state.trials), state.ended or ()
        news = [
            trial
            for trial in snapshot.trials
            if trial.progress is not None
            and (trial.id in known or not trial.phase.ended or state.ended is None)
            and _is_new(trial, known)
        ]
        news.sort(key=lambda trial: (trial.progress.at if trial.progress else 0.0, trial.id))
        for trial in news:
            known[trial.id] = _with_report(trial, known.get(trial.id) or Reported(len(known) + len(ended)))
        diverged = {trial.id for trial in snapshot.unended if trial.steady and trial.diverged}
        stops = [Proposal(Stop(name, DIVERGED), DIVERGED) for name in sorted(diverged)]
        running = [trial for trial in news if trial.steady and trial.id not in diverged]
        if running:
            study = _study((*known.values(), *ended), running[0].direction)
            pruner, why = self.made(), f"Optuna's pruner {self.pruner!r} would prune it"
            for trial in running:
                before = known[trial.id]
                if pruner.prune(study, _trials(study)[before.number]):
                    stops.append(Proposal(Stop(trial.id, why), why))
                noted = _trials(study)[before.number].system_attrs.items()
                known[trial.id] = replace(before, notes={name: float(value) for name, value in noted})
        over = [name for name in known if name not in snapshot.named or snapshot.named[name].phase.ended]
        ended = (*ended, *(known.pop(name) for name in over))
        wake_at = snapshot.now + self.interval if snapshot.unended else None
        return Decision(PrunerState(known, ended), tuple(stops), wake_at)


def _is_new(trial: Trial, known: Mapping[TrialId, Reported]) -> bool:
    before = known.get(trial.id)
    if before is None or trial.progress is None:
        return True
    return before.over != (trial.phase is Phase.SUCCEEDED) or before.values[-1][0] < trial.progress.step


def _with_report(trial: Trial, before: Reported) -> Reported:
    values = before.values
    if trial.progress is not None and (not values or values[-1][0] < trial.progress.step):
        values = (*values, (trial.progress.step, trial.progress.latest))
    return Reported(before.number, values, before.notes, trial.phase is Phase.SUCCEEDED)


def _study(reported: Iterable[Reported], direction: Direction) -> "Study":
    """Return a study with these trials; which of them were stopped makes no difference to any pruner."""
    optuna = _optuna()
    study: Study = optuna.create_study(study_name=_NAME, direction=direction.value)
    state = optuna.trial.TrialState
    for one in sorted(reported, key=lambda one: one.number):
        study.add_trial(
            optuna.trial.create_trial(
                state=state.COMPLETE if one.over else state.RUNNING,
                value=one.values[-1][1] if one.over else None,
                intermediate_values=dict(one.values),
                system_attrs=dict(one.notes),
            )
        )
    return study


def _trials(study: "Study") -> "list[FrozenTrial]":
    return study.get_trials(deepcopy=False)


def _optuna() -> ModuleType:
    import optuna  # noqa: PLC0415 - it takes a third of a second, and few sweeps use it

    optuna.logging.set_verbosity(optuna.logging.ERROR)
    warnings.filterwarnings("ignore", category=optuna.exceptions.ExperimentalWarning)
    return optuna
