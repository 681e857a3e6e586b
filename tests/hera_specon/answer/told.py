"""Sweeps that have ended, as MLflow knows them, and the last step that reads what they came to."""

import json
import os
import subprocess
import sys
import uuid
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from mlflow.tracking import MlflowClient

from hera_specon.answer import program
from mlflow_hooks import contract


@dataclass
class EndedSweep:
    """A sweep whose trials have runs on a real server; ``env`` is what its last step is told."""

    uri: str
    folder: Path
    env: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.client = MlflowClient(self.uri)
        self.name = uuid.uuid4().hex
        self.id = f"{self.name}.search"
        self.experiment = self.client.create_experiment(self.name)
        self.env = {
            "MLFLOW_TRACKING_URI": self.uri,
            "MLFLOW_EXPERIMENT_NAME": self.name,
            contract.ENV_SWEEP_ID: self.id,
            contract.ENV_OBJECTIVE: "loss",
            contract.ENV_DIRECTION: "minimize",
            contract.ENV_STATE_ROOT: "/mnt/specon",
            "SPECON_NAMES": '["lr"]',
            "SPECON_ALL_SUCCEEDED": "true",
            "SPECON_OUTPUTS": str(self.folder / "outputs"),
            **self.env,
        }

    def trial(
        self,
        number: int,
        *values: float,
        status: str = "FINISHED",
        tags: dict[str, str] | None = None,
        params: dict[str, Any] | None = None,
        experiment: str | None = None,
        metric: str = "loss",
    ) -> str:
        """Give a trial a run with the values that its objective had, and return the id of that."""
        given = {contract.TAG_SWEEP_ID: self.id, contract.TAG_TRIAL_ID: f"{self.id}.t{number:03}", **(tags or {})}
        run = self.client.create_run(experiment or self.experiment, tags=given).info.run_id
        for name, value in (params or {"lr": number / 10}).items():
            self.client.log_param(run, name, value)
        for step, value in enumerate(values):
            self.client.log_metric(run, metric, value, step=step)
        if status != "RUNNING":
            self.client.set_terminated(run, status)
        return str(run)

    def tell(self, **env: str) -> "Told":
        """Run the last step, and return what it said and wrote."""
        surely = {name: os.environ[name] for name in ("PATH", "HOME") if name in os.environ}
        # It imports nothing of ours and nothing that was installed.
        command = [sys.executable, "-I", "-S", str(program.__file__)]
        done = subprocess.run(
            command, env={**surely, **self.env, **env}, capture_output=True, text=True, check=False, timeout=120
        )
        folder = self.folder / "outputs"
        outputs = {path.name: path.read_text() for path in folder.iterdir()} if folder.exists() else {}
        return Told(done.returncode, done.stdout, done.stderr, outputs)


@dataclass(frozen=True)
class Told:
    """What the last step left."""

    code: int
    said: str
    error: str
    outputs: dict[str, str]

    def json(self, name: str) -> Any:  # noqa: ANN401 - any JSON value
        """Return an output that is JSON."""
        assert self.code == 0, self.error
        return json.loads(self.outputs[name])
