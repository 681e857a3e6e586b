"""What a change of size costs a trial: seconds without a step, beside torchrun's own elastic restart.

    python -m benchmarks.change_of_size [--rounds 3] [--json FILE]

A classifier of digits is trained by 1, then 3, then 2 workers. Ours is a real sweep of one trial on this machine, with
MLflow and the whole controller, on three nodes of 0.6 core. torchrun's agents share the whole machine. They are told
not to wait for more workers than there are (``last_call_timeout=1`` instead of 30 s), and that an agent that joins
finds the store (``TORCH_DISABLE_SHARE_RDZV_TCP_STORE=1``): with its defaults no agent can join. At the end, the same
trial trains on one worker alone, for its loss. It needs a quiet machine, and takes about four minutes a round.
"""

import argparse
import json
import os
import signal
import sqlite3
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import Final

from rich.console import Console
from rich.table import Table

from benchmarks.change_of_size import sweep
from benchmarks.change_of_size.scripted import GROWS, SHRINKS, Scripted
from benchmarks.payoff.cpu import SpeedProbe
from controllers.local_run.order import LocalSettings
from controllers.local_run.run import run_locally
from hera_specon.display.screens import PlainScreen
from tests.cluster.sweeps.ports import free_ports

_STEPS: Final = sweep.STEPS
_NODES: Final = ("node-1", "node-2", "node-3")
_PATIENCE_S: Final = 300.0
Gaps = tuple[float, float]


def ours(folder: Path, sizes: Sequence[tuple[int, tuple[str, ...]]]) -> tuple[list[float], float]:
    """Train one trial under the real controller; return when each step was logged (Unix seconds), and its last loss."""
    settings = LocalSettings(nodes=3, cpus_per_node=0.6, state_dir=folder)
    with PlainScreen(lambda line: print(line, file=sys.stderr)) as screen:
        done = run_locally(sweep.w.to_dict(), Path(sweep.__file__), [Scripted(sizes=tuple(sizes))], settings, screen)
    (trial,) = done.results[0].trials
    if not trial.succeeded or trial.scales != len(sizes) - 1 or trial.final_metric is None:
        sys.exit(f"the trial did not train as it should have: {trial}")
    with sqlite3.connect(folder / "mlflow" / "mlflow.db") as database:
        rows = database.execute(
            "SELECT m.timestamp FROM metrics m JOIN tags t ON t.run_uuid = m.run_uuid "
            "WHERE t.key = 'specon.trial_id' AND m.key = 'loss' ORDER BY m.step"
        ).fetchall()
    if len(rows) != _STEPS:
        sys.exit(f"{len(rows)} steps are in MLflow, not {_STEPS}")
    return [at / 1000 for (at,) in rows], trial.final_metric


def without_steps(moments: Sequence[float]) -> Gaps:
    """Return the two longest times between steps, in their order: nothing else takes as long as a change of size."""
    gaps = [(later - earlier, number) for number, (earlier, later) in enumerate(pairwise(moments))]
    first, second = sorted(sorted(gaps)[-2:], key=lambda gap: gap[1])
    return first[0], second[0]


def with_torchrun(folder: Path) -> Gaps:
    """Train the same under torchrun: two agents join, one of them is ended; return the times without steps."""
    (port,) = free_ports(1)
    env = os.environ | {
        "JOB_FOLDER": str(folder), "TORCH_DISABLE_SHARE_RDZV_TCP_STORE": "1", "GLOO_SOCKET_IFNAME": "lo",
        "OMP_NUM_THREADS": "1",
    }  # fmt: skip
    command = [
        sys.executable, "-m", "torch.distributed.run", "--nnodes=1:3", "--nproc-per-node=1", "--rdzv-backend=c10d",
        f"--rdzv-endpoint=127.0.0.1:{port}", "--rdzv-id=size", "--rdzv-conf=last_call_timeout=1", "--max-restarts=9",
        "--local-addr=127.0.0.1", "-m", "benchmarks.change_of_size.torchrun_job", str(_STEPS),
    ]  # fmt: skip
    agents: list[subprocess.Popen[bytes]] = []
    log = (folder / "log").open("wb")

    def join() -> None:
        agents.append(subprocess.Popen(command, env=env, stdout=log, stderr=log))

    try:
        join()
        _wait_for_step(folder, GROWS, agents)
        join()
        join()
        _wait_for_step(folder, SHRINKS, agents)
        agents[-1].send_signal(signal.SIGTERM)
        _wait_for_step(folder, _STEPS - 1, agents)
    finally:
        for agent in agents:
            agent.terminate()
        for agent in agents:
            agent.wait(60)
    last: dict[int, float] = {}
    first: dict[int, float] = {}
    for _, at, workers in _steps(folder):
        last[workers] = at
        first.setdefault(workers, at)
    if first.keys() < {1, 2, 3}:
        sys.exit(f"torchrun trained by {sorted(first)} workers, not by 1, 3 and 2; see {folder / 'log'}")
    after = next(at for _, at, workers in _steps(folder) if workers == 2 and at > last[3])  # noqa: PLR2004 - the size
    return first[3] - last[1], after - last[3]


def _wait_for_step(folder: Path, step: int, agents: Sequence["subprocess.Popen[bytes]"]) -> None:
    until = time.monotonic() + _PATIENCE_S
    while not any(done >= step for done, _, _ in _steps(folder)):
        if time.monotonic() > until or agents[0].poll() is not None:
            sys.exit(f"torchrun did not come to step {step}; see {folder / 'log'}")
        time.sleep(0.05)


def _steps(folder: Path) -> list[tuple[int, float, int]]:
    written = folder / "steps"
    lines = written.read_text().splitlines() if written.exists() else []
    words = (line.split() for line in lines)
    return [(int(step), float(at), int(workers)) for step, at, workers in words]


def main() -> None:
    """Measure and print a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--json", type=Path)
    args = parser.parse_args()
    one, three, two = (_NODES[:1], _NODES, _NODES[:2])
    changes = ((0, one), (GROWS, three), (SHRINKS, two))
    found: dict[str, list[Gaps]] = {"hera-specon": [], "torchrun": []}
    losses = []
    with SpeedProbe() as probe, tempfile.TemporaryDirectory() as name:
        for number in range(args.rounds):
            moments, loss = ours(Path(name, f"ours-{number}"), changes)
            found["hera-specon"].append(without_steps(moments))
            losses.append(loss)
            theirs = Path(name, f"torchrun-{number}")
            theirs.mkdir()
            found["torchrun"].append(with_torchrun(theirs))
        _, alone = ours(Path(name, "alone"), ((0, one),))
    table = Table("", "1 to 3 workers", "3 to 2 workers", title=f"seconds without a step, {args.rounds} rounds")
    for way, gaps in found.items():
        spread = (f"{statistics.median(g):.1f} ({min(g):.1f} to {max(g):.1f})" for g in zip(*gaps, strict=True))
        table.add_row(way, *spread)
    console = Console()
    console.print(table)
    console.print(f"last loss: {', '.join(f'{loss:.8f}' for loss in losses)}; on one worker {alone:.8f}")
    console.print(f"probe {1000 * probe.seconds:.1f} ms")
    if args.json:
        args.json.write_text(json.dumps({**found, "losses": losses, "alone": alone}, indent=1))


if __name__ == "__main__":
    main()
