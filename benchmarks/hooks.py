"""What the hooks cost a training whose step takes 10 ms: with MLflow up, down, and without hooks.

Run ``python -m benchmarks.hooks [--rounds 5] [--steps 500]``. Each round runs all three loops, each
in a process of its own and in turn, so that what else the machine does falls on all of them alike.
"""

import argparse
import hashlib
import os
import socket
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

STEP_S = 0.010
WARM_UP = 100
IMPORTING_S = 15.0
LOOPS = ("bare", "up", "down")


@dataclass(frozen=True)
class Timing:
    """Seconds of one loop without its first steps: on the clock, and of CPU in the whole process."""

    wall: float
    cpu: float


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--steps", type=int, default=500)
    parser.add_argument("--loop", choices=LOOPS, help=argparse.SUPPRESS)
    parser.add_argument("--work", type=int, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.loop:
        timing = _loop(given.loop, given.steps, given.work)
        print(timing.wall, timing.cpu)
        return
    with tempfile.TemporaryDirectory() as folder, _server(Path(folder)) as uri:
        _table(_measure(Path(folder), uri, given.rounds, given.steps), given.steps)


def _measure(folder: Path, uri: str, rounds: int, steps: int) -> dict[str, list[Timing]]:
    work = _calibrate()
    timings: dict[str, list[Timing]] = {loop: [] for loop in LOOPS}
    for number in range(rounds):
        for loop in LOOPS[number % 3 :] + LOOPS[: number % 3]:
            timings[loop].append(_in_process(folder / f"{loop}-{number}", uri, loop, steps, work))
    return timings


def _in_process(state: Path, uri: str, loop: str, steps: int, work: int) -> Timing:
    tracking = uri if loop == "up" else f"http://127.0.0.1:{_free_port()}"
    trial = {"SPECON_TRIAL_ID": state.name, "SPECON_STATE_ROOT": str(state.parent), "SPECON_OBJECTIVE": "loss"}
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks.hooks", "--loop", loop, "--steps", str(steps), "--work", str(work)],
        env={**os.environ, **trial, "MLFLOW_TRACKING_URI": tracking},
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        check=True,
    )
    wall, cpu = map(float, done.stdout.split())
    return Timing(wall, cpu)


def _loop(loop: str, steps: int, work: int) -> Timing:
    """Run one loop; MLflow's import and the first steps do not count."""
    total = WARM_UP + steps
    began = Timing(0.0, 0.0)
    for step in range(total) if loop == "bare" else _hooked(total):
        if step == WARM_UP:
            began = _now()
        _train(work)
        if step == total - 1:
            now = _now()
    return Timing(now.wall - began.wall, now.cpu - began.cpu)


def _hooked(total: int) -> Iterator[int]:
    from mlflow_hooks import trial  # noqa: PLC0415 - the bare loop must not pay for it

    with trial() as t:
        t.track(_Nothing())
        t.begin()
        until = time.monotonic() + IMPORTING_S
        while t.run_id is None and time.monotonic() < until:
            time.sleep(0.1)
        for step in t.steps(total):
            yield step
            t.log(loss=1 / (step + 1), accuracy=0.5)


class _Nothing:
    """A state of one small file."""

    def save(self, folder: Path) -> None:
        """Write it."""
        (folder / "state").write_bytes(bytes(100_000))

    def load(self, folder: Path) -> None:
        """Read it."""
        (folder / "state").read_bytes()


def _now() -> Timing:
    return Timing(time.perf_counter(), time.process_time())


def _train(work: int) -> str:
    """Compute for about ``STEP_S``: half in C without Python's lock as frameworks do, half in Python."""
    data = bytes(8192)
    digest = hashlib.sha256()
    for _ in range(work):
        digest.update(data)
        sum(range(700))
    return digest.hexdigest()


def _calibrate() -> int:
    best = float("inf")
    for _ in range(20):
        began = time.perf_counter()
        _train(50)
        best = min(best, time.perf_counter() - began)
    return max(1, round(50 * STEP_S / best))


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@contextmanager
def _server(folder: Path) -> Iterator[str]:
    port = _free_port()
    store = ["--backend-store-uri", f"sqlite:///{folder / 'mlflow.db'}", "--artifacts-destination", str(folder / "a")]
    server = subprocess.Popen(
        [sys.executable, "-m", "mlflow", "server", "--workers", "1", "--port", str(port), *store],
        env={**os.environ, "MLFLOW_SERVER_ENABLE_JOB_EXECUTION": "false"},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    try:
        _wait_for(f"http://127.0.0.1:{port}")
        yield f"http://127.0.0.1:{port}"
    finally:
        os.killpg(server.pid, 9)
        server.wait()


def _wait_for(uri: str) -> None:
    until = time.monotonic() + 120
    while time.monotonic() < until:
        try:
            urllib.request.urlopen(f"{uri}/health", timeout=5).close()  # noqa: S310 - our own server
        except OSError:
            time.sleep(0.2)
        else:
            return
    message = f"no MLflow server at {uri}"
    raise TimeoutError(message)


def _table(timings: dict[str, list[Timing]], steps: int) -> None:
    print(f"{'loop':6} {'wall ms/step':>13} {'wall ratio':>11} {'CPU ms/step':>12} {'CPU ratio':>10}")
    for loop, own in timings.items():
        wall = statistics.median(timing.wall for timing in own)
        cpu = statistics.median(timing.cpu for timing in own)
        pairs = list(zip(own, timings["bare"], strict=True))
        wall_ratio = statistics.median(mine.wall / bare.wall for mine, bare in pairs)
        cpu_ratio = statistics.median(mine.cpu / bare.cpu for mine, bare in pairs)
        print(f"{loop:6} {wall / steps * 1e3:13.3f} {wall_ratio:11.4f} {cpu / steps * 1e3:12.3f} {cpu_ratio:10.4f}")


if __name__ == "__main__":
    main()
