"""How closely this machine keeps CPU shares: two busy trials on one node, in each way that works here.

python -m benchmarks.shares [--seconds 60] [--node 0.45]
"""

import argparse
import subprocess
import time
from typing import Final, get_args

from rich.console import Console
from rich.table import Table

from controllers.worlds.local.shares import Kind, Shares, SharesError, choose_shares

_NODE: Final = "node"
_WANTED: Final = {"a": 0.25, "b": 0.75}
_BUSY: Final = 'for f; do echo $$ > "$f"; done; while :; do :; done'
_SETTLE_S: Final = 1.0


def measured(shares: Shares, node_cpu: float, seconds: float) -> tuple[dict[str, float], float]:
    """Return each trial's part of what both used, and the cores their node used."""
    shares.add_node(_NODE, node_cpu)
    busy = [_start(shares, key) for key in _WANTED]
    time.sleep(_SETTLE_S)
    before, node_before, began = {key: shares.used(key) for key in _WANTED}, shares.node_used(_NODE), time.monotonic()
    time.sleep(seconds)
    used = {key: shares.used(key) - before[key] for key in _WANTED}
    cores = (shares.node_used(_NODE) - node_before) / (time.monotonic() - began)
    shares.close()
    for process in busy:
        process.wait()
    return {key: cpu / sum(used.values()) for key, cpu in used.items()}, cores


def _start(shares: Shares, key: str) -> "subprocess.Popen[bytes]":
    join = shares.add(key, _NODE, _WANTED[key])
    process = subprocess.Popen(["/bin/sh", "-c", _BUSY, "sh", *join], start_new_session=True)
    shares.adopt(key, process.pid)
    return process


def main() -> None:
    """Measure every way and print a table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--node", type=float, default=0.45, help="the node's quota in cores")
    options = parser.parse_args()
    title = f"{options.seconds:g} s on a node of {options.node:g} cores"
    table = Table("way", "trial", "wanted", "measured", "node wanted", "node measured", title=title)
    for kind in get_args(Kind):
        try:
            shares = choose_shares("benchmark", kind)
        except SharesError as error:
            table.add_row(kind, f"not here: {error}")
            continue
        parts, cores = measured(shares, options.node, options.seconds)
        for key, wanted in _WANTED.items():
            table.add_row(kind, key, f"{wanted:.1%}", f"{parts[key]:.1%}", f"{options.node:.3f}", f"{cores:.3f}")
    Console(width=110).print(table)


if __name__ == "__main__":
    main()
