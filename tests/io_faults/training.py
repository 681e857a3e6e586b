"""A training whose whole state is a sum, in this process: one attempt after the other over one state folder."""

import json
import os
import signal
from dataclasses import dataclass, field
from pathlib import Path

from mlflow_hooks import trial
from mlflow_hooks.journal import POINTS
from mlflow_hooks.points import Point

TRIAL = "s.a"
STEPS = 8


class Total:
    """The sum so far, in a file that is large enough to be cut in the middle."""

    value = 0

    def save(self, folder: Path) -> None:
        (folder / "total.json").write_text(json.dumps({"value": self.value, "weights": [self.value] * 50}))

    def load(self, folder: Path) -> None:
        kept = json.loads((folder / "total.json").read_text())
        assert kept["weights"] == [kept["value"]] * 50
        self.value = kept["value"]


@dataclass
class Attempt:
    """How an attempt went: the steps it made, the step its newest checkpoint goes on with, and what it came to."""

    code: int = 0
    began: int = 0
    saved: int = 0
    made: list[int] = field(default_factory=list)
    total: int = 0


def train(token: str, *, stop_at: int | None = None) -> Attempt:
    """Train up to ``STEPS``, asked to leave in step ``stop_at``, and keep a checkpoint after each step."""
    os.environ["SPECON_ATTEMPT"] = token
    went, total = Attempt(), Total()
    before = signal.getsignal(signal.SIGTERM)
    t = None
    try:
        with trial(checkpoint_every_s=0) as t:
            t.track(total, "total")
            went.began = t.next_step
            for step in t.steps(STEPS):
                total.value += step
                t.log(loss=float(total.value))
                went.made.append(step)
                if step == stop_at:
                    os.kill(os.getpid(), signal.SIGTERM)
    except SystemExit as left:
        went.code = int(str(left.code))
    finally:
        signal.signal(signal.SIGTERM, before)
        if t is not None:
            went.saved = t._states.saved_step
    went.total = total.value
    return went


def history(folder: Path) -> list[tuple[int, float]]:
    """Return the steps of the objective with their values, in the order in which they stand in the journal."""
    lines = (folder / POINTS).read_bytes().splitlines() if (folder / POINTS).exists() else []
    points = filter(None, map(Point.decode, lines))
    return [(point.step, point.value) for point in points if point.key == "loss"]


def logged_once(folder: Path, key: str) -> int:
    """Return how often ``key`` stands in the journal."""
    lines = (folder / POINTS).read_bytes().splitlines()
    return sum(point.key == key for point in filter(None, map(Point.decode, lines)))


def expected(steps: int) -> list[tuple[int, float]]:
    """Return the history of a training of so many steps that nothing ever disturbed."""
    return [(step, float(sum(range(step + 1)))) for step in range(steps)]
