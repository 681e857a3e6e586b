"""Optuna's samplers as searches: a study in memory for each sweep, told what is known of its trials.

What is known is read from the cluster and from MLflow again at each question, so a controller that starts again builds
the study again. Nothing that Optuna stores is kept, since some samplers store pickles.
"""

from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final

from controllers.core.errors import SearchError, SearchPending
from controllers.core.model import Direction, Point, Snapshot, Trial, TrialId, Value
from controllers.core.optuna_library import quiet_optuna
from controllers.search.cost import ON_THIS_MACHINE, Bound, check_cost
from controllers.search.earlier import (
    CMAES,
    LEAST_SOURCES,
    Lesson,
    best_first,
    lessons_of,
    poor_of,
    that_fit,
    to_try_again,
)
from controllers.search.spec import SHORT_NAMES, Dimension, Options, SearchSpec
from controllers.search.told import Ledger, TrialNews, drawn_before

if TYPE_CHECKING:
    from optuna.distributions import BaseDistribution
    from optuna.samplers import BaseSampler
    from optuna.trial import FrozenTrial, TrialState

_NO_SEARCH: Final = frozenset(
    {"BaseSampler", "BaseGASampler", "PartialFixedSampler", "GridSampler", "BruteForceSampler"}
)
"""Classes of Optuna's that cannot be used: bases, one that needs another, and those that run out of points."""
_BEFORE: Final = "earlier "
"""Begins the names of earlier trials in a study: no trial of the sweep has a space in its name."""


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
            before = earlier_lessons(ledger.spec, trial, snapshot, len(others), self._bound)
            study = Study(ledger.spec, ledger.directions, drawn, constrained=ledger.constrained, before=before)
            self._studies[key] = ledger, study
        news = ledger.news(others, points, snapshot.now)
        study.learn(news)
        check_cost(ledger.spec, len(ledger.begun), self._bound)
        point = study.ask(trial.id)
        ledger.begun.add(trial.id)
        return point


def earlier_lessons(spec: SearchSpec, trial: Trial, snapshot: Snapshot, own: int, bound: Bound) -> list[Lesson]:
    """Return what a search learns before its first question, as much of it as may be computed with.

    Args:
        spec: The search.
        trial: One of its trials.
        snapshot: What there is.
        own: How many trials it will know of its own.
        bound: What it may compute for a point.

    Raises:
        SearchPending: what was learnt before is still being read.
    """
    if snapshot.earlier.pending:
        message = "what earlier sweeps showed is still being read"
        raise SearchPending(message)
    lessons, _ = lessons_of(spec, snapshot.earlier.trials.get(trial.sweep, ()))
    return that_fit(spec, lessons, own, bound)


