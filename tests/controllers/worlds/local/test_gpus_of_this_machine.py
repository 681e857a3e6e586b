"""The GPUs of this machine: which there are, who may hold them, and what policies see of them."""

from pathlib import Path
from typing import TYPE_CHECKING, cast

import pytest

from controllers.core.actions import Migrate
from controllers.core.errors import SpeconError
from controllers.core.model import NodeName, TrialId
from controllers.local_run.checks import gpus_to_give, stand_ins
from controllers.worlds.local.gangs import Ended
from controllers.worlds.local.gpus import devices_of, gpus_here, least_shared, replicas_of, shared_out
from controllers.worlds.local.jobs import JobLedger
from controllers.worlds.local.room import Machine
from controllers.worlds.local.workflow import PlannedTrial, PodStep
from controllers.worlds.local.workflow.steps import Mount
from controllers.worlds.local.world import LocalWorld
from tests.controllers.worlds.local.gpu_trials import Started, trials_with_gpus

if TYPE_CHECKING:
    from controllers.worlds.local.attempts import Attempts


def test_the_gpus_of_this_machine_are_those_that_may_be_used(tmp_path: Path) -> None:
    for name in ("nvidia10", "nvidia2", "nvidiactl", "nvidia-uvm"):
        (tmp_path / name).touch()
    assert gpus_here({}, tmp_path) == ("2", "10")
    assert gpus_here({"CUDA_VISIBLE_DEVICES": "GPU-a, 3"}, tmp_path) == ("GPU-a", "3")
    assert gpus_here({"CUDA_VISIBLE_DEVICES": ""}, tmp_path) == ()
    assert gpus_here({"CUDA_VISIBLE_DEVICES": "-1"}, tmp_path) == ()


def test_gpus_are_dealt_so_that_some_node_holds_what_one_trial_asks_for() -> None:
    assert shared_out("abc", ["n1", "n2"], 2) == {"n1": ("a", "b"), "n2": ("c",)}
    assert shared_out("abc", ["n1", "n2"], 1) == {"n1": ("a", "c"), "n2": ("b",)}
    assert shared_out("", ["n1"], 1) == {"n1": ()}


def test_a_gpu_that_is_named_several_times_may_be_shared_by_as_many_trials_on_one_node(tmp_path: Path) -> None:
    named = gpus_here({"CUDA_VISIBLE_DEVICES": "0,0,1,1"}, tmp_path)
    assert shared_out(named, ["n1", "n2"], 1) == {"n1": ("0", "0"), "n2": ("1", "1")}
    assert shared_out(named, ["n1"], 1) == {"n1": ("0", "0", "1", "1")}
    assert (replicas_of(named), replicas_of(("0", "1")), replicas_of(())) == (2, 1, 1)


def test_trials_come_to_the_gpu_that_the_fewest_others_hold() -> None:
    assert least_shared(("0", "0", "1", "1"), {}) == ["0", "1", "0", "1"]
    assert least_shared(("0", "0", "1", "1"), {"0": 1}) == ["1", "0", "1"]
    assert least_shared(("0", "1"), {"0": 1}) == ["1"]


def test_gpus_that_are_named_unequally_often_and_trials_of_several_shared_ones_are_refused_by_name() -> None:
    with pytest.raises(SpeconError, match=r"names GPU 0 2 times, 1 1 times: name each equally often"):
        gpus_to_give([], ("0", "0", "1"))
    planned = [PlannedTrial(PodStep("s", "t", (), gpus=2), 0.0)]
    with pytest.raises(
        SpeconError, match=r"asks for 2 nvidia\.com/gpu, but CUDA_VISIBLE_DEVICES names each GPU several"
    ):
        gpus_to_give(planned, ("0", "0", "1", "1"))


def test_more_gpus_than_there_are_are_refused_before_anything_starts(tmp_path: Path) -> None:
    planned = [PlannedTrial(PodStep("s", "t", (), gpus=2, mounts=(Mount("/no/data", "data"),)), 0.0)]
    with pytest.raises(SpeconError, match=r"a trial asks for 2 nvidia\.com/gpu, but here are 1"):
        gpus_to_give(planned, ["0"])
    assert gpus_to_give(planned, "01") == ("0", "1")
    where, volume = stand_ins(planned, tmp_path)
    assert f"trials run in {Path.cwd()}" in where
    assert "/no/data in commands and variables is volumes/data" in volume


@pytest.fixture
def started() -> Started:
    return Started()


@pytest.fixture
def world(started: Started) -> LocalWorld:
    """Three trials of a GPU each on two nodes that have two and one... and a third without any request."""
    machine = Machine({"n1": 1.0, "n2": 1.0}, 1e9, gpus={"n1": ("0", "1"), "n2": ()})
    return LocalWorld(trials_with_gpus(), "u", machine, cast("Attempts", started), JobLedger())


def test_each_trial_holds_a_gpu_of_its_own_and_the_next_waits_until_one_is_free(
    world: LocalWorld, started: Started
) -> None:
    world.advance(0.0)
    assert started.gpus == {"a": ("0",), "b": ("1",)}
    assert [str(node.devices) for node in world.nodes()] == ["2 nvidia.com/gpu", "no devices"]
    seen = world.trial(TrialId("u.s.c"))
    assert seen is not None
    assert seen.devices == devices_of(1)
    assert not seen.nodes
    first = next(job for job in world.jobs() if job.step.template == "a")
    started.over.append(Ended(first.key, 0, 1.0))
    world.advance(1.0)
    assert started.gpus["c"] == ("0",)


def test_two_trials_share_a_gpu_that_is_named_twice_and_policies_see_one_that_counts_twice(
    world: LocalWorld, started: Started
) -> None:
    shared = Machine({"n1": 1.0, "n2": 1.0}, 1e9, gpus={"n1": ("0", "0"), "n2": ()})
    world = LocalWorld(trials_with_gpus(), "u", shared, cast("Attempts", started), JobLedger())
    world.advance(0.0)
    assert started.gpus == {"a": ("0",), "b": ("0",)}
    assert [(str(node.devices), node.replicas.count("nvidia.com/gpu")) for node in world.nodes()] == [
        ("2 nvidia.com/gpu", 2),
        ("no devices", 0),
    ]
    seen = world.trial(TrialId("u.s.c"))
    assert seen is not None
    assert not seen.nodes


def test_no_trial_moves_to_a_node_that_has_no_gpu_for_it(world: LocalWorld) -> None:
    world.advance(0.0)
    assert "no room" in world.apply(Migrate(TrialId("u.s.a"), (NodeName("n2"),))).detail
