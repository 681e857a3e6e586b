"""Optuna's own pruners as a policy: what they say becomes a stop.

They see what they would see in a study of Optuna's: the value that each trial reported at each step, and which trials
have ended. Their rules are theirs (``optuna.pruners``); nothing of them is rewritten here. Of a training of more than
a hundred steps, they see a hundred; of one that reports more steps than it told, from one to two hundred.
"""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Final, Literal

from pydantic import Field

from controllers.core.actions import Action, Decision, Proposal, Stop
from controllers.core.model import Snapshot, Trial, TrialId
from controllers.core.optuna_library import quiet_optuna
from controllers.policies.kit.settings import PolicyParameterError, PolicySettings
from controllers.policies.kit.sweeps import by_sweep
from controllers.policies.optuna_pruners.study import PrunedStudy, PrunerState, PrunerView, steps_between_looks

if TYPE_CHECKING:
    from optuna.pruners import BasePruner

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


_MOST_STEPS: Final = 2**53
"""Settings come from tenants, and Optuna raises the reduction factor to the power of the rung."""


class OptunaPruner(PolicySettings):
    """Stops trials by a pruner of Optuna's.

    A pruner is asked whenever a trial has reported something new. Settings that are left out are Optuna's own; each
    belongs to the pruners that have one of that name.
    """

    name: ClassVar[str] = "optuna"
    summary: ClassVar[str] = "a pruner of Optuna's stops trials: ASHA, Hyperband, median and others, as they are"
    source: ClassVar[str] = "optuna.pruners (Akiba et al. 2019)"
    state_type: ClassVar[type[PrunerState]] = PrunerState
    needs: ClassVar[frozenset[type[Action]]] = frozenset({Stop})
    stops: ClassVar[str] = "trials that the pruner would prune, and those that diverged"
    one_objective: ClassVar[str] = "Optuna's pruners compare one value of each trial"

    pruner: Kind = Field(default="asha", description="which of Optuna's pruners")
    min_resource: int | None = Field(
        default=None, ge=1, le=_MOST_STEPS, description="asha, hyperband: steps before the first look"
    )
    max_resource: int | None = Field(
        default=None, ge=1, le=_MOST_STEPS, description="hyperband: steps of a whole training"
    )
    reduction_factor: int | None = Field(
        default=None, ge=2, le=10_000, description="asha, hyperband: one of so many goes on"
    )
    min_early_stopping_rate: int | None = Field(default=None, ge=0, le=100, description="asha: rungs to leave out")
    bootstrap_count: int | None = Field(
        default=None, ge=0, le=_MOST_STEPS, description="asha, hyperband: trials that a rung waits for"
    )
    percentile: float | None = Field(default=None, ge=0, le=100, description="percentile: how many of 100 go on")
    n_startup_trials: int | None = Field(
        default=None, ge=0, le=_MOST_STEPS, description="median, percentile: trials that end first"
    )
    n_warmup_steps: int | None = Field(
        default=None, ge=0, le=_MOST_STEPS, description="median, percentile, threshold: steps before the first look"
    )
    interval_steps: int | None = Field(
        default=None, ge=1, le=_MOST_STEPS, description="median, percentile, threshold: steps between two looks"
    )
    n_min_trials: int | None = Field(
        default=None, ge=1, le=_MOST_STEPS, description="median, percentile: trials to compare with"
    )
    lower: float | None = Field(default=None, description="threshold: least value that goes on")
    upper: float | None = Field(default=None, description="threshold: greatest value that goes on")
    patience: int | None = Field(
        default=None, ge=0, le=_MOST_STEPS, description="patient: steps without an improvement"
    )
    min_delta: float | None = Field(default=None, ge=0, description="patient: what counts as an improvement")
    p_threshold: float | None = Field(default=None, ge=0, le=1, description="wilcoxon: level of significance")
    n_startup_steps: int | None = Field(
        default=None, ge=0, le=_MOST_STEPS, description="wilcoxon: steps before the first look"
    )
    interval: float = Field(default=1.0, gt=0, description="seconds between two looks at what the trials report")

    def __init__(self, **parameters: Any) -> None:  # noqa: ANN401 - pydantic checks them
        super().__init__(**parameters)
        self.make_pruner()

    def make_pruner(self) -> "BasePruner":
        """Return the pruner.

        Raises:
            PolicyParameterError: It does not take these settings, or needs one that is not given.
        """
        given = {name: getattr(self, name) for name in type(self).model_fields if name not in {"pruner", "interval"}}
        settings = {name: value for name, value in given.items() if value is not None}
        if self.pruner == "patient":
            settings["wrapped_pruner"] = None
        try:
            made: BasePruner = getattr(quiet_optuna().pruners, CLASSES[self.pruner])(**settings)
        except (TypeError, ValueError) as error:
            message = f"{self.name}: Optuna's pruner {self.pruner!r} cannot be made: {error}"
            raise PolicyParameterError(message) from None
        return made

    def decide(self, snapshot: Snapshot, state: PrunerState) -> Decision[PrunerState]:
        """Ask the pruner about each trial that has reported something new, the oldest report first."""
        known, ended, studies = dict(state.trials), state.ended or (), state.take_studies()
        # Optuna refuses to prune where there are several objectives: this policy is refused there as well.
        compared = (trial for trial in snapshot.trials if not trial.aims.further)
        news = [trial for trial in compared if trial.progress is not None and _is_new(trial, state)]
        news.sort(key=lambda trial: (trial.progress.at if trial.progress else 0.0, trial.id))
        for of_sweep in by_sweep(news).values():
            ended = _take_in(of_sweep, snapshot, known, ended, studies)
        diverged = {trial.id for trial in snapshot.unended if trial.steady and trial.diverged}
        stops = [Proposal(Stop(name, DIVERGED), DIVERGED) for name in sorted(diverged)]
        running = [trial for trial in news if trial.steady and trial.id not in diverged]
        why = f"Optuna's pruner {self.pruner!r} would prune it"
        for sweep, asked in sorted(by_sweep(running).items()):
            pruner = self.make_pruner()
            study = studies[sweep] = studies.get(sweep) or PrunedStudy(asked[0].direction)
            study.learn(view for view in (*ended, *known.values()) if view.sweep == sweep)
            for trial in asked:
                pruned, known[trial.id] = study.prunes(pruner, known[trial.id])
                stops += [Proposal(Stop(trial.id, why), why)] if pruned else []
        over = [name for name in known if name not in snapshot.named or snapshot.named[name].phase.ended]
        ended = (*ended, *(known.pop(name) for name in over))
        wake_at = snapshot.now + self.interval if snapshot.unended else None
        return Decision(PrunerState(known, ended, studies), tuple(stops), wake_at)