class Study:
    """A study of Optuna's in memory, and which of its trials are ours.

    Args:
        spec: The search.
        directions: Which way each objective improves.
        drawn: How many points the search had found before: the study begins with others.
        constrained: Whether models must keep constraints.
        before: What trials of earlier sweeps showed.

    Raises:
        SearchError: its sampler makes no sense, or raises anything.
    """

    def __init__(
        self,
        spec: SearchSpec,
        directions: Sequence[Direction],
        drawn: int,
        *,
        constrained: bool = False,
        before: Sequence[Lesson] = (),
    ) -> None:
        optuna = quiet_optuna()
        if why_not := why_one_objective(spec, several=len(directions) > 1, constrained=constrained):
            raise SearchError(why_not)
        self._spec = spec
        self._storage = optuna.storages.InMemoryStorage()
        self._distributions = {dimension.name: distribution_of(dimension) for dimension in spec.space}
        with _told_as_errors_of(spec):
            sources = self._sources(before)
        # With the seed of an earlier sweep, the first points would be those of that sweep again.
        sampler = sampler_of(spec, spec.seed + drawn + len(before), sources)
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
        self._first: deque[Lesson] = deque()
        if spec.kind != CMAES:
            best = best_first(before, directions)
            self._first.extend(to_try_again(best))
            with _told_as_errors_of(spec):
                for number, lesson in enumerate(poor_of(spec, best)):
                    name = TrialId(f"{_BEFORE}{number}")
                    self._add(name, dict(lesson.values))
                    self._study.tell(self._numbers[name], state=optuna.trial.TrialState.PRUNED)

    @property
    def size(self) -> int:
        """How many hyperparameters of trials it keeps."""
        return len(self._numbers) * len(self._spec.space)

    def learn(self, news: Iterable[TrialNews]) -> None:
        """Take in which trials have begun or ended; what is known already changes nothing."""
        with _told_as_errors_of(self._spec):
            for told in news:
                if told.point is not None and told.trial not in self._numbers:
                    self._add(told.trial, self._drawn(told.point))
                if told.over and told.trial in self._numbers and told.trial not in self._over:
                    self._tell(told)

    def ask(self, trial: TrialId) -> Point:
        """Return a new point, which counts as one that is being tried from now on.

        The first ones are the best of earlier sweeps; the sampler draws what these did not have.
        """
        with _told_as_errors_of(self._spec):
            again = self._next_of_earlier()
            if again is not None:
                self._study.enqueue_trial(dict(again.values))
            point, self._numbers[trial] = self._draw()
            return point

    def _next_of_earlier(self) -> Lesson | None:
        """Return the best earlier trial that no trial of the sweep has tried again; None where all were."""
        tried = [trial.params.items() for trial in self._study.get_trials(deepcopy=False)]
        while self._first:
            lesson = self._first.popleft()
            if not any(dict(lesson.values).items() <= known for known in tried):
                return lesson
        return None

    def _drawn(self, point: Point) -> dict[str, Value]:
        return {dimension.name: value for dimension, value in self._spec.that_matter(point).items()}

    def _draw(self) -> tuple[Point, int]:
        """Return a point that the sampler proposes, and the number of its trial."""
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

        return self._spec.drawn(draw), asked.number

    def _add(self, name: TrialId, drawn: Mapping[str, Value]) -> None:
        made = self._made(drawn, quiet_optuna().trial.TrialState.RUNNING)
        # Study.add_trial does the same and does not say which number the trial got.
        number = self._storage.create_new_trial(self._id, template_trial=made)
        self._numbers[name] = self._storage.get_trial_number_from_id(number)

    def _made(self, drawn: Mapping[str, Value], state: "TrialState", value: float | None = None) -> "FrozenTrial":
        distributions = {name: self._distributions[name] for name in drawn}
        trial: FrozenTrial = quiet_optuna().trial.create_trial(
            state=state, value=value, params=dict(drawn), distributions=distributions
        )
        return trial

    def _sources(self, before: Sequence[Lesson]) -> "list[FrozenTrial]":
        """Return the trials that CMA-ES is to begin from, with the numbers that it draws, and no others."""
        told = [lesson for lesson in before if lesson.came_to]
        if self._spec.kind != CMAES or len(told) < LEAST_SOURCES:
            return []
        names = {dimension.name for dimension in self._spec.space if not isinstance(dimension.domain, Options)}
        drawn = [{name: value for name, value in lesson.values if name in names} for lesson in told]
        complete = quiet_optuna().trial.TrialState.COMPLETE
        return [self._made(one, complete, lesson.came_to[0]) for one, lesson in zip(drawn, told, strict=True)]

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
    if spec.kind != CMAES or not (several or constrained):
        return None
    what = "has one objective" if several else "knows no constraints"
    return f"the search {spec.sampler!r} {what}: take 'tpe', 'NSGAIISampler', 'GPSampler' or 'random' instead"


def sampler_of(spec: SearchSpec, seed: int, sources: "Sequence[FrozenTrial]" = ()) -> "BaseSampler":
    """Return the sampler that ``spec`` names, with its settings.

    Args:
        spec: The search.
        seed: What it draws by.
        sources: Trials of earlier sweeps for it to begin from, where it goes by no others than its own.

    Raises:
        SearchError: Optuna has none of that name, it takes no such settings, or something that it needs is missing.
    """
    samplers = quiet_optuna().samplers
    name = spec.kind
    known = sorted(set(samplers.__all__) - _NO_SEARCH - {"nsgaii"})
    if name not in known:
        message = f"no search {spec.sampler!r}: there are {', '.join([*SHORT_NAMES, *known])}"
        raise SearchError(message)
    settings: dict[str, Any] = {"seed": seed, **spec.settings}
    if name == CMAES:
        # It draws what depends on a condition by chance, as it must; that is no news for each trial.
        settings.setdefault("warn_independent_sampling", False)
        if sources:
            settings["source_trials"] = list(sources)
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
