"""Single trials of small scripts as real processes of the local world, driven by hand."""

import os
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from pathlib import Path

from controllers.core.model import Trial
from controllers.worlds.local.attempts import Attempts, Surroundings
from controllers.worlds.local.jobs import JobLedger, LocalJob
from controllers.worlds.local.processes import Launcher
from controllers.worlds.local.room import Machine
from controllers.worlds.local.shares import Kind, choose_shares
from controllers.worlds.local.workflow import read_workflow
from controllers.worlds.local.world import LocalWorld
from tests.contract.bench import Behaviour, trial_template, workflow

NODES = {"node-1": 0.8, "node-2": 0.8}
ROOT = Path(__file__).resolve().parents[2]


class LocalTrial:
    """One trial of ``command`` in ``folder``; its controller may be built again from the ledger."""

    def __init__(self, folder: Path, stack: ExitStack) -> None:
        self.folder = folder
        self._stack = stack
        self._began = time.monotonic()
        self.world: LocalWorld
        self.launcher: Launcher

    def start(
        self,
        command: Sequence[str],
        retries: int = 0,
        grace_s: int = 20,
        kind: Kind | None = None,
        beside: Sequence[str] = (),
    ) -> "LocalTrial":
        """Start the trial, and one of the command ``beside`` if there is one; make a step of its controller."""
        commands = {name: list(words) for name, words in {"a": command, "b": beside}.items() if words}
        self._manifest = workflow({name: Behaviour(retries=retries) for name in commands}, trial_template)
        for template, words in zip(self._manifest["spec"]["templates"], commands.values(), strict=False):
            template["container"] |= {"command": words, "args": []}
            template["podSpecPatch"] = f'{{"terminationGracePeriodSeconds": {grace_s}}}'
        self._kind = kind
        self._build(JobLedger())
        return self

    def interrupt(self) -> None:
        """End the controller as Ctrl-C does, and begin again from its ledger."""
        ledger = self.world.ledger
        self.launcher.close(10.0)
        self._shares.close()
        self._build(ledger)

    def _build(self, ledger: JobLedger) -> None:
        shares = choose_shares(f"cases-{os.getpid()}") if self._kind is None else choose_shares("cases", self._kind)
        self._shares = shares
        self._stack.callback(shares.close)
        self.launcher = Launcher((), 10.0, self.folder / "launcher.log")
        self._stack.callback(self.launcher.close, 1.0)
        env = {**os.environ, "PYTHONPATH": str(ROOT), "PYTHONUNBUFFERED": "1"}
        env.pop("MLFLOW_TRACKING_URI", None)
        around = Surroundings(self.folder, self.folder, env, {}, NODES)
        program = read_workflow(self._manifest, "sweep", "uid", {})
        attempts = Attempts(shares, self.launcher, around)
        self.world = LocalWorld(program, "uid", Machine(NODES, 1e9), attempts, ledger)

    def drive(self, until: Callable[[], bool], within_s: float = 90.0) -> None:
        """Drive the world until ``until`` holds."""
        deadline = time.monotonic() + within_s
        while not until():
            assert time.monotonic() < deadline, f"waited in vain: {self.world.trials()}\n{self.said()}"
            self.world.advance(time.monotonic() - self._began)
            time.sleep(0.02)

    def said(self) -> str:
        """Return what its attempts have printed."""
        return "".join(path.read_text() for path in (self.folder / "logs").glob("*.log"))

    def lines(self, beginning: str) -> list[str]:
        """Return the rest of each line that begins so."""
        return [line.removeprefix(beginning).strip() for line in self.said().splitlines() if line.startswith(beginning)]

    def until_said(self, words: str) -> None:
        """Drive until an attempt has printed ``words``."""
        self.drive(lambda: words in self.said())

    @property
    def job(self) -> LocalJob:
        """What the world remembers of it."""
        return next(iter(self.world.jobs()))

    @property
    def trial(self) -> Trial:
        """The trial as policies see it."""
        return next(iter(self.world.trials()))
