"""What status and screens show while a sweep of several objectives, or under constraints, runs."""

from dataclasses import replace

from controllers.core.aims import Aims, Constraint, Direction, FurtherObjective
from controllers.core.model import Phase, Progress, Snapshot, Trial
from hera_specon.display.boards import best_lines
from hera_specon.sweep_state import best_so_far, fronts_so_far
from tests.controllers.policies.policy_fakes import trial

TWO = Aims((FurtherObjective("speed", Direction.MAXIMIZE),))
BOUND = Aims((), (Constraint("memory", "<=", 2.0),))


def reached(name: str, value: float, aims: Aims, **also: float) -> Trial:
    seen = Progress(value, value, value, 1, 1.0, also=tuple(also.items()))
    return replace(trial(f"uid.s.{name}", "n"), sweep="s", progress=seen, aims=aims)


def at_once(*trials: Trial) -> Snapshot:
    return Snapshot(5.0, trials, ())


def test_the_front_so_far_has_whoever_no_other_beats_by_the_newest_values() -> None:
    fast, good = reached("a", 3.0, TWO, speed=9.0), reached("b", 1.0, TWO, speed=5.0)
    beaten, silent = reached("c", 3.0, TWO, speed=5.0), reached("d", 0.1, TWO)
    failed = replace(reached("e", 0.1, TWO, speed=99.0), phase=Phase.FAILED)
    diverged = replace(reached("f", 0.1, TWO, speed=99.0), diverged=True)
    snapshot = at_once(fast, good, beaten, silent, failed, diverged)
    assert fronts_so_far(snapshot) == {"s": [fast, good]}
    assert best_so_far(snapshot) == []
    assert best_lines(snapshot) == ["on the front so far: 2 trials, s.a, s.b"]


def test_of_a_large_front_the_first_few_are_named() -> None:
    many = at_once(*(reached(f"t{n}", float(n), TWO, speed=float(n)) for n in range(9)))
    (line,) = best_lines(many)
    assert line == "on the front so far: 9 trials, s.t0, s.t1, s.t2, s.t3, s.t4 and others"


def test_a_trial_that_breaks_a_constraint_or_has_not_told_is_not_the_best_so_far() -> None:
    kept = reached("c", 3.0, BOUND, memory=2.0)
    found = best_so_far(at_once(reached("a", 1.0, BOUND, memory=3.0), reached("b", 1.0, BOUND), kept))
    assert found == [(kept, 3.0)]


def test_a_sweep_of_one_objective_has_no_front() -> None:
    assert fronts_so_far(at_once(reached("a", 1.0, Aims()))) == {}
