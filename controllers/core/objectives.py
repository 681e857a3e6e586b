"""Whether trials log the objective that their sweep names: one rule, for this machine and for clusters. Pure.

While a sweep runs nobody can know: a trial may log its objective once, at its end, and MLflow may be late. What is
missing then is a warning. Once the sweep is over, it is an error that no trial logged the objective although one ended
well. A trial that crashed before it came to log it just failed.
"""

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from difflib import SequenceMatcher
from functools import lru_cache
from typing import Final

from controllers.core.model import Phase, TrialId
from controllers.core.ports import World
from controllers.core.results import RunResult, TrialResult

MOST_NAMES: Final = 20
"""Metrics of a trial that are named: anybody may log thousands."""
_LONGEST_NAME: Final = 100
"""Characters of a metric's name that are shown."""
_MOST_TRIALS: Final = 5
"""Trials that are named of a sweep."""
_NOT_THEIRS: Final = ("specon.", "system/")
"""Begins the names of metrics that our hooks and MLflow itself log."""
_PATIENCE_S: Final = 60.0
"""Seconds for which a trial may log other metrics before it logs its objective."""
_LAG_S: Final = 15.0
"""Seconds that the last points of a trial may take to MLflow."""
_ALIKE: Final = 0.5
"""Likeness, from 0 to 1, from which one name may be another with a typing error."""


class ObjectiveWatch:
    """Notices trials of a running sweep that log other metrics, but not their objective.

    ``without`` counts the trials that it was told about and that still have not logged it.
    """

    def __init__(self) -> None:
        self._since: dict[tuple[TrialId, bool], float] = {}
        self._overdue: set[TrialId] = set()
        self._told: Counter[str] = Counter()
        self.without = 0

    def look(self, now: float, world: World, logged: Mapping[TrialId, Collection[str]]) -> Mapping[TrialId, str]:
        """Return a warning for each trial that is newly overdue; the first few of each objective are told.

        Args:
            now: seconds of the sweep's clock.
            world: where the trials are.
            logged: the names of the metrics that each trial has logged so far, as far as that is known.
        """
        objectives = world.objectives()
        lacking = [name for name, names in logged.items() if (wanted := objectives.get(name)) and wanted not in names]
        # Most of the time there are none, and thousands of trials need not be looked at.
        phases = {trial.id: trial.phase for trial in world.trials()} if lacking else {}
        overdue = {name for name in lacking if self._waited(now, name, phases.get(name), logged[name])}
        news, self._overdue, self.without = sorted(overdue - self._overdue), overdue | self._overdue, len(overdue)
        warnings: dict[TrialId, str] = {}
        for name in news:
            objective = objectives[name]
            self._told[objective] += 1
            if self._told[objective] <= _MOST_TRIALS:
                warnings[name] = _not_yet(name, objective, others(objective, logged[name]))
        return warnings

    def _waited(self, now: float, name: TrialId, phase: Phase | None, names: Collection[str]) -> bool:
        """Return whether a trial that runs, or ended well, has logged other metrics for long enough."""
        if phase not in {Phase.RUNNING, Phase.SUCCEEDED} or not any(map(_theirs, names)):
            return False
        ended = phase is Phase.SUCCEEDED
        since = self._since.setdefault((name, ended), now)
        return name in self._overdue or now - since > (_LAG_S if ended else _PATIENCE_S)


def went_back(metric: str, greatest: int, newest: int) -> str:
    """Return in words that the value of a metric that was logged last is not that of its greatest step."""
    name = metric[:_LONGEST_NAME]
    return f"the steps of {name!r} went back from {greatest} to {newest}: the value that was logged last counts"


def _not_yet(name: TrialId, objective: str, names: Sequence[str]) -> str:
    return (
        f"trial {name} logs {', '.join(names)}, and has not logged its objective {objective!r} so far"
        f"{_meant(objective, names)}. If it never will: name one of these in Sweep(objective=...), or log {objective!r}"
    )


def not_shown(name: str, objective: str, missing: Sequence[str], names: Iterable[str]) -> str:
    """Return in words that the trial ``name`` ended well without what its sweep goes by.

    Args:
        name: the trial.
        objective: its first objective.
        missing: what it never logged of what its sweep goes by.
        names: of all that it logged.
    """
    found = others(missing[0], names)
    what = f"its objective {objective!r}" if objective in missing else f"{missing[0]!r}, which its sweep goes by"
    more = f" (nor {', '.join(map(repr, missing[1:]))})" if missing[1:] else ""
    instead = f"it logged {', '.join(found)}{_meant(missing[0], found)}" if found else "it logged nothing at all"
    return f"{name} ended well, but never logged {what}{more}: {instead}"


@dataclass(frozen=True, slots=True)
class MissingObjectives:
    """What a sweep that is over lacks: ``errors`` are of sweeps without a model, ``warnings`` of single trials."""

    errors: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()

    @property
    def lines(self) -> tuple[str, ...]:
        """All of it, the errors first."""
        return (*self.errors, *self.warnings)


