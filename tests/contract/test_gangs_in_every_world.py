"""What every world promises of trials with several workers. One suite; each world passes it."""

import pytest

from controllers.core.actions import Migrate, Place, Resize, Stop, Suspend
from controllers.core.model import NodeName, Phase
from controllers.core.ports import OutcomeKind
from tests.contract.bench import Behaviour, GangBench

ELASTIC = Behaviour(steps=150, workers=3)
ENDLESS = Behaviour(steps=2000, workers=3)


def move(bench: GangBench, name: str, *nodes: NodeName) -> Migrate:
    """Return the move of a gang to a worker on each of ``nodes``."""
    return Migrate(bench.trial(name).id, nodes)


def placed(bench: GangBench, name: str, *nodes: NodeName) -> None:
    """Place a gang that waits, with a worker on each of ``nodes``, and wait until it makes steps."""
    bench.until(lambda: bench.world.apply(Place(bench.trial(name).id, nodes)).done)
    bench.until_together(name, nodes)


def waiting_gang(bench: GangBench, behaviour: Behaviour) -> None:
    """Submit a gang ``a`` that waits for its first place."""
    bench.submit(gated=True, a=behaviour)
    bench.until_gated("a")


def test_all_workers_of_a_gang_make_each_step_together_and_it_ends_well(gang_bench: GangBench) -> None:
    gang_bench.submit(a=Behaviour(steps=30, workers=3, min_workers=3))
    gang_bench.until_running("a")
    trial = gang_bench.trial("a")
    assert (trial.workers, trial.min_workers, trial.max_workers, len(trial.nodes)) == (3, 3, 3, 3)
    assert set(trial.nodes) == set(gang_bench.nodes)
    assert tuple(gang_bench.crew("a")) == trial.nodes
    gang_bench.until(lambda: gang_bench.ended("a"))
    assert (gang_bench.trial("a").phase, gang_bench.trial("a").attempt) == (Phase.SUCCEEDED, 1)
    assert gang_bench.steps("a") == list(range(30))


def test_a_gang_that_does_not_fit_as_a_whole_waits_and_holds_nothing(gang_bench: GangBench) -> None:
    alone, pair = Behaviour(steps=2000, cpu="300m"), Behaviour(steps=20, cpu="300m", workers=2, min_workers=2)
    gang_bench.submit(a=alone, b=pair)
    gang_bench.until(lambda: {gang_bench.phase("a"), gang_bench.phase("b")} == {Phase.RUNNING, Phase.PENDING})
    for _ in range(20):
        gang_bench.drive()
    runs, waits = ("a", "b") if gang_bench.phase("a") is Phase.RUNNING else ("b", "a")
    assert (runs, gang_bench.trial(waits).nodes) == ("a", ())
    gang_bench.take_on(Stop(gang_bench.trial("a").id, "enough"))
    gang_bench.until(lambda: gang_bench.ended("a", "b"))
    assert gang_bench.trial("b").phase is Phase.SUCCEEDED


def test_a_gang_grows_and_shrinks_and_no_step_is_lost_or_doubled(gang_bench: GangBench) -> None:
    waiting_gang(gang_bench, ELASTIC)
    here, there = gang_bench.nodes
    placed(gang_bench, "a", here)
    for nodes in ((here, there, there), (there, here)):
        gang_bench.take_on(move(gang_bench, "a", *nodes))
        assert (gang_bench.trial("a").phase, gang_bench.trial("a").destination) == (Phase.MOVING, nodes)
        gang_bench.until_together("a", nodes)
        assert gang_bench.trial("a").workers == len(nodes)
    gang_bench.until(lambda: gang_bench.ended("a"))
    assert gang_bench.steps("a") == list(range(150))
    (result,) = gang_bench.world.results({})
    assert (result.succeeded, result.attempts, result.scales, result.workers) == (True, 3, 2, 2)


def test_a_gang_moves_whole_without_a_change_of_its_size(gang_bench: GangBench) -> None:
    waiting_gang(gang_bench, ELASTIC)
    here, there = gang_bench.nodes
    placed(gang_bench, "a", here, here)
    gang_bench.take_on(move(gang_bench, "a", here, there))
    gang_bench.until_together("a", (here, there))
    gang_bench.take_on(Migrate.to(there, gang_bench.trial("a")))
    gang_bench.until_together("a", (there, there))
    gang_bench.until(lambda: gang_bench.ended("a"))
    (result,) = gang_bench.world.results({})
    assert (result.moves, result.scales, result.workers, result.first_node) == (2, 0, 2, here)


def test_a_suspended_gang_goes_on_with_as_many_workers_as_it_is_placed_with(gang_bench: GangBench) -> None:
    waiting_gang(gang_bench, ELASTIC)
    here, there = gang_bench.nodes
    placed(gang_bench, "a", here, there, there)
    gang_bench.take_on(Suspend(gang_bench.trial("a").id))
    gang_bench.until(lambda: gang_bench.phase("a") is Phase.SUSPENDED)
    assert (gang_bench.trial("a").nodes, gang_bench.trial("a").workers) == ((), 3)
    placed(gang_bench, "a", there, here)
    gang_bench.until(lambda: gang_bench.ended("a"))
    assert gang_bench.steps("a") == list(range(150))
    (result,) = gang_bench.world.results({})
    assert (result.suspensions, result.scales) == (1, 1)


