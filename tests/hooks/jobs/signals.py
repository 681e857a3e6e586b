"""How a job asks to be stopped or killed at a chosen point of its own training."""

import os
import signal


def signal_in(step: int) -> None:
    """Send ourselves what ``JOB_SIGNAL`` asks for in ``step``, as in ``3:SIGTERM``."""
    wanted, _, name = os.environ.get("JOB_SIGNAL", "").partition(":")
    if wanted == str(step):
        os.kill(os.getpid(), signal.Signals[name])
