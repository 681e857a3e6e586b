"""A trial that runs and says nothing is told of, once; one that only takes its time is not."""

from collections.abc import Sequence

from controllers.core.model import Direction, NodeName, Phase, Progress, Snapshot, Trial, TrialId
from controllers.record.silence import GAPS, SILENT_S, SilenceWatch


def running(step: int | None = None, at: float = 0.0, *, attempt: int = 1, phase: Phase = Phase.RUNNING) -> Trial:
    progress = None if step is None else Progress(1.0, 1.0, 1.0, step, at)
    nodes = (NodeName("n"),)
    return Trial(TrialId("a"), phase, 1.0, 1.0, 0.0, Direction.MINIMIZE, 0.0, nodes, attempt=attempt, progress=progress)


def told(*looks: tuple[float, Trial]) -> Sequence[float]:
    """Return when something was told."""
    times: list[float] = []
    now = [0.0]
    watch = SilenceWatch(lambda _, __: times.append(now[0]))
    for at, trial in looks:
        now[0] = at
        watch.observe(Snapshot(at, (trial,), ()), {}, {})
    return times


def test_a_trial_that_never_reports_is_told_of_once() -> None:
    late = SILENT_S + 1
    assert told((0.0, running()), (SILENT_S - 1, running()), (late, running()), (late + 60, running())) == [late]


def test_a_trial_that_stops_reporting_is_told_of_and_again_after_it_went_on() -> None:
    one, two = running(1, 10.0), running(2, 2000.0)
    late = 10.0 + SILENT_S + 1
    assert told((10.0, one), (late, one), (2000.0, two), (2000.0 + 40 * SILENT_S, two)) == [late, 2000 + 40 * SILENT_S]


def test_a_trial_whose_steps_take_long_may_take_ten_times_as_long() -> None:
    one, two = running(1, 10.0), running(2, 310.0)
    looks = ((10.0, one), (310.0, two), (310.0 + GAPS * 300 - 1, two))
    assert told(*looks) == []
    assert told(*looks, (310.0 + GAPS * 300 + 1, two)) == [310.0 + GAPS * 300 + 1]


def test_a_new_attempt_and_one_that_waits_have_time() -> None:
    waits = running(1, 10.0, phase=Phase.SUSPENDED)
    late = 2 * SILENT_S
    assert told((10.0, running(1, 10.0)), (late, waits), (late + 1, running(1, 10.0, attempt=2))) == []
