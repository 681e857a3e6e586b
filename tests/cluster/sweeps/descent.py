"""The trials of these tests: gradient descent on a parabola, so light that a node may run several, with a known end.

It needs nothing but Python and the hooks, and is given to the pods as a file. It says when it does what.
"""

import atexit
import json
import signal
import time

SAYS = '{"moment"'


def say(moment: str, **more: float) -> None:
    """Tell the reader of the pod's log."""
    print(json.dumps({"moment": moment, "at": time.time(), **more}), flush=True)  # noqa: T201 - for the pod's log


if __name__ == "__main__":
    say("started")

import argparse  # noqa: E402 - what the imports take is part of what is told
from pathlib import Path  # noqa: E402
from types import FrameType  # noqa: E402

from mlflow_hooks import TrialSession, trial  # noqa: E402


class Weights:
    """What the descent must not lose."""

    def __init__(self) -> None:
        self.x = 1.0

    def save(self, folder: Path) -> None:
        """Write the weights."""
        (folder / "weights.json").write_text(json.dumps(self.x))

    def load(self, folder: Path) -> None:
        """Take them back."""
        self.x = json.loads((folder / "weights.json").read_text())


def say_when_asked() -> None:
    """Tell of the request to leave before it is handed on to the hooks."""
    hooks = signal.getsignal(signal.SIGTERM)

    def asked(number: int, frame: FrameType | None) -> None:
        say("asked")
        if callable(hooks):
            hooks(number, frame)

    signal.signal(signal.SIGTERM, asked)


def work(seconds: float) -> None:
    """Use this much CPU time."""
    end = time.thread_time() + seconds
    while time.thread_time() < end:
        pass


def descend(t: TrialSession, args: argparse.Namespace) -> None:
    """Descend, slowly but with little work: waiting costs a node nothing."""
    weights = Weights()
    t.track(weights)
    say("begun", step=t.next_step)
    first = t.next_step
    for step in t.steps(args.steps):
        time.sleep(args.pause_ms / 1000)
        work(args.work_ms / 1000)
        weights.x -= args.lr * weights.x
        t.log(loss=weights.x**2)
        if step == first:
            say("stepped", step=step)


def main() -> None:
    """Be a trial."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--lr", type=float, required=True)
    parser.add_argument("--steps", type=int, required=True)
    parser.add_argument("--pause-ms", type=float, required=True)
    parser.add_argument("--work-ms", type=float, required=True)
    parser.add_argument("--deaf", choices=("yes", "no"), required=True)
    args = parser.parse_args()
    atexit.register(say, "left")
    with trial(checkpoint_every_s=2.0) as t:
        if args.deaf == "yes":
            signal.signal(signal.SIGTERM, signal.SIG_IGN)
        else:
            say_when_asked()
        descend(t, args)


if __name__ == "__main__":
    main()
