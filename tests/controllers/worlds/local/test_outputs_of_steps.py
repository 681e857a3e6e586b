"""Output parameters of real processes: each step has its own files, and one that does not write them has failed."""

import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from controllers.worlds.local.attempts import Attempts, Surroundings
from controllers.worlds.local.jobs import JobLedger, LocalJob, load_ledger, save_ledger
from controllers.worlds.local.processes import Launcher
from controllers.worlds.local.room import Machine
from controllers.worlds.local.shares import choose_shares
from controllers.worlds.local.world import LocalWorld
from tests.controllers.worlds.local.workflow.workflow_manifests import Manifest, call, program, steps

_NODES = {"node-1": 2.0}
Open = Callable[..., LocalWorld]


@pytest.fixture
def opened(tmp_path: Path) -> Iterator[Open]:
    """Open the world of a workflow of shell scripts."""
    shares = choose_shares(f"outputs-{os.getpid()}")
    launcher = Launcher((), grace_s=2.0, log=tmp_path / "launcher.log")
    attempts = Attempts(shares, launcher, Surroundings(tmp_path, Path.cwd(), dict(os.environ), {}, _NODES))
    yield lambda *templates: LocalWorld(program(*templates), "uid-1", Machine(_NODES, 1e9), attempts, JobLedger())
    launcher.close(2.0)
    shares.close()


def shell(name: str, does: str, *inputs: str, default: str | None = None) -> Manifest:
    source = {"path": "/no/out/x"} | ({} if default is None else {"default": default})
    return {
        "name": name,
        "inputs": {"parameters": [{"name": given} for given in inputs]},
        "outputs": {"parameters": [{"name": "x", "valueFrom": source}]},
        "volumes": [{"name": "out", "emptyDir": {}}],
        "container": {
            "command": ["sh", "-c", does],
            "env": [{"name": "OUT", "value": "/no/out/x"}],
            "volumeMounts": [{"name": "out", "mountPath": "/no/out"}],
            "resources": {"requests": {"cpu": "100m"}},
        },
    }


def to_the_end(world: LocalWorld) -> None:
    began = time.monotonic()
    while not world.finished:
        assert time.monotonic() < began + 60, "it hangs"
        world.advance(time.monotonic() - began)
        time.sleep(0.02)


def test_steps_side_by_side_write_the_same_path_and_hand_on_what_each_wrote(opened: Open, tmp_path: Path) -> None:
    write = shell("write", 'echo "{{inputs.parameters.n}}" > $OUT', "n")
    join = shell("join", "echo {{inputs.parameters.a}} {{inputs.parameters.b}} > $OUT", "a", "b")
    both = {name: f"{{{{steps.{name}.outputs.parameters.x}}}}" for name in ("a", "b")}
    world = opened(
        steps([call(name, "write", {"n": f"of {name}"}) for name in both], [call("join", "join", both)]), write, join
    )
    to_the_end(world)
    assert {job.id.removeprefix("w-x1"): dict(job.outputs) for job in world.jobs()} == {
        "[0].a": {"x": "of a"},
        "[0].b": {"x": "of b"},
        "[1].join": {"x": "of a of b"},
    }
    save_ledger(tmp_path / "ledger.json", world.ledger)
    assert load_ledger(tmp_path / "ledger.json") == world.ledger


def test_a_step_that_does_not_write_its_output_has_failed_unless_it_has_a_default(opened: Open, tmp_path: Path) -> None:
    world = opened(
        steps([call("a", "given"), call("b", "lacks")]), shell("given", ":", default="7"), shell("lacks", ":")
    )
    to_the_end(world)
    assert world.failed
    a, b = world.jobs()
    assert (a.outputs, b.outputs, b.exit_code) == ({"x": "7"}, {}, 1)
    assert "output 'x' is not there" in (tmp_path / "logs" / "w-x1-0-.b.log").read_text()


def test_a_step_may_wait_for_something_outside(opened: Open) -> None:
    world = opened(steps([call("a", "given")]), shell("given", ":", default="7"))
    asked: list[str] = []

    def wait(job: LocalJob) -> bool:
        asked.append(job.step.template)
        return len(asked) < 3

    world.waits_for_others = wait
    to_the_end(world)
    assert asked == ["given"] * 3


@pytest.mark.parametrize("does", ["mkfifo $OUT", "mkdir $OUT", "ln -s /dev/zero $OUT"])
def test_what_is_no_file_is_no_output_and_holds_nothing_up(opened: Open, tmp_path: Path, does: str) -> None:
    world = opened(steps([call("a", "odd")]), shell("odd", does))
    to_the_end(world)
    assert world.failed
    assert "output 'x' is not there" in (tmp_path / "logs" / "w-x1-0-.a.log").read_text()


def test_of_an_output_and_of_what_a_step_printed_no_more_is_read_than_a_workflow_takes(opened: Open) -> None:
    world = opened(steps([call("a", "long")]), shell("long", "truncate -s 4G $OUT; head -c 5000000 /dev/zero"))
    to_the_end(world)
    (done,) = world.jobs()
    assert len(done.outputs["x"]) == len(done.result or "") == 2**20


def test_a_pipe_in_place_of_a_steps_log_holds_nothing_up(opened: Open, tmp_path: Path) -> None:
    log = tmp_path / "logs" / "w-x1-0-.a.log"
    world = opened(steps([call("a", "odd")]), shell("odd", f"rm {log}; mkfifo {log}"))
    to_the_end(world)
    assert world.failed
    assert [job.result for job in world.jobs()] == [""]