def _is_new(trial: Trial, state: PrunerState) -> bool:
    before = state.trials.get(trial.id)
    if before is None:
        return state.ended is None or not trial.phase.ended
    return not before.has(trial)


def _take_in(
    news: Sequence[Trial],
    snapshot: Snapshot,
    known: dict[TrialId, PrunerView],
    ended: tuple[PrunerView, ...],
    studies: dict[str, PrunedStudy],
) -> tuple[PrunerView, ...]:
    """Put the ``news`` of a sweep into ``known``; return ``ended``, thinned where its trials go on for too long.

    All trials of a sweep keep values at the same steps: pruners compare them there.
    """
    sweep = news[0].sweep
    of_sweep = [view for view in (*ended, *known.values()) if view.sweep == sweep]
    every = of_sweep[0].every if of_sweep else steps_between_looks(snapshot.trials, sweep)
    for number, trial in enumerate((trial for trial in news if trial.id not in known), start=len(of_sweep)):
        known[trial.id] = PrunerView(sweep, number, every)
    needed = max(known[view.id].every_needed(view.progress.step) for view in news if view.progress)
    if needed > every:
        studies.pop(sweep, None)
        ended = tuple(view.thin(needed) if view.sweep == sweep else view for view in ended)
        known |= {name: view.thin(needed) for name, view in known.items() if view.sweep == sweep}
    known |= {trial.id: known[trial.id].with_report(trial) for trial in news}
    return ended
