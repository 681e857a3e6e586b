import math

from controllers.core.model import Direction
from hera_specon.records.history import ObjectiveReading, SweepHistory
from hera_specon.report.best_so_far import best_so_far


def told(**reports: tuple[tuple[float, float], ...]) -> SweepHistory:
    return SweepHistory(
        {}, (), {trial: tuple(ObjectiveReading(*one) for one in told) for trial, told in reports.items()}, {}, 9.0
    )


def test_each_report_that_beats_all_before_it_is_the_best_so_far() -> None:
    known = told(a=((1.0, 5.0), (3.0, 2.0)), b=((2.0, 4.0), (4.0, 3.0)))
    assert best_so_far(known, Direction.MINIMIZE) == [(1.0, 5.0, "a"), (2.0, 4.0, "b"), (3.0, 2.0, "a")]
    assert best_so_far(known, Direction.MAXIMIZE) == [(1.0, 5.0, "a")]


def test_what_diverged_is_never_the_best() -> None:
    known = told(a=((1.0, math.nan), (2.0, -math.inf), (3.0, 7.0)))
    assert best_so_far(known, Direction.MINIMIZE) == [(3.0, 7.0, "a")]


def test_without_reports_nothing_is_the_best() -> None:
    assert best_so_far(told(a=()), Direction.MINIMIZE) == []
