"""Optuna's terminator: whether the search of a sweep has little left to find.

It is asked about the trials alone, so that it says the same of the same trials, however often it is asked.
"""

from collections.abc import Mapping, Sequence
from importlib.util import find_spec
from typing import TYPE_CHECKING

from controllers.core.errors import SearchError
from controllers.core.model import Direction, Progress, Trial, Value
from controllers.core.optuna_library import quiet_optuna
from controllers.core.stop_rules import StopRules, Terminator
from controllers.policies.kit.enough import come_to_values
from controllers.search.optuna_search import distribution_of
from controllers.search.spec import Dimension, read_search

if TYPE_CHECKING:
    from optuna.study import StudyDirection
    from optuna.trial import FrozenTrial


def why_no_terminator(rules: StopRules, search: str, *, several: bool, in_cluster: bool = False) -> str | None:
    """Return why a terminator among ``rules`` cannot end a sweep, None where it can or there is none.

    Args:
        rules: What is to end the sweep.
        search: The text of its search, empty where its trials have their hyperparameters beforehand.
        several: Whether it has several objectives.
        in_cluster: Whether a controller in a cluster is to ask the terminator.
    """
    rule = rules.terminator
    if rule is None:
        return None
    if not search:
        return (
            "terminator() asks how much a search has left to find, and here all hyperparameters were drawn beforehand: "
            "take search=tpe(), or plateau(trials=..., by=...)"
        )
    if several:
        return "terminator() goes by one objective: leave it out, or give one"
    if rule.regret is None:
        return None
    if in_cluster:
        return (
            "terminator(regret=...) fits models in PyTorch, which the controller of a cluster does without: "
            "take terminator(trials=...) there"
        )
    missing = find_spec("torch") is None
    return "terminator(regret=...) needs PyTorch: pip install 'hera-specon[pytorch]'" if missing else None


def why_settled(rule: Terminator, trials: Sequence[Trial]) -> str:
    """Return why Optuna's terminator would end the search of ``trials``, in words for people; empty while it would not.

    It sees what the search is told: those that failed have no value, and those that were ended early the best that they
    reported. One that cannot judge these trials ends nothing.

    Args:
        rule: What it goes by.
        trials: All trials of a sweep, in the order of their numbers.
    """
    came = come_to_values(trials)
    if len(came) < rule.trials or not trials[0].search or trials[0].aims.further:
        return ""
    return _stands(rule.trials, came) if rule.regret is None else _within(rule.trials, rule.regret, came)


def _stands(trials: int, came: Sequence[tuple[Trial, Progress]]) -> str:
    """Return that the best value has stood for longer than it may."""
    quiet_optuna()
    from optuna.terminator import BestValueStagnationEvaluator  # noqa: PLC0415 - few sweeps use it

    completed = [_completed(progress.best) for _, progress in came]
    left = BestValueStagnationEvaluator(trials).evaluate(completed, _direction(came))
    return f"{trials + 1} trials in a row have found nothing better" if left < 0 else ""


def _within(fewest: int, regret: float, came: Sequence[tuple[Trial, Progress]]) -> str:
    """Return that the best value is near the best that there is, as a model of the trials says."""
    quiet_optuna()
    from optuna.terminator import RegretBoundEvaluator  # noqa: PLC0415 - few sweeps use it

    try:
        spec = read_search(came[0][0].search)
    except SearchError:
        return ""
    points = [(spec.point_of(trial.parameters), progress.best) for trial, progress in came]
    completed = [_completed(value, spec.that_matter(point)) for point, value in points if point is not None]
    if len(completed) < fewest:
        return ""
    try:
        # Seeded, so that a controller that starts again comes to the same.
        evaluator = RegretBoundEvaluator(min_n_trials=fewest, seed=spec.seed)
        left = evaluator.evaluate(completed, _direction(came))
    except Exception:  # noqa: BLE001 - it may raise anything, and the sweep goes on
        return ""
    return f"the best is within {left:.2g} of the best there is, as a model says" if left < regret else ""


def _completed(value: float, drawn: Mapping[Dimension, Value] | None = None) -> "FrozenTrial":
    given = drawn or {}
    params = {dimension.name: number for dimension, number in given.items()}
    among = {dimension.name: distribution_of(dimension) for dimension in given}
    made: FrozenTrial = quiet_optuna().trial.create_trial(value=value, params=params, distributions=among)
    return made


def _direction(came: Sequence[tuple[Trial, Progress]]) -> "StudyDirection":
    directions: type[StudyDirection] = quiet_optuna().study.StudyDirection
    return directions.MINIMIZE if came[0][0].direction is Direction.MINIMIZE else directions.MAXIMIZE