def with_what_they_logged(
    trials: Iterable[TrialResult], logged: Callable[[TrialResult], Collection[str] | None]
) -> tuple[TrialResult, ...]:
    """Return ``trials``, each with what it never logged of what its sweep goes by, and what it logged instead.

    Args:
        trials: of a sweep that is over.
        logged: gives the names of all metrics of a trial, None where nobody knows.
    """
    told = []
    for trial in trials:
        names = logged(trial) if trial.objective else None
        if names is not None:
            instead = None if trial.objective in names else others(trial.objective, names)
            unlogged = tuple(name for name in trial.aims.metrics if name not in names)
            told.append(replace(trial, logged_instead=instead, unlogged=unlogged))
        else:
            told.append(trial)
    return tuple(told)


def missing_objectives(result: RunResult) -> MissingObjectives:
    """Return what is wrong with the objectives of a sweep that is over."""
    errors: list[str] = []
    warnings: list[str] = []
    by_sweep: dict[tuple[str, str], list[TrialResult]] = {}
    for trial in result.trials:
        by_sweep.setdefault((trial.sweep, trial.objective), []).append(trial)
    for (sweep, objective), trials in by_sweep.items():
        silent = [trial for trial in trials if trial.without_objective]
        if silent and all(trial.logged_instead is not None for trial in trials):
            errors.append(_nobody(sweep, objective, silent))
        else:
            warnings += _some(silent, result.policy)
            further_errors, further_warnings = _missing_further(sweep, trials, result.policy)
            errors += further_errors
            warnings += further_warnings
    return MissingObjectives(tuple(errors), tuple(warnings))


def _missing_further(sweep: str, trials: Sequence[TrialResult], policy: str) -> tuple[list[str], list[str]]:
    """Return what is wrong with objectives beside the first and with constraints, where some logged the first."""
    errors, warnings = list[str](), list[str]()
    well = [trial for trial in trials if trial.succeeded and not trial.stopped and not trial.without_objective]
    for metric in dict.fromkeys(metric for trial in well for metric in trial.aims.metrics):
        silent = [trial for trial in well if metric in trial.unlogged]
        if silent and len(silent) == len(well):
            of = sweep or "the sweep"
            errors.append(f"no trial of {of} logged {metric!r}, which it goes by, although {len(silent)} ended well")
        else:
            told = f"but never logged {metric!r}: it is neither the best nor on a front"
            warnings += [f"{trial.id} ended well under {policy}, {told}" for trial in silent[:_MOST_TRIALS]]
            if len(silent) > _MOST_TRIALS:
                warnings.append(f"and {len(silent) - _MOST_TRIALS} more never logged {metric!r}")
    return errors, warnings


def not_counted(result: RunResult) -> list[str]:
    """Return which trials ended well and are neither the best nor on a front: they break a constraint, or diverged.

    Those that never logged what their sweep goes by are told of by ``missing_objectives``.
    """
    whys = [
        f"{trial.id} under {result.policy} is neither the best nor on a front: it {why}"
        for trial in result.trials
        if trial.aims and trial.succeeded and not trial.unlogged and not trial.diverged
        if (why := trial.why_not_counted) is not None and trial.logged_instead is None
    ]
    more = len(whys) - _MOST_TRIALS
    return [*whys[:_MOST_TRIALS], *([f"and {more} more under {result.policy} do not count so"] if more > 0 else [])]


def _nobody(sweep: str, objective: str, silent: Sequence[TrialResult]) -> str:
    names = others(objective, (name for trial in silent for name in trial.logged_instead or ()))
    told = f"no trial of {sweep or 'the sweep'} logged its objective {objective!r}, although {len(silent)} ended well"
    if not names:
        return (
            f"{told}; they logged nothing at all: log it with t.log({objective}=...), or by mlflow.log_metric, or "
            f"print it, as in '{objective}: 0.31', and read it by Sweep(metrics=printed()). A "
            "script that calls mlflow.set_tracking_uri() logs to another server: leave the call out, or set "
            "MLFLOW_TRACKING_URI to that server for specon"
        )
    return (
        f"{told}; logged were: {', '.join(names)}{_meant(objective, names)}. "
        f"Name one of these in Sweep(objective=...), or log {objective!r}"
    )


def _some(silent: Sequence[TrialResult], policy: str) -> Iterator[str]:
    for trial in silent[:_MOST_TRIALS]:
        instead = ", ".join(trial.logged_instead or ()) or "nothing"
        missing = f"never logged its objective {trial.objective!r}: it logged {instead}"
        yield f"{trial.id} ended well under {policy}, but {missing}"
    if len(silent) > _MOST_TRIALS:
        yield f"and {len(silent) - _MOST_TRIALS} more never logged it"


def others(objective: str, names: Iterable[str]) -> tuple[str, ...]:
    """Return the names of a trial's own metrics, those most like its objective first; not too many or too long."""
    own = {name[:_LONGEST_NAME] for name in names if _theirs(name)}
    return tuple(sorted(own, key=lambda name: (-_likeness(name, objective), name))[:MOST_NAMES])


def _theirs(name: str) -> bool:
    return not name.startswith(_NOT_THEIRS)


def _meant(objective: str, names: Sequence[str]) -> str:
    nearest = names[0] if names and _likeness(names[0], objective) >= _ALIKE else ""
    return f" (did you mean {nearest!r}?)" if nearest else ""


@lru_cache(maxsize=4096)
def _likeness(name: str, objective: str) -> float:
    """Return how alike two names are, whatever their case: up to 1, and above that where one holds the other."""
    folded, other = name.casefold(), objective.casefold()
    held = folded in other or other in folded
    return held + SequenceMatcher(None, folded, other, autojunk=False).ratio()
