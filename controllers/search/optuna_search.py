"""Optuna's samplers as searches: a study in memory for each sweep, told what is known of its trials.

What is known is read from the cluster and from MLflow again at each question, so a controller that starts again builds
the study again. Nothing that Optuna stores is kept, since some samplers store pickles.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final

from controllers.core.errors import SearchError
from controllers.core.model import Direction, Point, Snapshot, Trial, TrialId, Value
from controllers.core.optuna_library import quiet_optuna
from controllers.search.cost import ON_THIS_MACHINE, Bound, check_cost
from controllers.search.spec import Dimension, Options, SearchSpec
from controllers.search.told import Ledger, TrialNews, drawn_before

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
    """Finds hyperparameters by the sampler of each sweep's search, at once, in this process."""

    def __init__(self, bound: Bound = ON_THIS_MACHINE) -> None:
        self._bound = bound
        self._studies: dict[tuple[str, str], tuple[Ledger, Study]] = {}

    def ask(self, trial: Trial, snapshot: Snapshot, points: Mapping[TrialId, Point]) -> Point:
        """Return the hyperparameters of ``trial``; see ``Search``."""
        # Two sweeps of a workflow may search in the same words, and know nothing of each other.
        key = (trial.sweep, trial.search)
        ledger, study = self._studies.get(key) or (Ledger(trial), None)
        others = ledger.others(snapshot)
        if study is None:
            drawn = drawn_before(others, points)
            study = Study(ledger.spec, ledger.directions, drawn, constrained=ledger.constrained)
            self._studies[key] = ledger, study
        news = ledger.news(others, points, snapshot.now)
        study.learn(news)
        check_cost(ledger.spec, len(ledger.begun), self._bound)
        point = study.ask(trial.id)
        ledger.begun.add(trial.id)
        return point


class Study:
    """A study of Optuna's in memory, and which of its trials are ours.

    Args:
        spec: The search.
        directions: Which way each objective improves.
        drawn: How many points the search had found before: the study begins with others.
        constrained: Whether models must keep constraints.

    Raises:
        SearchError: its sampler makes no sense, or raises anything.
    """

    def __init__(
        self, spec: SearchSpec, directions: Sequence[Direction], drawn: int, *, constrained: bool = False
    ) -> None:
        optuna = quiet_optuna()
        if why_not := why_one_objective(spec, several=len(directions) > 1, constrained=constrained):
            raise SearchError(why_not)
        self._spec = spec
        self._storage = optuna.storages.InMemoryStorage()
        sampler = sampler_of(spec, spec.seed + drawn)
        name = "sweep"
        self._study = optuna.create_study(
            study_name=name,
            storage=self._storage,
            directions=[direction.value for direction in directions],
            sampler=sampler,
        )
        self._id = self._storage.get_study_id_from_name(name)
        self._numbers: dict[TrialId, int] = {}
        self._over: set[TrialId] = set()
        self._distributions = {dimension.name: distribution_of(dimension) for dimension in spec.space}

    @property
    def size(self) -> int:
        """How many hyperparameters of trials it keeps."""
        return len(self._numbers) * len(self._spec.space)

    def learn(self, news: Iterable[TrialNews]) -> None:
        """Take in which trials have begun or ended; what is known already changes nothing."""
        with _told_as_errors_of(self._spec):
            for told in news:
                if told.point is not None and told.trial not in self._numbers:
                    self._add(told.trial, told.point)
                if told.over and told.trial in self._numbers and told.trial not in self._over:
                    self._tell(told)

    def ask(self, trial: TrialId) -> Point:
        """Return a new point, which counts as one that is being tried from now on."""
        with _told_as_errors_of(self._spec):
            asked = self._study.ask()

            def draw(dimension: Dimension) -> Value:
                name, domain = dimension.name, dimension.domain
                if isinstance(domain, Options):
                    value: Value = asked.suggest_categorical(name, domain.options)
                elif domain.whole:
                    step = int(domain.step or 1)
                    value = asked.suggest_int(name, int(domain.low), int(domain.high), log=domain.log, step=step)
                else:
                    drawn = asked.suggest_float(name, domain.low, domain.high, log=domain.log, step=domain.step)
                    value = domain.tidy(drawn)
                return value

            point = self._spec.drawn(draw)
            self._numbers[trial] = asked.number
            return point

    def _add(self, name: TrialId, point: Point) -> None:
        optuna = quiet_optuna()
        drawn = self._spec.that_matter(point)
        made = optuna.trial.create_trial(
            state=optuna.trial.TrialState.RUNNING,
            params={dimension.name: value for dimension, value in drawn.items()},
            distributions={dimension.name: self._distributions[dimension.name] for dimension in drawn},
        )
        # Study.add_trial does the same and does not say which number the trial got.
        number = self._storage.create_new_trial(self._id, template_trial=made)
        self._numbers[name] = self._storage.get_trial_number_from_id(number)

    def _tell(self, told: TrialNews) -> None:
        optuna = quiet_optuna()
        number = self._numbers[told.trial]
        if not told.values:
            self._study.tell(number, state=optuna.trial.TrialState.FAIL)
        else:
            if told.violations:
                trial_id = self._storage.get_trial_id_from_study_id_trial_number(self._id, number)
                trial = optuna.Trial(self._study, trial_id)
                for place, violation in enumerate(told.violations):
                    trial.set_constraint(str(place), violation)
            self._study.tell(number, told.values)
        self._over.add(told.trial)


@contextmanager
def _told_as_errors_of(spec: SearchSpec) -> Iterator[None]:
    """Tell whatever a sampler raises as an error of its search: it may be anything, and other sweeps go on."""
    try:
        yield
    except Exception as error:
        message = f"the search {spec.sampler!r} failed: {type(error).__name__}: {str(error)[:200]}"
        raise SearchError(message) from error


def why_one_objective(spec: SearchSpec, *, several: bool, constrained: bool) -> str | None:
    """Return why the sampler of ``spec`` cannot search for ``several`` objectives or under constraints, None if it can.

    Some draw whatever the trials come to: constraints mean nothing to them, and do not hinder them.
    """
    if SHORT_NAMES.get(spec.sampler, spec.sampler) != "CmaEsSampler" or not (several or constrained):
        return None
    what = "has one objective" if several else "knows no constraints"
    return f"the search {spec.sampler!r} {what}: take 'tpe', 'NSGAIISampler', 'GPSampler' or 'random' instead"


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


def distribution_of(dimension: Dimension) -> "BaseDistribution":
    """Return what Optuna calls the values of a hyperparameter."""
    distributions, domain = quiet_optuna().distributions, dimension.domain
    distribution: BaseDistribution
    if isinstance(domain, Options):
        distribution = distributions.CategoricalDistribution(domain.options)
    elif domain.whole:
        distribution = distributions.IntDistribution(
            int(domain.low), int(domain.high), log=domain.log, step=int(domain.step or 1)
        )
    else:
        distribution = distributions.FloatDistribution(domain.low, domain.high, log=domain.log, step=domain.step)
    return distribution
