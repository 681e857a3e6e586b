"""A trial that fails twice alike at once is not tried again; one that fails otherwise has all its retries."""

import os
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from controllers.worlds.local.attempts import Attempts, Surroundings
from controllers.worlds.local.jobs import JobLedger
from controllers.worlds.local.processes import Launcher
from controllers.worlds.local.room import Machine
from controllers.worlds.local.shares import choose_shares
from controllers.worlds.local.workflow import read_workflow
from controllers.worlds.local.world import LocalWorld
from tests.contract.bench import Behaviour, trial_template, workflow

_NODES = {"node-1": 0.4}
Run = Callable[[str], LocalWorld]


@pytest.fixture
def run(tmp_path: Path) -> Iterator[Run]:
    """Run a trial of a shell command that may be tried four times again."""
    with ExitStack() as stack:

        def run(command: str) -> LocalWorld:
            manifest = workflow({"a": Behaviour(retries=4)}, trial_template)
            template = manifest["spec"]["templates"][0]
            template["container"] |= {"command": ["sh"], "args": ["-c", command]}
            shares = choose_shares(f"same-error-{os.getpid()}")
            stack.callback(shares.close)
            launcher = Launcher((), grace_s=2.0, log=tmp_path / "launcher.log")
            stack.callback(launcher.close, 2.0)
            around = Surroundings(tmp_path, tmp_path, dict(os.environ), {}, _NODES)
            program = read_workflow(manifest, "sweep", "uid", {})
            world = LocalWorld(program, "uid", Machine(_NODES, 1e9), Attempts(shares, launcher, around), JobLedger())
            began = time.monotonic()
            while not world.finished:
                assert time.monotonic() < began + 60, "it hangs"
                world.advance(time.monotonic() - began)
                time.sleep(0.02)
            return world

        yield run


def test_the_same_error_twice_at_once_ends_the_trial(run: Run) -> None:
    (result,) = run("echo 'ValueError: lr must be positive'; exit 1").results({})
    assert (result.succeeded, result.attempts, result.exit_code, result.given_up) == (False, 2, 1, True)


@pytest.mark.parametrize(
    "command",
    [
        pytest.param("echo attempt $$$$; exit 1", id="other words"),
        pytest.param("exit 1", id="no words"),
        pytest.param("echo killed; kill -9 $$$$", id="killed"),
    ],
)
def test_what_may_go_well_the_next_time_is_tried_as_often_as_it_may_be(run: Run, command: str) -> None:
    (result,) = run(command).results({})
    assert (result.succeeded, result.attempts, result.given_up) == (False, 5, False)
