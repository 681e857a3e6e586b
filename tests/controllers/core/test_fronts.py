"""Fronts of finished sweeps: beside Optuna's own on the same study, and which trials do not count and why."""

import math
from collections.abc import Sequence
from dataclasses import replace

import optuna
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from controllers.core.aims import Aims, Constraint, Direction, FurtherObjective
from controllers.core.objectives import missing_objectives, not_counted, with_what_they_logged
from controllers.core.results import RunResult, TrialResult

_VALUES = st.one_of(st.sampled_from([0.0, 1.0, 2.0]), st.floats(allow_infinity=False), st.just(math.nan))


def result(name: str, value: float | None, aims: Aims, **values: float) -> TrialResult:
    """Return a trial that ended well; only finite ones of ``values`` are kept, as worlds do."""
    further, constraints = aims.written
    kept = {metric: number for metric, number in values.items() if math.isfinite(number)}
    base = TrialResult(f"s.{name}", 0.0, 1.0, "n", 0, 1, value, objective="loss", sweep="s", values=kept)
    return replace(base, further_objectives=further, constraints=constraints)


def best_by_optuna(directions: Sequence[Direction], rows: Sequence[Sequence[float]], *, bounded: bool) -> list[int]:
    """Return the numbers of the trials that Optuna takes for the best; the last of each row is kept at most 1."""
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    study = optuna.create_study(directions=[direction.value for direction in directions])
    for row in rows:
        trial = study.ask()
        values = row[: len(directions)]
        if bounded and not math.isnan(row[-1]):
            trial.set_constraint("memory", row[-1] - 1.0)
        if any(map(math.isnan, values)) or (bounded and math.isnan(row[-1])):
            study.tell(trial, state=optuna.trial.TrialState.FAIL)
        else:
            study.tell(trial, list(values))
    return [trial.number for trial in study.best_trials]


@settings(deadline=None)
@given(
    directions=st.lists(st.sampled_from(Direction), min_size=2, max_size=4),
    rows=st.lists(st.tuples(*[_VALUES] * 5), min_size=1, max_size=12),
    bounded=st.booleans(),
)
def test_the_front_is_that_of_optuna_for_ties_for_nan_for_mixed_directions_and_under_a_constraint(
    directions: list[Direction], rows: list[tuple[float, ...]], *, bounded: bool
) -> None:
    names = [f"m{number}" for number in range(1, len(directions))]
    further = tuple(map(FurtherObjective, names, directions[1:]))
    aims = Aims(further, (Constraint("memory", "<=", 1.0),) if bounded else ())
    trials = [
        replace(
            result(f"t{number:03d}", row[0], aims, **dict(zip(names, row[1:], strict=False)), memory=row[4]),
            direction=directions[0].value,
        )
        for number, row in enumerate(rows)
    ]
    front = RunResult("default", tuple(trials)).fronts()["s"]
    expected = best_by_optuna(directions, rows, bounded=bounded)
    assert sorted(trial.id for trial in front) == [f"s.t{number:03d}" for number in expected]


TWO = Aims((FurtherObjective("latency", Direction.MINIMIZE),))
BOUND = Aims((), (Constraint("memory_mb", "<=", 512.0),))


def test_a_front_begins_with_the_best_by_the_first_objective_and_there_is_no_single_best() -> None:
    trials = (
        result("a", 3.0, TWO, latency=1.0),
        result("b", 1.0, TWO, latency=3.0),
        result("c", 3.0, TWO, latency=3.0),
    )
    run = RunResult("default", trials)
    assert [trial.id for trial in run.fronts()["s"]] == ["s.b", "s.a"]
    assert run.ranking() == {}
    told = run.to_dict()
    assert told["front"] == {"s": ["s.b", "s.a"]}
    assert told["best"] == {}
    assert RunResult.from_dict(told) == run


@pytest.mark.parametrize(
    "changes",
    [{"succeeded": False}, {"final_metric": None}, {"final_metric": math.inf}, {"values": {}}],
)
def test_a_trial_that_failed_or_lacks_an_objective_is_not_on_the_front(changes: dict[str, object]) -> None:
    good, bad = result("a", 3.0, TWO, latency=3.0), replace(result("b", 1.0, TWO, latency=1.0), **changes)  # type: ignore[arg-type] # fields of different types
    assert [trial.id for trial in RunResult("default", (good, bad)).fronts()["s"]] == ["s.a"]


def test_one_that_was_ended_early_may_be_on_the_front() -> None:
    stopped = replace(result("a", 3.0, TWO, latency=3.0), stopped="too slow")
    assert RunResult("default", (stopped,)).best() == {"s": ("s.a",)}


def test_a_trial_that_breaks_a_constraint_is_never_the_best_and_is_told() -> None:
    run = RunResult("default", (result("a", 1.0, BOUND, memory_mb=600.0), result("b", 2.0, BOUND, memory_mb=512.0)))
    assert run.best() == {"s": ("s.b",)}
    assert not_counted(run) == [
        "s.a under default is neither the best nor on a front: it breaks memory_mb <= 512 with 600"
    ]


def test_where_no_trial_keeps_the_constraints_there_is_no_best() -> None:
    assert RunResult("default", (result("a", 1.0, BOUND, memory_mb=600.0), result("b", 2.0, BOUND))).best() == {}


def test_a_trial_that_logged_one_of_two_objectives_is_told() -> None:
    logged = {"s.a": {"loss", "latency"}, "s.b": {"loss"}}
    trials = with_what_they_logged(
        (result("a", 1.0, TWO, latency=1.0), result("b", 1.0, TWO)), lambda trial: logged[trial.id]
    )
    missing = missing_objectives(RunResult("default", trials))
    assert missing.errors == ()
    assert missing.warnings == (
        "s.b ended well under default, but never logged 'latency': it is neither the best nor on a front",
    )


def test_an_objective_that_no_trial_logged_is_an_error() -> None:
    trials = with_what_they_logged((result("a", 1.0, TWO), result("b", 2.0, TWO)), lambda _: {"loss"})
    (error,) = missing_objectives(RunResult("default", trials)).errors
    assert error == "no trial of s logged 'latency', which it goes by, although 2 ended well"


def test_a_finite_value_that_turned_to_nan_does_not_count() -> None:
    trials = with_what_they_logged((result("a", 1.0, TWO),), lambda _: {"loss", "latency"})
    assert not_counted(RunResult("default", trials)) == [
        "s.a under default is neither the best nor on a front: it has no finite value of 'latency'"
    ]
