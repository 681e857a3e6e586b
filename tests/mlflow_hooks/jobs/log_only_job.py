"""A training that the hooks know nothing of but its metrics, under a handler that exits as if all were well."""

import os
import signal
import sys
from types import FrameType

from mlflow_hooks import trial
from tests.mlflow_hooks.jobs.signals import signal_in


def handle(_number: int, _frame: FrameType | None) -> None:
    """Exit where that is what is tried."""
    if os.environ.get("JOB_HANDLER") == "exit-0":
        sys.exit(0)


with trial() as t:
    signal.signal(signal.SIGTERM, handle)
    for step in range(10):
        t.log(loss=1 / (1 + step), step=step)
        signal_in(step)