def test_a_gang_placed_without_nodes_keeps_its_size(gang_bench: GangBench) -> None:
    waiting_gang(gang_bench, ELASTIC)
    gang_bench.place("a")
    gang_bench.until_running("a")
    assert len(gang_bench.crew("a")) == gang_bench.trial("a").workers == 3


def test_a_lost_worker_is_one_failure_and_the_whole_gang_goes_on_from_its_checkpoint(gang_bench: GangBench) -> None:
    gang_bench.submit(a=Behaviour(steps=100, workers=3, min_workers=3, retries=1))
    gang_bench.until_running("a")
    gang_bench.kill_worker("a", 1)
    gang_bench.until(lambda: gang_bench.trial("a").attempt == 2 and gang_bench.trial("a").steady)
    assert len(gang_bench.trial("a").nodes) == 3
    gang_bench.until(lambda: gang_bench.ended("a"))
    assert (gang_bench.trial("a").phase, gang_bench.trial("a").attempt) == (Phase.SUCCEEDED, 2)
    assert gang_bench.steps("a") == list(range(100))


def test_a_gang_that_fails_more_often_than_it_may_has_failed(gang_bench: GangBench) -> None:
    gang_bench.submit(
        a=Behaviour(steps=3, workers=2, min_workers=2, failures=1, retries=1),
        b=Behaviour(steps=3, workers=2, min_workers=2, failures=9, retries=1),
    )
    gang_bench.until(lambda: gang_bench.ended("a", "b"))
    assert (gang_bench.trial("a").phase, gang_bench.trial("a").attempt) == (Phase.SUCCEEDED, 2)
    assert (gang_bench.trial("b").phase, gang_bench.trial("b").attempt) == (Phase.FAILED, 2)


def test_a_gang_that_is_stopped_ends_early_and_well(gang_bench: GangBench) -> None:
    gang_bench.submit(a=ENDLESS)
    gang_bench.until_running("a")
    gang_bench.take_on(Stop(gang_bench.trial("a").id, "enough"))
    gang_bench.until(lambda: gang_bench.ended("a") and gang_bench.world.finished)
    assert (gang_bench.phase("a"), gang_bench.world.failed) == (Phase.STOPPED, False)


def test_a_gang_that_ignores_the_request_is_ended_after_its_grace_and_moves_all_the_same(
    gang_bench: GangBench,
) -> None:
    waiting_gang(gang_bench, Behaviour(steps=2000, workers=2, deaf=True))
    here, there = gang_bench.nodes
    placed(gang_bench, "a", here, there)
    gang_bench.take_on(move(gang_bench, "a", there))
    assert gang_bench.world.apply(Suspend(gang_bench.trial("a").id)).kind is OutcomeKind.BUSY
    gang_bench.until_together("a", (there,))
    assert gang_bench.trial("a").attempt == 2


def test_a_resize_gives_each_worker_its_share_where_all_of_them_fit(gang_bench: GangBench) -> None:
    waiting_gang(gang_bench, ENDLESS)
    here, there = gang_bench.nodes
    placed(gang_bench, "a", here, here, there)
    gang_bench.take_on(Resize(gang_bench.trial("a").id, 0.15))
    gang_bench.until(lambda: gang_bench.trial("a").cpu == pytest.approx(0.15))
    refused = gang_bench.world.apply(Resize(gang_bench.trial("a").id, 0.3))
    assert refused.kind is OutcomeKind.REFUSED
    assert gang_bench.trial("a").steady


def test_nodes_that_a_gang_cannot_have_are_refused_and_it_waits_as_before(gang_bench: GangBench) -> None:
    waiting_gang(gang_bench, Behaviour(steps=2000, cpu="150m", workers=4, min_workers=2))
    here, there = gang_bench.nodes
    trial = gang_bench.trial("a").id
    for nodes in ((here,), (here, here, here), (here, there, here, there, here), (here, NodeName("nowhere"))):
        refused = gang_bench.world.apply(Place(trial, nodes))
        assert refused.kind is OutcomeKind.REFUSED, nodes
        assert refused.detail
    assert gang_bench.trial("a").gated
    placed(gang_bench, "a", here, there, here)
    for nodes in ((here, there, here), (here, here, here), (there,)):
        assert gang_bench.world.apply(move(gang_bench, "a", *nodes)).kind is OutcomeKind.REFUSED, nodes
    assert gang_bench.trial("a").steady


def test_a_gang_may_grow_into_the_room_that_its_own_workers_hold(gang_bench: GangBench) -> None:
    waiting_gang(gang_bench, Behaviour(steps=2000, cpu="150m", workers=4))
    here, there = gang_bench.nodes
    placed(gang_bench, "a", here, here, there)
    # On a cluster, pods of the test before this one may hold room for seconds more.
    gang_bench.until(lambda: gang_bench.world.apply(move(gang_bench, "a", there, there, here, here)).done)
    gang_bench.until_together("a", (there, there, here, here))


def test_a_controller_killed_while_a_gang_grows_loses_nothing_and_runs_nothing_twice(gang_bench: GangBench) -> None:
    waiting_gang(gang_bench, ELASTIC)
    here, there = gang_bench.nodes
    placed(gang_bench, "a", here)
    gang_bench.take_on(move(gang_bench, "a", here, there, there))
    gang_bench.drive()
    gang_bench.restart_controller()
    gang_bench.until_together("a", (here, there, there))
    gang_bench.restart_controller()
    gang_bench.until(lambda: gang_bench.ended("a"))
    assert gang_bench.trial("a").phase is Phase.SUCCEEDED
    assert gang_bench.steps("a") == list(range(150))
