"""The local world behind the bench."""

import os
import signal
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

import psutil

from controllers.core.model import NodeName
from controllers.worlds.local.attempts import Attempts, Surroundings, end_leftovers
from controllers.worlds.local.jobs import load_ledger, save_ledger
from controllers.worlds.local.processes import Launcher
from controllers.worlds.local.room import Machine
from controllers.worlds.local.shares import choose_shares
from controllers.worlds.local.workflow import read_workflow
from controllers.worlds.local.world import LocalWorld
from tests.contract.bench import Behaviour, GangBench, trial_template, workflow

_NODES = {"node-1": 0.4, "node-2": 0.4}


class LocalBench(GangBench):
    """Two slices of this machine."""

    world: LocalWorld

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._gated = False
        self._behaviours: Mapping[str, Behaviour] = {}

    @property
    def nodes(self) -> Sequence[NodeName]:
        """The two nodes."""
        return [NodeName(name) for name in _NODES]

    @property
    def state_folder(self) -> Path:
        """Folder that holds a folder for each trial."""
        return self._folder / "state"

    def submit(self, *, gated: bool = False, **behaviours: Behaviour) -> None:
        """Define a workflow of these trials and start driving it."""
        self._behaviours, self._gated = behaviours, gated
        self._build()

    def drive(self) -> bool:
        """Let the world do what is due, then give it a moment."""
        changed = self.world.advance(time.monotonic())
        save_ledger(self._ledger, self.world.ledger)
        time.sleep(0.02)
        return changed

    def kill_attempt(self, name: str) -> None:
        """SIGKILL the trial's present attempt."""
        os.kill(self.attempts(name)[-1][0], signal.SIGKILL)

    def crew(self, name: str) -> Sequence[str]:
        """Return the node of each worker of the trial's newest attempt, as the workers wrote it down."""
        return [node for _, node in self.workers(name)]

    def kill_worker(self, name: str, rank: int) -> None:
        """SIGKILL one worker of the trial's present attempt."""
        os.kill(self.workers(name)[rank][0], signal.SIGKILL)

    def workers(self, name: str) -> Sequence[tuple[int, str]]:
        """Return pid and node of each worker of the newest attempt, by rank."""
        told = [line.split() for line in self._lines(name, "workers")]
        newest = [words for words in told if words[0] == told[-1][0]]
        return [(int(pid), node) for _, _, _, pid, node in sorted(newest, key=lambda words: int(words[1]))]

    def restart_controller(self) -> None:
        """Forget everything, as a killed controller does, and begin again from what is on disk."""
        for child in psutil.Process().children():
            if "fork_server" in " ".join(child.cmdline()):
                child.kill()
        ledger = load_ledger(self._ledger)
        end_leftovers((one for job in ledger.jobs.values() if job.placed for one in job.processes), 2.0)
        self.close()
        self._build()

    def close(self) -> None:
        """End everything."""
        self._launcher.close(2.0)
        self._shares.close()

    @property
    def _ledger(self) -> Path:
        return self._folder / "ledger.json"

    def _build(self) -> None:
        program = read_workflow(workflow(self._behaviours, trial_template), "sweep", "uid", {})
        self._shares = choose_shares(f"contract-{os.getpid()}")
        self._launcher = Launcher((), grace_s=2.0, log=self._folder / "launcher.log")
        around = Surroundings(self._folder, Path.cwd(), dict(os.environ), {}, _NODES)
        attempts = Attempts(self._shares, self._launcher, around)
        machine = Machine(_NODES, 1e9, gate_first=self._gated)
        self.world = LocalWorld(program, "uid", machine, attempts, load_ledger(self._ledger))
