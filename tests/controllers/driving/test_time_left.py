"""How long trials still need, by their reports."""

from dataclasses import replace

from controllers.core.model import Progress, Trial, TrialId
from controllers.driving.time_left import TimeLeft
from tests.controllers.policies.policy_fakes import snapshot, trial

A = TrialId("a")


def at(now: float, step: int, total: int | None = 100, **changes: object) -> Trial:
    seen = Progress(1.0, 1.0, 1.0, step, now, steps_total=total)
    return replace(trial("a", "n1"), progress=seen, **changes)  # type: ignore[arg-type] # any field


def left_after(*seen: tuple[float, Trial]) -> float | None:
    left = TimeLeft()
    for now, one in seen:
        left.observe(snapshot(now, [one], []), {}, {})
    return left.of(A)


def test_it_is_what_is_left_at_the_pace_of_this_attempt() -> None:
    assert left_after((10.0, at(10.0, 10)), (20.0, at(20.0, 60))) == 8.0
    assert left_after((10.0, at(10.0, 10)), (20.0, at(20.0, 60)), (25.0, at(20.0, 60))) == 3.0


def test_nobody_knows_before_the_second_report_without_a_total_or_in_another_attempt() -> None:
    assert left_after((10.0, at(10.0, 10))) is None
    assert left_after((10.0, at(10.0, 10, None)), (20.0, at(20.0, 60, None))) is None
    assert left_after((10.0, at(10.0, 10)), (20.0, at(20.0, 60, attempt=2))) is None
