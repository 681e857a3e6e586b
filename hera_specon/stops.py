"""What an author says of when a sweep is to end before all of its trials have: ``Sweep(stop=...)``."""

import copy
from typing import Any, Final

from controllers.core.aims import Aims
from controllers.core.stop_rules import NO_RULES, StopRuleError, StopRules, rules_notes, rules_of
from controllers.search import why_no_terminator
from controllers.worlds.local.workflow.values import ManifestValueError, parse_duration
from hera_specon.errors import SweepError
from hera_specon.manifest import Manifest, trial_templates

_HOW = 'value(0.01), plateau(trials=20, by=0.001), terminator(), after("3h") or budget(cpu_hours=40), joined by |'
_STAGNANT: Final = 30
"""Trials: Optuna's own defaults, as the next one."""
_MODELLED: Final = 20


def value(objective: float) -> StopRules:
    """End the sweep once a trial has come to this value of the objective, or a better one.

    A report in the middle of a trial's training counts: the trial is stopped there, with its checkpoint. A trial that
    fails reaches nothing.

    Args:
        objective: In the objective's own unit; below it is better where the sweep minimizes, above where it maximizes.

    Raises:
        SweepError: It is no finite number.
    """
    return _checked(value=_number(objective))


def plateau(*, trials: int, by: float) -> StopRules:
    """End the sweep once the last so many trials that ended have not improved its best value by as much as ``by``.

    The best value of a trial is the best that it ever reported. Trials that failed, or never reported a finite value,
    do not count; those that a policy or a pruner ended early do.

    Args:
        trials: How many, from 1 to 100,000; at least one must have ended before them.
        by: An absolute difference, above 0, in the objective's own unit.

    Raises:
        SweepError: One of both is out of its bounds.
    """
    return _checked(plateau={"trials": trials, "by": _number(by)})


def terminator(*, trials: int | None = None, regret: float | None = None) -> StopRules:
    """End the sweep once Optuna's terminator would end its search.

    Without ``regret``, that is once the best value has stood for more than ``trials`` trials
    (``optuna.terminator.BestValueStagnationEvaluator``). With it, once a Gaussian process over the trials says that the
    best value is likely to be less than ``regret`` from the best that there is (``RegretBoundEvaluator``; Makarova et
    al. 2022). That needs PyTorch, and is for ``specon run`` and ``specon simulate``: the controller of a cluster fits
    no models.

    Trials count in the order of their numbers, each with the best value that it reported, also where it was ended
    early; those that failed do not count. The sweep has a search, such as ``tpe()``, and one objective.

    Args:
        trials: How many, from 1 to 100,000; by default 30. With ``regret``, how many come to a value before the model
            is asked; by default 20.
        regret: A difference, above 0, in the objective's own unit.

    Raises:
        SweepError: One of both is out of its bounds.
    """
    if trials is None:
        trials = _STAGNANT if regret is None else _MODELLED
    return _checked(terminator={"trials": trials, "regret": _number(regret)})


def after(time: float | str) -> StopRules:
    """End the sweep so long after its first trial has started.

    On one machine, time in which ``specon run`` was interrupted does not count.

    Args:
        time: Seconds, or such as ``"3h"`` or ``"90m"``; up to a year.

    Raises:
        SweepError: It is no such time.
    """
    seconds: object = time
    if isinstance(time, str):
        try:
            seconds = parse_duration(time)
        except ManifestValueError as error:
            problem = f"after() takes a time such as 10800 or '3h', not {time!r}"
            raise SweepError(problem) from error
    return _checked(after_s=_number(seconds))


def budget(*, cpu_hours: float) -> StopRules:
    """End the sweep once its trials have used so many hours of CPU together.

    They are what the trials report, over all their attempts. A trial that reports no CPU time counts with the cores
    that it requests, for as long as it is on a node. This is another thing than ``Sweep(budget=)``: that is an amount
    of money, by which a sweep plans how many nodes to take, and never ends it.

    Args:
        cpu_hours: Hours of one core, above 0.

    Raises:
        SweepError: It is no such number.
    """
    return _checked(cpu_hours=_number(cpu_hours))


def sweep_stops(stop: object, money: object) -> StopRules:
    """Return the rules that ``stop=`` of a sweep gives; any of them ends it.

    Args:
        stop: What the author gave.
        money: What the author gave as ``budget=``, which is no rule.

    Raises:
        SweepError: ``stop`` is no rule, or ``money`` is one.
    """
    if isinstance(money, StopRules):
        problem = "budget= is an amount of money, for nodes that come and go; write stop=budget(cpu_hours=...)"
        raise SweepError(problem)
    if stop is None:
        return NO_RULES
    if not isinstance(stop, StopRules):
        problem = f"stop= is {_HOW}, not {stop!r}"
        raise SweepError(problem)
    return stop


def check_terminator(stops: StopRules, search: str | None, aims: Aims) -> None:
    """Check that a terminator among ``stops`` can end a sweep with this ``search`` on this machine.

    Raises:
        SweepError: It cannot; says why, and what to take instead.
    """
    if why_not := why_no_terminator(stops, search or "", several=bool(aims.further)):
        problem = f"stop=: {why_not}"
        raise SweepError(problem)


def with_stops(manifest: Manifest, stops: StopRules) -> dict[str, Any]:
    """Return ``manifest`` with other rules for its sweeps."""
    document: dict[str, Any] = copy.deepcopy(dict(manifest))
    for template in trial_templates(document):
        template["metadata"].setdefault("annotations", {}).update(rules_notes(stops))
    return document


def _checked(**given: object) -> StopRules:
    try:
        return rules_of(**given)
    except StopRuleError as error:
        raise SweepError(str(error)) from error


def _number(given: object) -> object:
    """Return a whole number as a float, and anything else as it is."""
    return float(given) if isinstance(given, int) and not isinstance(given, bool) else given
