"""Optuna's samplers as searches: a study in memory for each sweep, told what is known of its trials.

What is known is read anew from the cluster and from MLflow at each question, so a controller that starts again builds
the study again. Nothing that Optuna stores is kept, since some samplers store pickles.
"""

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from controllers.core.errors import SearchError
from controllers.core.model import Direction, Phase, Point, Snapshot, Trial, TrialId, Value
from controllers.core.optuna_library import quiet_optuna
from controllers.search.spec import Dimension, Options, SearchSpec, read_search

if TYPE_CHECKING:
    from optuna.distributions import BaseDistribution
    from optuna.samplers import BaseSampler

SHORT_NAMES: Final[Mapping[str, str]] = {"tpe": "TPESampler", "cmaes": "CmaEsSampler", "random": "RandomSampler"}
"""What people call the commonest samplers, beside the names of Optuna's own classes."""
_NO_SEARCH: Final = frozenset(
    {"BaseSampler", "BaseGASampler", "PartialFixedSampler", "GridSampler", "BruteForceSampler"}
)
"""Classes of Optuna's that cannot be used: bases, one that needs another, and those that run out of points."""


class OptunaSearch:
    """Finds hyperparameters by the sampler of each sweep's search."""

    def __init__(self) -> None:
        self._studies: dict[tuple[str, str], _Study] = {}

    def ask(self, trial: Trial, snapshot: Snapshot, points: Mapping[TrialId, Point]) -> Point:
        """Return the hyperparameters of ``trial``; see ``Search``."""
        # Two sweeps of a workflow may search in the same words, and know nothing of each other.
        spec = read_search(trial.search)
        key = (trial.sweep, trial.search)
        others = [one for one in snapshot.trials if (one.sweep, one.search) == key]
        if key not in self._studies:
            # A study that is built again must not draw the points again that it began with.
            begun = sum(one.id in points or bool(one.parameters) for one in others)
            self._studies[key] = _Study(spec, trial.direction, spec.seed + begun)
        study = self._studies[key]
        try:
            study.learn(others, points)
            return study.ask(trial.id)
        except Exception as error:  # a sampler may raise anything, and other sweeps go on
            message = f"the search {spec.sampler!r} failed: {type(error).__name__}: {str(error)[:200]}"
            raise SearchError(message) from error


class _Study:
    """A study of Optuna's, and which of its trials are ours."""

    def __init__(self, spec: SearchSpec, direction: Direction, seed: int) -> None:
        optuna = quiet_optuna()
        self._spec = spec
        self._study = optuna.create_study(direction=direction.value, sampler=sampler_of(spec, seed))
        self._numbers: dict[TrialId, int] = {}
        self._over: set[TrialId] = set()

    def learn(self, trials: list[Trial], points: Mapping[TrialId, Point]) -> None:
        """Take in which trials have begun or ended since the last time."""
        for trial in trials:
            if trial.id in self._over:
                continue
            if trial.id not in self._numbers:
                point = points.get(trial.id) or self._spec.point_of(trial.parameters)
                if point is None:
                    continue  # not begun, or begun with values of somebody else's
                self._add(trial.id, point)
            if trial.phase.ended:
                self._tell(trial)

    def ask(self, trial: TrialId) -> Point:
        """Return a new point, which counts as one that is being tried from now on."""
        asked = self._study.ask()

        def draw(dimension: Dimension) -> Value:
            name, domain = dimension.name, dimension.domain
            if isinstance(domain, Options):
                value: Value = asked.suggest_categorical(name, domain.options)
            elif domain.whole:
                value = asked.suggest_int(name, int(domain.low), int(domain.high), log=domain.log)
            else:
                value = domain.tidy(asked.suggest_float(name, domain.low, domain.high, log=domain.log))
            return value

        point = self._spec.drawn(draw)
        self._numbers[trial] = asked.number
        return point

    def _add(self, name: TrialId, point: Point) -> None:
        optuna = quiet_optuna()
        drawn = self._spec.that_matter(point)
        self._study.add_trial(
            optuna.trial.create_trial(
                state=optuna.trial.TrialState.RUNNING,
                params={dimension.name: value for dimension, value in drawn.items()},
                distributions={dimension.name: _distribution(dimension) for dimension in drawn},
            )
        )
        self._numbers[name] = self._study.get_trials(deepcopy=False)[-1].number

    def _tell(self, trial: Trial) -> None:
        """Tell what a trial came to: its best value so far, also where it was stopped."""
        optuna = quiet_optuna()
        best = None if trial.progress is None else trial.progress.best
        if best is None or not math.isfinite(best) or trial.phase is Phase.FAILED:
            self._study.tell(self._numbers[trial.id], state=optuna.trial.TrialState.FAIL)
        else:
            self._study.tell(self._numbers[trial.id], best)
        self._over.add(trial.id)


def sampler_of(spec: SearchSpec, seed: int) -> "BaseSampler":
    """Return the sampler that ``spec`` names, with its settings.

    Raises:
        SearchError: Optuna has none of that name, it takes no such settings, or something that it needs is missing.
    """
    samplers = quiet_optuna().samplers
    name = SHORT_NAMES.get(spec.sampler, spec.sampler)
    known = sorted(set(samplers.__all__) - _NO_SEARCH - {"nsgaii"})
    if name not in known:
        message = f"no search {spec.sampler!r}: there are {', '.join([*SHORT_NAMES, *known])}"
        raise SearchError(message)
    settings: dict[str, Any] = {"seed": seed, **spec.settings}
    if name == "CmaEsSampler":
        # It draws what depends on a condition by chance, as it must; that is no news for each trial.
        settings.setdefault("warn_independent_sampling", False)
    try:
        made: BaseSampler = getattr(samplers, name)(**settings)
    except (TypeError, ValueError, ImportError, NotImplementedError) as error:
        message = f"the search {spec.sampler!r} does not take the settings {spec.settings}: {error}"
        raise SearchError(message) from error
    return made


def _distribution(dimension: Dimension) -> "BaseDistribution":
    distributions, domain = quiet_optuna().distributions, dimension.domain
    found: BaseDistribution
    if isinstance(domain, Options):
        found = distributions.CategoricalDistribution(domain.options)
    elif domain.whole:
        found = distributions.IntDistribution(int(domain.low), int(domain.high), log=domain.log)
    else:
        found = distributions.FloatDistribution(domain.low, domain.high, log=domain.log)
    return found
