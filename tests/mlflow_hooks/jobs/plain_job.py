"""A training without any framework, whose whole state is a sum; it can be told to signal itself."""

import json
import os
import signal
import sys
import time
from pathlib import Path

from mlflow_hooks import trial

STEPS = int(os.environ.get("JOB_STEPS", "30"))


class Total:
    """The sum so far."""

    value = 0

    def save(self, folder: Path) -> None:
        (folder / "total.json").write_text(json.dumps(self.value))

    def load(self, folder: Path) -> None:
        self.value = json.loads((folder / "total.json").read_text())


def signal_if(place: str) -> None:
    """Send ourselves the signals asked for at ``place``."""
    wanted, _, names = os.environ.get("JOB_SIGNAL", "").partition(":")
    for name in names.split(",") if wanted == place else []:
        os.kill(os.getpid(), signal.Signals[name])


total = Total()
with trial(checkpoint_every_s=float(os.environ.get("JOB_EVERY_S", "3600"))) as t:
    signal_if("build")
    t.track(total)
    sys.stdout.write(f"start {t.next_step}\n")
    for step in t.steps(STEPS):
        total.value += step
        t.log(loss=1 / (1 + total.value), total=total.value)
        signal_if(str(step))
        if os.environ.get("JOB_ERROR") == str(step):
            message = "the training diverged"
            raise RuntimeError(message)
        time.sleep(float(os.environ.get("JOB_SLEEP_S", "0")))
    signal_if("after")
sys.stdout.write(f"total {total.value}\n")
