"""A training that takes SIGTERM over, and does with it what ``JOB_HANDLER`` says."""

import json
import os
import signal
import sys
from pathlib import Path
from types import FrameType

from mlflow_hooks import trial
from tests.mlflow_hooks.jobs.signals import signal_in

STEPS = 20
HANDLER = os.environ["JOB_HANDLER"]
EXITS = {"raise-system-exit": None, "exit-0": 0, "exit-1": 1, "exit-75": 75, "exit-143": 143}
asked: list[int] = []


class Total:
    """The sum so far."""

    value = 0

    def save(self, folder: Path) -> None:
        (folder / "total.json").write_text(json.dumps(self.value))

    def load(self, folder: Path) -> None:
        self.value = json.loads((folder / "total.json").read_text())


def handle(number: int, _frame: FrameType | None) -> None:
    """Take note, and end the process where that is what is tried."""
    asked.append(number)
    if HANDLER in EXITS:
        raise SystemExit(EXITS[HANDLER])
    if HANDLER == "fail":
        message = "a data loader is gone"
        raise RuntimeError(message)


total = Total()
with trial(checkpoint_every_s=0) as t:
    t.track(total)
    signal.signal(signal.SIGTERM, handle)
    sys.stdout.write(f"start {t.next_step}\n")
    for step in t.steps(STEPS):
        if asked and HANDLER == "leave-the-loop":
            break
        total.value += step
        t.log(loss=1 / (1 + total.value))
        signal_in(step)
    if HANDLER == "exit-0-at-the-end":
        sys.exit(0)
sys.stdout.write(f"total {total.value}\n")
