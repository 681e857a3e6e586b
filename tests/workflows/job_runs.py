"""Run a job as a sweep would, and read back what it reported."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).parents[2]


def start(model: str, folder: Path, *arguments: str) -> subprocess.Popen[str]:
    """Start a trial whose state is in ``folder``; it knows no tracking server."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("MLFLOW_", "SPECON_"))}
    environment |= {
        "PYTHONPATH": str(ROOT),
        "SPECON_TRIAL_ID": "trial",
        "SPECON_STATE_ROOT": str(folder),
        "SPECON_CPUS": "1",
        "SPECON_OBJECTIVE": "loss",
        "TF_CPP_MIN_LOG_LEVEL": "2",
    }
    command = [sys.executable, "-m", "workflows.jobs.train", f"--model={model}", *arguments]
    return subprocess.Popen(command, cwd=folder, env=environment, stderr=subprocess.PIPE, text=True)


def run(model: str, folder: Path, *arguments: str) -> list[float]:
    """Run a trial to its end and return its curve."""
    process = start(model, folder, *arguments)
    _, errors = process.communicate(timeout=240)
    assert process.returncode == 0, errors
    return curve(folder)


def interrupt(model: str, folder: Path, *arguments: str, after_steps: int) -> int:
    """Ask a trial to leave once it has reported ``after_steps`` steps, and return its exit code."""
    process = start(model, folder, *arguments)
    try:
        while process.poll() is None and len(curve(folder)) < after_steps:
            time.sleep(0.02)
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=120)
    finally:
        process.kill()
    return process.returncode


def curve(folder: Path) -> list[float]:
    """Return the losses that the trials in ``folder`` have reported so far, in order of their steps."""
    lines = [line for file in folder.glob("*/points.jsonl") for line in file.read_text().splitlines()]
    points = [json.loads(line) for line in lines]
    losses = {int(point["step"]): float(point["value"]) for point in points if point["key"] == "loss"}
    assert list(losses) == list(range(len(losses))), "a step is missing, out of order or reported twice"
    return list(losses.values())
