"""CPU seconds of attempts that end because their sweep is interrupted are counted, and count after a resume."""

import os
import time
from collections.abc import Callable
from pathlib import Path

from controllers.worlds.local.attempts import Attempts, Surroundings
from controllers.worlds.local.jobs import JobLedger
from controllers.worlds.local.processes import Launcher
from controllers.worlds.local.room import Machine
from controllers.worlds.local.shares import choose_shares
from controllers.worlds.local.workflow import read_workflow
from controllers.worlds.local.world import LocalWorld
from tests.contract.bench import Behaviour, trial_template, workflow

_NODES = {"node-1": 0.4}
# The first attempt burns half a second and sleeps until it is cut; the second burns a tenth and ends.
_BURN = """
import pathlib, time
mark = pathlib.Path({mark!r})
again = mark.exists()
mark.touch()
while time.process_time() < (0.1 if again else 0.5): pass
print("burnt", flush=True)
again or time.sleep(600)
"""


def test_what_an_interrupted_attempt_used_is_counted_after_the_resume(tmp_path: Path) -> None:
    log = tmp_path / "logs" / "uid.sweep.a.log"

    script = _BURN.format(mark=str(tmp_path / "mark"))

    def driven(ledger: JobLedger, until: Callable[[LocalWorld], bool]) -> LocalWorld:
        manifest = workflow({"a": Behaviour()}, trial_template)
        manifest["spec"]["templates"][0]["container"] |= {"command": ["python3"], "args": ["-c", script]}
        shares = choose_shares(f"cut-{os.getpid()}")
        launcher = Launcher((), grace_s=2.0, log=tmp_path / "launcher.log")
        around = Surroundings(tmp_path, tmp_path, dict(os.environ), {}, _NODES)
        program = read_workflow(manifest, "sweep", "uid", {})
        world = LocalWorld(program, "uid", Machine(_NODES, 1e9), Attempts(shares, launcher, around), ledger)
        began = time.monotonic()
        while not until(world):
            assert time.monotonic() < began + 60, "it hangs"
            world.advance(time.monotonic() - began)
            time.sleep(0.02)
        launcher.close(2.0)
        world.count_cut()
        shares.close()
        return world

    def burnt(_: LocalWorld) -> bool:
        return any("burnt" in one.read_text() for one in log.parent.glob("*.log"))

    cut = driven(JobLedger(), burnt)
    (job,) = cut.jobs()
    assert job.placed
    assert job.cpu_seconds >= 0.45
    resumed = driven(cut.ledger, lambda world: world.finished)
    (result,) = resumed.results({})
    assert (result.attempts, result.succeeded) == (2, True)
    assert result.cpu_seconds is not None
    assert result.cpu_seconds >= job.cpu_seconds + 0.1
