"""Programs of a shell whose printed metrics are read, as the processes that they are in a pod."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from mlflow_hooks.points import Point
from mlflow_hooks.printed.command import read_by
from mlflow_hooks.printed.form import PrintedForm

LOSS = PrintedForm(patterns=(r"epoch (?P<step>\d+): loss=(?P<loss>\S+)",))
COUNTED = PrintedForm(patterns=(r"loss=(?P<loss>\S+)",))


@dataclass
class Readings:
    """Attempts of the trial ``s.a``, whose folder is in ``root``."""

    root: Path
    variables: dict[str, str] = field(default_factory=dict)
    started: list["subprocess.Popen[str]"] = field(default_factory=list)

    def start(
        self, script: str, form: PrintedForm = LOSS, attempt: str = "1", *, python: Sequence[str] = (sys.executable,)
    ) -> "subprocess.Popen[str]":
        """Start ``script`` of a shell as the first process of a group, as Argo does."""
        env = {name: value for name, value in os.environ.items() if not name.startswith(("SPECON_", "MLFLOW_"))}
        env |= {
            "SPECON_STATE_ROOT": str(self.root),
            "SPECON_TRIAL_ID": "s.a",
            "SPECON_ATTEMPT": attempt,
            "SPECON_OBJECTIVE": "loss",
            "SPECON_DIRECTION": "minimize",
            "SPECON_PRINTED": form.encode(),
            **self.variables,
        }
        process = subprocess.Popen(
            read_by(python, ["sh", "-c", script]),
            env=env,
            cwd=self.root,
            text=True,
            errors="replace",
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
        )
        self.started.append(process)
        return process

    def run(self, script: str, form: PrintedForm = LOSS, attempt: str = "1") -> "ReadEnd":
        """Run ``script`` to its end."""
        process = self.start(script, form, attempt)
        out, err = process.communicate(timeout=120)
        return ReadEnd(process.returncode, out, err)

    def ask(self, process: "subprocess.Popen[str]") -> "ReadEnd":
        """Send SIGTERM to the group of a program, as Argo does, and wait for its end."""
        os.killpg(process.pid, signal.SIGTERM)
        out, err = process.communicate(timeout=60)
        return ReadEnd(process.returncode, out, err)

    def points(self, key: str = "loss") -> Mapping[int, float]:
        """Return what is journalled of a metric, by step; no step is there twice."""
        path = self.root / "s.a" / "points.jsonl"
        lines = path.read_bytes().splitlines() if path.exists() else []
        points = [point for point in map(Point.decode, lines) if point is not None and point.key == key]
        assert len({point.step for point in points}) == len(points), "a step is there twice"
        return {point.step: point.value for point in points}

    def wait_for(self, condition: Callable[[], object]) -> None:
        """Wait until ``condition`` holds."""
        until = time.monotonic() + 60
        while not condition():
            assert time.monotonic() < until, "waited in vain"
            time.sleep(0.05)


@dataclass(frozen=True)
class ReadEnd:
    """How a program ended, and what came through of what it printed."""

    code: int
    out: str
    err: str


def readings_in(root: Path) -> Iterator[Readings]:
    """Give a folder for attempts, and end what is left of them."""
    root.mkdir()
    made = Readings(root)
    yield made
    for process in made.started:
        if process.poll() is None:
            process.kill()
        process.communicate()
