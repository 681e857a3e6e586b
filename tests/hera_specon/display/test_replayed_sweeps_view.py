"""What is said of a replay of several past sweeps."""

import pytest
from rich.console import Console

from controllers.lab.simulation.past_sweeps.forecast import Interval
from controllers.lab.simulation.past_sweeps.over_sweeps import OverSweeps, Rate, SweepMakespan
from hera_specon.display.replayed_sweeps import rates_told, replayed_sweeps_view
from hera_specon.replay.several import ReplayedSweeps, SweepTold

POLICY = "promote:finish=best"


def replayed(missed: list[float], promise: float | None = 0.05, left_out: tuple[str, ...] = ()) -> ReplayedSweeps:
    def makespans(seconds: float, ratio: float) -> tuple[SweepMakespan, ...]:
        one = SweepMakespan(Interval(seconds, seconds, seconds), Interval(ratio, ratio, ratio))
        return (one,) * len(missed)

    sweeps = tuple(SweepTold(f"sweep-{number}", 8, 0.02, {}) for number in range(len(missed)))
    policies = (
        OverSweeps("default", None, makespans(100.0, 1.0), None, None),
        OverSweeps(POLICY, promise, makespans(40.0, 0.4), Rate.of([1.0] * len(missed)), Rate.of(missed)),
    )
    return ReplayedSweeps(30, sweeps, policies, left_out)


@pytest.mark.parametrize(
    ("missed", "verdict"),
    [
        ([0.0] * 12, "in 0 of 12 sweeps: 0 % (0 to 24); it promises 5 %, and 12 sweeps are too few to tell"),
        ([0.5, 0.0, 0.0], "in 0.5 of 3 sweeps: 17 % (2 to 69); it promises 5 %, and 3 sweeps are too few to tell"),
        ([0.0] * 100, "in 0 of 100 sweeps: 0 % (0 to 4); it promises 5 %, and keeps it here."),
        ([1.0] * 5, "in 5 of 5 sweeps: 100 % (57 to 100); it promises 5 %, which these sweeps contradict."),
    ],
)
def test_a_promise_is_held_against_what_was_missed_beyond_noise(missed: list[float], verdict: str) -> None:
    (told,) = rates_told(replayed(missed))
    assert verdict in told


def test_without_a_promise_only_what_was_missed_is_told() -> None:
    (told,) = rates_told(replayed([0.0, 1.0], promise=None))
    assert told.startswith(POLICY)
    assert "promises" not in told


def test_the_tables_name_each_sweep_its_makespans_and_both_ways_to_count() -> None:
    console = Console(width=160)
    with console.capture() as captured:
        console.print(replayed_sweeps_view(replayed([0.0, 0.0], left_out=("old-1: it has not finished",))))
    told = captured.get()
    for words in ("sweep-1", "40 s (-60.0 %)", "+2.0%", "2 of 2: 100 % (34 to 100)", "0 of 2: 0 % (0 to 66)"):
        assert words in told
    assert "left out: old-1: it has not finished" in told
