"""What a gang loses when its workers are apart: seconds of a minibatch, and bytes that cross the network.

    python -m benchmarks.locality [--steps 30] [--json FILE]

Two workers train the classifier of ``workflows.jobs.pytorch.elastic``, each on a core of its own: first on one node,
where they talk over the loopback, then in two network namespaces with a link of a given bandwidth between them. Beside
each time stands what the simulator takes it for, with bandwidths of its own (``Network``) or of the link. It takes
one minute, and needs root for the namespaces, two cores, and a quiet machine.
"""

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
import uuid
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from itertools import pairwise
from pathlib import Path
from statistics import median
from typing import Final

import torch
from rich.console import Console
from rich.table import Table

from benchmarks.payoff.cpu import SpeedProbe
from controllers.worlds.simulated.gangs import gang_speed
from controllers.worlds.simulated.workload import Network, WorkerExchange
from workflows.jobs.pytorch.elastic import DEFAULTS, DigitLayers

LINKS: Final = {"1 Gbit/s": 1e9, "200 Mbit/s": 2e8, "50 Mbit/s": 5e7}
"""Bits a second of each link."""
_IP: Final = shutil.which("ip") or "/usr/sbin/ip"
_TC: Final = shutil.which("tc") or "/usr/sbin/tc"
_ADDRESSES: Final = ("10.231.7.1", "10.231.7.2")
_WARM: Final = 3
"""Steps at the beginning that do not count."""
_PATIENCE_S: Final = 600.0


@dataclass(frozen=True, slots=True)
class Pace:
    """Seconds of a minibatch (median over steps), and the bytes that each minibatch sent over the link, one way."""

    seconds: float
    sent: float = 0.0


def trained(steps: int, places: Sequence[str]) -> float:
    """Train with a worker in each of ``places``, a namespace or empty for none; return the seconds of a minibatch."""
    plain = {name: value for name, value in os.environ.items() if not name.startswith(("MLFLOW_", "SPECON_"))}
    token = uuid.uuid4().hex
    with tempfile.TemporaryDirectory() as folder:
        plain |= {
            "SPECON_TRIAL_ID": "pair", "SPECON_STATE_ROOT": folder, "SPECON_OBJECTIVE": "loss", "SPECON_CPUS": "1",
            "SPECON_ATTEMPT": token, "OMP_NUM_THREADS": "1",
        }  # fmt: skip
        workers = []
        for rank, place in enumerate(places):
            env = plain | {"RANK": str(rank), "WORLD_SIZE": str(len(places)), "SPECON_WORKERS_MAX": str(len(places))}
            env |= {"SPECON_POD_IP": _ADDRESSES[rank]} if place else {}
            inside = [_IP, "netns", "exec", place] if place else []
            job = [sys.executable, "-m", "workflows.jobs.train", "--model=elastic-pytorch", f"--steps={steps}"]
            workers.append(subprocess.Popen([*inside, "taskset", "-c", str(rank), *job], env=env))
        until = time.monotonic() + _PATIENCE_S
        codes = [worker.wait(max(1.0, until - time.monotonic())) for worker in workers]
        if any(codes):
            sys.exit(f"the workers ended with {codes}")
        lines = Path(folder, "pair", "points.jsonl").read_text().splitlines()
        points = [point for line in lines if (point := json.loads(line))["key"] == "loss"]
        apart = [(b["timestamp"] - a["timestamp"]) / 1000 for a, b in pairwise(points)]
        return float(median(apart[_WARM:])) / DEFAULTS.work


@contextmanager
def linked(bits: float) -> Iterator[tuple[str, str]]:
    """Yield two network namespaces with a link of ``bits`` a second between them."""
    names = tuple(f"specon-{os.getpid()}-{side}" for side in "ab")
    ends = ("specon-a", "specon-b")

    def ip(*words: str) -> None:
        subprocess.run([_IP, *words], check=True)

    try:
        for name in names:
            ip("netns", "add", name)
        ip("link", "add", ends[0], "netns", names[0], "type", "veth", "peer", "name", ends[1], "netns", names[1])
        for name, end, address in zip(names, ends, _ADDRESSES, strict=True):
            ip("-n", name, "addr", "add", f"{address}/24", "dev", end)
            ip("-n", name, "link", "set", "lo", "up")
            ip("-n", name, "link", "set", end, "up")
            shape = ["tbf", "rate", f"{bits:.0f}bit", "burst", "256kb", "latency", "100ms"]
            subprocess.run([_TC, "-n", name, "qdisc", "add", "dev", end, "root", *shape], check=True)
        yield names[0], names[1]
    finally:
        for name in names:
            subprocess.run([_IP, "netns", "delete", name], check=False, stderr=subprocess.DEVNULL)


def sent_from(name: str) -> int:
    """Return the bytes that have left a namespace by its link."""
    told = subprocess.run(
        [_IP, "-n", name, "-s", "-j", "link", "show", "specon-a"], check=True, capture_output=True, text=True
    )
    (link,) = json.loads(told.stdout)
    return int(link["stats64"]["tx"]["bytes"])


def measured(steps: int) -> dict[str, Pace]:
    """Return the pace on one core, on one node, and over each link."""
    found = {"one worker": Pace(trained(steps, [""])), "one node": Pace(trained(steps, ["", ""]))}
    for link, bits in LINKS.items():
        with linked(bits) as (first, second):
            seconds = trained(steps, [first, second])
            found[link] = Pace(seconds, sent_from(first) / (steps * DEFAULTS.work))
    return found


def expected(alone_s: float, bandwidth: float) -> float:
    """Return what the simulator takes a minibatch of two workers for, with ``bandwidth`` bytes a second."""
    size = sum(parameter.numel() * parameter.element_size() for parameter in DigitLayers(DEFAULTS.hidden).parameters())
    return alone_s / gang_speed(WorkerExchange(alone_s, float(size)), (1.0, 1.0), bandwidth, Network().call_s).rate


def main() -> None:
    """Measure and print a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=int, default=30)
    parser.add_argument("--json", type=Path)
    args = parser.parse_args()
    torch.set_num_threads(1)
    with SpeedProbe() as probe:
        found = measured(args.steps)
    alone = found["one worker"].seconds
    bandwidths = {"one node": Network().node} | {link: bits / 8 for link, bits in LINKS.items()}
    table = Table("workers", "ms a minibatch", "speed-up", "the simulator's ms", "kB sent a minibatch, one way")
    for where, pace in found.items():
        simulated = f"{1000 * expected(alone, bandwidths[where]):.1f}" if where in bandwidths else ""
        row = f"{1000 * pace.seconds:.1f}", f"{alone / pace.seconds:.2f}", simulated, f"{pace.sent / 1000:.0f}"
        table.add_row(where if where not in LINKS else f"two nodes, {where}", *row)
    console = Console()
    console.print(table)
    console.print(f"probe {1000 * probe.seconds:.1f} ms")
    if args.json:
        args.json.write_text(json.dumps({where: asdict(pace) for where, pace in found.items()}, indent=1))


if __name__ == "__main__":
    main()
