"""What is in use of a cluster's nodes, by what trials report themselves."""

from dataclasses import replace

import pytest

from controllers.cluster.campaign_world import BusyNodes, ReportedUsage
from controllers.core.model import Direction, Phase, Progress, Sample, Snapshot, Trial, TrialId
from controllers.core.progress import merge
from tests.controllers.cluster.clusters_in_memory import ONE, TWO, MemoryWorld, trial

A, B = trial("uid.vae.t000"), trial("uid.vae.t001")


def reported(of: Trial, *cpu_seconds: float) -> list[Trial]:
    """The trial as it was seen each second, with the CPU seconds that it had reported by then."""
    seen, progress = [], None
    for second, used in enumerate(cpu_seconds):
        progress = merge(progress, Sample(1.0 / (second + 1), second, float(second), used), Direction.MINIMIZE)
        seen.append(replace(of, progress=progress))
    return seen


def used(trials: list[Trial], *histories: list[Trial]) -> dict[str, float]:
    usage = ReportedUsage()
    for now, seen in enumerate(zip(*histories, strict=True)):
        usage.observe(Snapshot(float(now), tuple(seen), ()), {}, {})
    return {node.name: node.cpu_used for node in BusyNodes(MemoryWorld.of(*trials), usage).nodes()}


def test_a_node_is_as_busy_as_its_trials_report_by_their_newest_two_reports() -> None:
    histories = reported(A, 0.0, 0.9, 1.2), reported(B, 5.0, 6.0, 6.5)
    assert used([A, B], *histories) == {ONE: pytest.approx(0.3 + 0.5), TWO: 0.0}


def test_who_has_moved_keeps_the_other_node_busy() -> None:
    assert used([A, replace(B, nodes=(TWO,))], reported(A, 0.0, 0.4), reported(B, 0.0, 0.7)) == {
        ONE: pytest.approx(0.4),
        TWO: pytest.approx(0.7),
    }


@pytest.mark.parametrize("phase", [Phase.PENDING, Phase.MOVING, Phase.SUCCEEDED, Phase.FAILED])
def test_who_does_not_run_uses_nothing(phase: Phase) -> None:
    assert used([replace(A, phase=phase)], reported(A, 0.0, 0.4)) == {ONE: 0.0, TWO: 0.0}


def test_no_node_is_busier_than_it_is_large() -> None:
    assert used([A, B], reported(A, 0.0, 3.0), reported(B, 0.0, 3.0)) == {ONE: 4.0, TWO: 0.0}


def test_a_trial_of_several_workers_is_spread_over_their_nodes() -> None:
    gang = replace(A, workers=2, nodes=(ONE, TWO))
    assert used([gang], reported(gang, 0.0, 0.8)) == {ONE: pytest.approx(0.4), TWO: pytest.approx(0.4)}


def test_one_report_tells_nothing_yet_and_the_cluster_is_otherwise_as_it_was() -> None:
    assert used([A], reported(A, 7.0)) == {ONE: 0.0, TWO: 0.0}
    world = MemoryWorld.of(A)
    busy = BusyNodes(world, ReportedUsage())
    assert (busy.can, busy.trials(), busy.trial(TrialId(A.id)), busy.node(ONE)) == (
        world.can,
        world.trials(),
        A,
        world.node(ONE),
    )


@pytest.mark.parametrize(("now", "soon"), [(0.0, False), (39.0, False), (40.0, True), (100.0, True), (161.0, False)])
def test_a_trial_ends_soon_that_has_less_left_than_a_move_takes_unless_it_is_overdue(now: float, soon: bool) -> None:  # noqa: FBT001 - a row of a table
    # At step 50 of 100 at 50 s, it ends at 100 s.
    half = Progress(1.0, 0.5, 0.5, 50, 50.0, steps_total=100)
    usage = ReportedUsage()
    usage.observe(Snapshot(now, (replace(A, submitted_at=0.0, progress=half), B), ()), {}, {})
    assert usage.ends_soon(A.id) is soon
    assert not usage.ends_soon(B.id)
