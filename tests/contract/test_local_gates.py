"""First attempts of the local world under a policy that places them itself."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from controllers.core.model import NodeName, Phase, Place, TrialId
from tests.contract.bench import Behaviour
from tests.contract.local_bench import LocalBench


@pytest.fixture
def gated(tmp_path: Path) -> Iterator[LocalBench]:
    bench = LocalBench(tmp_path, gate_first=True)
    bench.submit(a=Behaviour(steps=400), b=Behaviour())
    bench.drive()
    yield bench
    bench.close()


def trial(bench: LocalBench, name: str) -> TrialId:
    return bench.trial(name).id


def test_a_gated_trial_waits_until_it_is_placed_and_then_runs_there(gated: LocalBench) -> None:
    for _ in range(5):
        gated.drive()
    assert (gated.trial("a").phase, gated.trial("a").gated) == (Phase.PENDING, True)
    assert gated.world.apply(Place(trial(gated, "a"), NodeName("node-2"))).done
    gated.until_running("a")
    assert (gated.trial("a").node, gated.trial("a").gated) == ("node-2", False)
    assert gated.trial("b").gated


def test_a_later_attempt_of_a_placed_trial_waits_for_nobody(gated: LocalBench) -> None:
    gated.world.apply(Place(trial(gated, "a")))
    gated.until_running("a")
    gated.kill_attempt("a")
    gated.until(lambda: gated.trial("a").attempt == 2)


def test_a_placed_trial_stays_placed_when_the_controller_dies(gated: LocalBench) -> None:
    gated.world.apply(Place(trial(gated, "b"), NodeName("node-1")))
    gated.drive()
    gated.restart_controller()
    gated.until(lambda: gated.ended("b"))
    assert gated.trial("a").gated


def test_a_place_is_refused_where_there_is_no_room_and_where_nobody_waits(gated: LocalBench) -> None:
    gated.world.apply(Place(trial(gated, "a"), NodeName("node-2")))
    again = gated.world.apply(Place(trial(gated, "a"), NodeName("node-1")))
    assert (again.done, again.detail) == (False, "the trial does not wait for a place")
    nowhere = gated.world.apply(Place(trial(gated, "b"), NodeName("node-9")))
    assert not nowhere.done
