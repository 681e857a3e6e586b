"""Parts of a GPU of this machine: ``gpus=0.5`` with NVIDIA's Multi-Process Service, and without."""

import socket
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, cast

import pytest

from controllers.core.errors import SpeconError
from controllers.local_run.checks import gpus_to_give
from controllers.worlds.local.gangs import Ended
from controllers.worlds.local.gpus import shared_out
from controllers.worlds.local.jobs import JobLedger
from controllers.worlds.local.mps import why_no_mps
from controllers.worlds.local.room import Machine
from controllers.worlds.local.stand_ins import stood_in
from controllers.worlds.local.workflow import PlannedTrial, PodStep, WorkflowError
from controllers.worlds.local.world import LocalWorld
from tests.controllers.worlds.local.gpu_trials import Started, trials_with_gpus

if TYPE_CHECKING:
    from controllers.worlds.local.attempts import Attempts


def asking(*parts: float, workers: int = 1) -> list[PlannedTrial]:
    return [PlannedTrial(PodStep("s", "t", (), gpus=1, gpu_part=part, workers=workers), 0.0) for part in parts]


@pytest.fixture
def pipes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder for the sockets of an MPS control daemon."""
    monkeypatch.setenv("CUDA_MPS_PIPE_DIRECTORY", str(tmp_path))
    return tmp_path


@pytest.fixture
def daemon(pipes: Path) -> Iterator[socket.socket]:
    """A socket that listens where an MPS control daemon does."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as control:
        control.bind(str(pipes / "control"))
        control.listen()
        yield control


@pytest.mark.parametrize(
    ("asked", "gpus", "part"), [("0.5", 1, 0.5), (0.3, 1, 0.3), ("500m", 1, 0.5), ("1.0", 1, 1.0), (2, 2, 1.0)]
)
def test_a_part_of_a_gpu_is_read_as_whole_ones_are(asked: object, gpus: int, part: float) -> None:
    (step,) = trials_with_gpus(asked, "a").expand({}, ()).pods
    assert (step.gpus, step.gpu_part) == (gpus, part)


@pytest.mark.parametrize("asked", ["1.5", "0.001"])
def test_more_than_one_gpu_with_a_part_of_another_and_hardly_any_of_one_are_refused(asked: str) -> None:
    with pytest.raises(WorkflowError, match=rf"a part of one GPU from 0\.021 to 1, not '{asked}'"):
        trials_with_gpus(asked, "a")


@pytest.mark.usefixtures("daemon")
def test_as_many_trials_hold_a_gpu_as_their_parts_fit_into_it() -> None:
    assert gpus_to_give(asking(0.5, 0.5), ("0", "1")) == ("0", "0", "1", "1")
    assert gpus_to_give(asking(0.3), ("0",)) == ("0",) * 3
    assert gpus_to_give(asking(0.7), ("0",)) == ("0",), "the rest of it is nobody's"
    assert gpus_to_give(asking(0.1), ("0",)) == ("0",) * 10, "though a tenth is no binary fraction"


@pytest.mark.usefixtures("pipes")
def test_without_a_daemon_a_part_is_refused_with_what_to_do_instead() -> None:
    with pytest.raises(
        SpeconError, match=r"asks for 0\.5 nvidia.com/gpu, but no MPS control daemon listens"
    ) as refused:
        gpus_to_give(asking(0.5), ("0",))
    assert "start one by 'nvidia-cuda-mps-control -d'" in str(refused.value)
    assert "CUDA_VISIBLE_DEVICES=0,0" in str(refused.value)
    assert gpus_to_give(asking(1.0), ("0",)) == ("0",), "whole ones need none"


def test_a_daemon_that_has_died_counts_as_none_though_its_socket_is_still_there(
    pipes: Path, daemon: socket.socket
) -> None:
    assert why_no_mps() is None
    daemon.close()
    assert (pipes / "control").exists()
    assert f"no MPS control daemon listens at {pipes / 'control'}" in str(why_no_mps())


@pytest.mark.usefixtures("daemon")
def test_unlike_parts_gpus_named_twice_and_gangs_on_a_gpu_are_refused_by_name() -> None:
    with pytest.raises(SpeconError, match=r"ask for 0\.25 and 1 nvidia.com/gpu: all that run together"):
        gpus_to_give(asking(1.0, 0.25), ("0",))
    with pytest.raises(SpeconError, match=r"CUDA_VISIBLE_DEVICES is 0,0: name each GPU once"):
        gpus_to_give(asking(0.5), ("0", "0"))
    with pytest.raises(SpeconError, match=r"2 workers with 0\.5 nvidia.com/gpu each"):
        gpus_to_give(asking(0.5, workers=2), ("0",))
    with pytest.raises(SpeconError, match=r"asks for 1 parts of 0\.5 nvidia.com/gpu, but here are 0"):
        gpus_to_give(asking(0.5), ())


@pytest.mark.usefixtures("daemon")
def test_two_halves_are_halves_of_one_gpu_and_a_trial_waits_while_no_whole_half_is_free() -> None:
    halves, started = trials_with_gpus("0.5", "abc"), Started()
    gpus = shared_out(gpus_to_give(halves.trials(), ("0",)), ["n1"], 1)
    world = LocalWorld(halves, "u", Machine({"n1": 1.0}, 1e9, gpus=gpus), cast("Attempts", started), JobLedger())
    world.advance(0.0)
    assert started.gpus == {"a": ("0",), "b": ("0",)}
    assert [(str(node.devices), str(node.replicas)) for node in world.nodes()] == [("2 nvidia.com/gpu",) * 2]
    first = next(job for job in world.jobs() if job.step.template == "a")
    started.over.append(Ended(first.key, 0, 1.0))
    world.advance(1.0)
    assert started.gpus["c"] == ("0",)


def test_a_trial_is_told_its_gpu_and_its_part_of_the_threads_unless_its_author_chose_one(tmp_path: Path) -> None:
    (step,) = trials_with_gpus("0.3", "a").expand({}, ()).pods
    env = stood_in(step, tmp_path, "a", ("1",)).env
    assert (env["CUDA_VISIBLE_DEVICES"], env["CUDA_MPS_ACTIVE_THREAD_PERCENTAGE"]) == ("1", "30")
    (whole,) = trials_with_gpus(1, "a").expand({}, ()).pods
    assert "CUDA_MPS_ACTIVE_THREAD_PERCENTAGE" not in stood_in(whole, tmp_path, "a", ("1",)).env
    chosen = PodStep("s", "t", (), env={"CUDA_MPS_ACTIVE_THREAD_PERCENTAGE": "60"}, gpus=1, gpu_part=0.3)
    assert stood_in(chosen, tmp_path, "a", ("1",)).env["CUDA_MPS_ACTIVE_THREAD_PERCENTAGE"] == "60"
