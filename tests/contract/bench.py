"""A world behind a small bench: trials are defined by how they behave, time by what is waited for."""

import os
import signal
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psutil

from controllers import labels
from controllers.model import Trial
from controllers.worlds.local.attempts import Attempts, Surroundings, kill_leftover
from controllers.worlds.local.jobs import load_ledger, save_ledger
from controllers.worlds.local.processes import Launcher
from controllers.worlds.local.shares import choose_shares
from controllers.worlds.local.workflow import read_workflow
from controllers.worlds.local.world import LocalWorld, Machine
from mlflow_hooks import contract

PROGRAM = Path(__file__).with_name("trial_program.py")


@dataclass(frozen=True)
class Behaviour:
    """What a trial of the contract suite does: how many steps, how many failures first, deaf to SIGTERM or not."""

    steps: int = 25
    failures: int = 0
    deaf: bool = False
    retries: int = 2
    cpu: str = "100m"


@dataclass
class LocalBench:
    """The local world with two nodes of 0.4 cores, driven by hand."""

    folder: Path
    behaviours: Mapping[str, Behaviour] = field(default_factory=dict)
    world: LocalWorld = field(init=False)

    def submit(self, **behaviours: Behaviour) -> None:
        """Define a workflow of these trials and start driving it."""
        self.behaviours = behaviours
        self._build()

    def trial(self, name: str) -> Trial:
        """Return the trial as the world shows it now."""
        return next(trial for trial in self.world.trials() if trial.id.endswith(name))

    def until(self, condition: Callable[[], bool], within_s: float = 60.0) -> None:
        """Drive the world until ``condition`` holds."""
        deadline = time.monotonic() + within_s
        while not (self.world.advance() is not None and condition()):
            save_ledger(self._ledger, self.world.ledger)
            assert time.monotonic() < deadline, f"waited in vain; trials: {self.world.trials()}"
            time.sleep(0.02)
        save_ledger(self._ledger, self.world.ledger)

    def until_running(self, name: str) -> None:
        """Drive until the trial has made a step in its present attempt."""
        self.until(lambda: any(t.id.endswith(name) and t.steady for t in self.world.trials()))
        made = len(self.steps(name))
        self.until(lambda: len(self.steps(name)) > made)

    def steps(self, name: str) -> list[int]:
        """Return the steps that the trial's attempts made, in order."""
        path = self._state(name) / "steps"
        return [int(line) for line in path.read_text().splitlines()] if path.exists() else []

    def attempts(self, name: str) -> list[tuple[int, str]]:
        """Return pid and node of each attempt that began."""
        path = self._state(name) / "attempts"
        lines = path.read_text().splitlines() if path.exists() else []
        return [(int(line.split()[0]), line.split()[1]) for line in lines]

    def kill_attempt(self, name: str) -> None:
        """SIGKILL the trial's present attempt."""
        os.kill(self.attempts(name)[-1][0], signal.SIGKILL)

    def restart_controller(self) -> None:
        """Forget everything, as a killed controller does, and begin again from what is on disk."""
        for child in psutil.Process().children():
            if "fork_server" in " ".join(child.cmdline()):
                child.kill()
        ledger = load_ledger(self._ledger)
        for job in ledger.jobs.values():
            if job.placed:
                kill_leftover(job.pid, self._ledger.stat().st_mtime)
        self._close()
        self._build()

    def close(self) -> None:
        """End everything."""
        self._close()

    @property
    def _ledger(self) -> Path:
        return self.folder / "ledger.json"

    def _state(self, name: str) -> Path:
        return self.folder / "state" / f"uid.sweep.{name}"

    def _close(self) -> None:
        self._launcher.close(2.0)
        self._shares.close()

    def _build(self) -> None:
        nodes = {"node-1": 0.4, "node-2": 0.4}
        program = read_workflow(workflow(self.behaviours), "sweep", "uid", {})
        self._shares = choose_shares("contract-suite")
        self._launcher = Launcher((), grace_s=2.0, log=self.folder / "launcher.log")
        around = Surroundings(self.folder, Path.cwd(), dict(os.environ), {}, nodes, {})
        attempts = Attempts(self._shares, self._launcher, around)
        machine = Machine(nodes, 1e9)
        self.world = LocalWorld(program, "uid", machine, attempts, load_ledger(self._ledger), time.monotonic)


def workflow(behaviours: Mapping[str, Behaviour]) -> dict[str, Any]:
    """Return an Argo Workflow with one step per trial."""
    templates = [template(name, behaviour) for name, behaviour in behaviours.items()]
    steps = [[{"name": name, "template": name, "continueOn": {"failed": True}} for name in behaviours]]
    return {
        "apiVersion": "argoproj.io/v1alpha1",
        "kind": "Workflow",
        "metadata": {"generateName": "sweep-"},
        "spec": {"entrypoint": "main", "templates": [*templates, {"name": "main", "steps": steps}]},
    }


def template(name: str, behaviour: Behaviour) -> dict[str, Any]:
    """Return the template of one trial."""
    expression = f"lastRetry.exitCode == '75' || asInt(retries) < {behaviour.retries}"
    args = [str(PROGRAM), str(behaviour.steps), str(behaviour.failures), str(int(behaviour.deaf))]
    return {
        "name": name,
        "metadata": {
            "labels": {labels.LABEL_SWEEP: "sweep", labels.LABEL_TRIAL: name},
            "annotations": {labels.ANNOTATION_OBJECTIVE: "loss", labels.ANNOTATION_DIRECTION: "minimize"},
        },
        "retryStrategy": {"limit": "20", "expression": expression},
        "podSpecPatch": '{"terminationGracePeriodSeconds": 2}',
        "container": {
            "image": "none",
            "command": ["python"],
            "args": args,
            "env": [{"name": contract.ENV_TRIAL_ID, "value": "{{workflow.uid}}.sweep." + name}],
            "resources": {"requests": {"cpu": behaviour.cpu, "memory": "16Mi"}},
        },
    }
