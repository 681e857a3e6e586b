"""An attempt that lasts longer than its template allows is ended on this machine too: it may hang."""

import os
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from controllers.core.model import Phase
from controllers.worlds.local.attempts import Attempts, Surroundings
from controllers.worlds.local.jobs import JobLedger
from controllers.worlds.local.processes import Launcher
from controllers.worlds.local.room import Machine
from controllers.worlds.local.shares import choose_shares
from controllers.worlds.local.workflow import read_workflow
from controllers.worlds.local.world import LocalWorld
from tests.contract.bench import Behaviour, trial_template, workflow

_NODES = {"node-1": 0.4}


@pytest.fixture
def world(tmp_path: Path) -> Iterator[LocalWorld]:
    """A trial that sleeps for a minute, may last a second, and gets one more attempt."""
    manifest = workflow({"a": Behaviour(retries=1)}, trial_template)
    template = manifest["spec"]["templates"][0]
    template["activeDeadlineSeconds"] = 1
    template["container"] |= {"command": ["sleep"], "args": ["60"]}
    shares = choose_shares(f"timeouts-{os.getpid()}")
    launcher = Launcher((), grace_s=2.0, log=tmp_path / "launcher.log")
    attempts = Attempts(shares, launcher, Surroundings(tmp_path, Path.cwd(), dict(os.environ), {}, _NODES))
    yield LocalWorld(read_workflow(manifest, "sweep", "uid", {}), "uid", Machine(_NODES, 1e9), attempts, JobLedger())
    launcher.close(2.0)
    shares.close()


def test_an_attempt_that_lasts_too_long_is_killed_and_counts_as_a_failure(world: LocalWorld) -> None:
    began = time.monotonic()
    while not world.finished:
        assert time.monotonic() < began + 30, "it hangs"
        world.advance(time.monotonic() - began)
        time.sleep(0.02)
    (trial,) = world.trials()
    assert (trial.phase, trial.attempt) == (Phase.FAILED, 2)
    assert 1.9 < time.monotonic() - began < 20
