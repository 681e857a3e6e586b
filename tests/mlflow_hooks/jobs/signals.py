"""What a job does to itself: it is stopped or killed at a chosen point, or it makes a mistake."""

import os
import signal


def signal_in(step: int) -> None:
    """Send ourselves what ``JOB_SIGNAL`` asks for in ``step``, as in ``3:SIGTERM``."""
    wanted, _, name = os.environ.get("JOB_SIGNAL", "").partition(":")
    if wanted == str(step):
        os.kill(os.getpid(), signal.Signals[name])


def forgotten() -> bool:
    """Return whether the job is to forget to tell its library where to go on."""
    return "JOB_FORGET" in os.environ
