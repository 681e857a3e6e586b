"""Several objectives of a sweep, and constraints that its models must keep."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from controllers.core import labels
from controllers.core.aims import (
    AT_LEAST,
    AT_MOST,
    MOST_COMPARED,
    MOST_CONSTRAINTS,
    MOST_OBJECTIVES,
    NO_AIMS,
    Aims,
    Constraint,
    FurtherObjective,
)
from controllers.core.goals import GoalError, aims_in
from controllers.policies.registry import parse_policy
from controllers.policies.wrappers.wrapper import one_objective_only
from controllers.search.optuna_search import why_one_objective
from controllers.search.spec import read_search
from hera_specon.errors import SweepError
from hera_specon.manifest import Manifest, sweep_of, trial_templates
from hera_specon.settings import Objective, check_distinct, is_finite, minimize


def subject_to(metric: str, relation: str, bound: float) -> Constraint:
    """Return the constraint that ``metric`` keeps a bound: ``subject_to("memory_mb", "<=", 512)``.

    The newest value that a trial logged counts. A trial that breaks it is never the best.

    Args:
        metric: Name of a metric that the trials log.
        relation: ``<=`` or ``>=``.
        bound: A finite number.

    Raises:
        SweepError: One is none of these.
    """
    if relation not in {AT_MOST, AT_LEAST}:
        problem = f"subject_to({metric!r}, {relation!r}, ...): a constraint is '<=' or '>='"
        raise SweepError(problem)
    if not is_finite(bound):
        problem = f"subject_to({metric!r}, {relation!r}, {bound!r}): a bound is a finite number"
        raise SweepError(problem)
    return Constraint(minimize(metric).metric, relation, float(bound))


def check_objectives(
    objective: object, objectives: Sequence[object], constraints: Sequence[object]
) -> tuple[Objective, Aims]:
    """Return the first objective of a sweep, and what it wants beside that.

    Args:
        objective: As ``objective=`` gives it.
        objectives: As ``objectives=`` gives them.
        constraints: As ``constraints=`` gives them.

    Raises:
        SweepError: Both are given or none is, one is of another kind, a metric comes twice, or there are too many.
    """
    if (objective is None) == (not objectives):
        given = "neither" if objective is None else "both"
        problem = f"a sweep has objective=minimize('loss'), or several in objectives=[...]; {given} is given"
        raise SweepError(problem)
    wanted = [objective] if objective is not None else _listed("objectives=", objectives)
    known = [one for one in wanted if isinstance(one, Objective)]
    if other := [one for one in wanted if not isinstance(one, Objective)]:
        problem = f"an objective is minimize('loss') or maximize('accuracy'), not {other[0]!r}"
        raise SweepError(problem)
    bounds = [bound for bound in _listed("constraints=", constraints) if isinstance(bound, Constraint)]
    if len(bounds) < len(constraints):
        problem = f"constraints= lists subject_to('memory_mb', '<=', 512) and such, unlike {constraints!r}"
        raise SweepError(problem)
    check_distinct([one.metric for one in known], "objectives= names a metric twice")
    for name, count, most in (
        ("objectives=", len(known), MOST_OBJECTIVES),
        ("constraints=", len(bounds), MOST_CONSTRAINTS),
    ):
        if count > most:
            problem = f"{name} lists {count}, and may list {most}"
            raise SweepError(problem)
    further = tuple(FurtherObjective(one.metric, one.direction) for one in known[1:])
    return known[0], Aims(further, tuple(bounds))


def _listed(name: str, given: object) -> Sequence[object]:
    if not isinstance(given, list | tuple):
        problem = f"{name} is a list, not {given!r}"
        raise SweepError(problem)
    return given


def aims_notes(aims: Aims) -> dict[str, str]:
    """Return the annotations of a trial that tell what its sweep wants beside its first objective."""
    names = (labels.ANNOTATION_FURTHER_OBJECTIVES, labels.ANNOTATION_CONSTRAINTS)
    return {name: text for name, text in zip(names, aims.written, strict=True) if text}


def check_amount(aims: Aims, trials: int) -> None:
    """Check that the front of so many ``trials`` can be found.

    Raises:
        SweepError: Three objectives or more, and too many trials.
    """
    if len(aims.further) > 1 and trials > MOST_COMPARED:
        problem = f"a sweep of {len(aims.further) + 1} objectives has at most {MOST_COMPARED} trials, not {trials}"
        raise SweepError(problem)


def check_searched(aims: Aims, search: str | None) -> None:
    """Check that the search of a sweep, as it stands on its pods, can search for what the sweep wants.

    Raises:
        SweepError: It cannot; names it.
    """
    several, constrained = bool(aims.further), bool(aims.constraints)
    if search and (why_not := why_one_objective(read_search(search), several=several, constrained=constrained)):
        problem = f"search=: {why_not}"
        raise SweepError(problem)


def check_policy_of_several(aims: Aims, policy: str | None, pruner: object) -> None:
    """Check that the policy of a sweep, a spec string, and its pruner take what the sweep wants.

    Raises:
        SweepError: One goes by a single objective and can do no harm only there; names it.
    """
    if not aims.further:
        return
    why_not = None if policy is None else one_objective_only(parse_policy(policy))
    if why_not is not None:
        named = "" if pruner is None else f"pruner= {type(pruner).__name__}: "
        problem = f"{named}{why_not}; leave it out, or give one objective"
        raise SweepError(problem)


def aims_told(manifest: Manifest) -> Iterator[str]:
    """Yield what to know of the sweeps of ``manifest`` that have several objectives."""
    for template in trial_templates(manifest):
        notes = _notes(template)
        if aims_of(notes).further:
            first = notes.get(labels.ANNOTATION_OBJECTIVE)
            yield (
                f"sweep {sweep_of(template)} has several objectives: its search and its front go by all of them, and "
                f"policies, goals, forecasts and curves by the first, {first!r}, alone"
            )


def aims_of(notes: Mapping[str, Any]) -> Aims:
    """Return what annotations want beside the first objective; nothing where they cannot be read."""
    try:
        return aims_in({name: str(value) for name, value in notes.items()})
    except GoalError:
        return NO_AIMS


def _notes(template: Manifest) -> Mapping[str, Any]:
    return (template.get("metadata") or {}).get("annotations") or {}
