"""What a look costs at a sweep of this machine in which nothing changes, in CPU seconds, by the number of its trials.

    python -m benchmarks.looks [--trials 100,300,1000,3000] [--policy ahead] [--looks 20] [--json FILE] [--profile FILE]

A look is all that ``specon run`` does in a second: it lets its world go on five times, ticks its engine, reads MLflow,
and draws its screen. Everything is real, MLflow's server as well, but the trials: these sleep. Half of them have ended,
16 run, the others wait. CPU seconds hardly depend on whatever else the machine does. docs/reference/scale.md says what
was found.
"""

import argparse
import cProfile
import itertools
import json
import os
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Final

import psutil
from rich.console import Console
from rich.table import Table

from benchmarks.looks.parts import ALL, Meter
from benchmarks.looks.sweep import bring_to_its_middle, quiet_sweep
from controllers.core.actions import Assessment
from controllers.core.errors import SweepInterrupted
from controllers.core.model import Snapshot, TrialId
from controllers.local_run.services import RunServices, start_services
from controllers.local_run.turns import run_each
from controllers.tracking.access import be_impatient
from hera_specon.display.screens import LiveScreen

_MEMORY: Final = "memory"


class _CountingScreen(LiveScreen):
    """A terminal that notes after each tick what all parts have used, and ends the run after so many of them."""

    def __init__(self, console: Console, most: int) -> None:
        super().__init__(console)
        self._most = most
        self.read: list[dict[str, float]] = []
        self.services: RunServices | None = None
        self.meter: Meter | None = None

    def observe(
        self, snapshot: Snapshot, assessments: Mapping[TrialId, Assessment], reasons: Mapping[TrialId, str]
    ) -> None:
        """Note what was used."""
        super().observe(snapshot, assessments, reasons)
        if self.meter is not None and self.services is not None:
            self.read.append(self.meter.read())
            if len(self.read) > self._most:
                self.services.stop.set()


def measured(trials: int, policy: str, settle: int, looks: int, profile: Path | None) -> dict[str, float]:
    """Return the CPU seconds of each part per look, and the memory of this process in bytes."""
    with tempfile.TemporaryDirectory() as made, Path(os.devnull).open("w") as nowhere, ExitStack() as stack:
        sweep = quiet_sweep(Path(made), trials, policy)
        planned = sweep.order.checked()
        terminal = Console(file=nowhere, force_terminal=True, width=160, height=50)
        screen = stack.enter_context(_CountingScreen(terminal, settle + looks))
        services = start_services(sweep.order, sweep.folder, planned, screen, stack)
        if services.server is None:
            sys.exit("error: unset MLFLOW_TRACKING_URI: this benchmark fills an MLflow of its own")
        services.server.wait_ready()
        bring_to_its_middle(sweep, services.server.store)
        screen.services, screen.meter = services, Meter(services)
        profiler = cProfile.Profile() if profile is not None else None
        with screen.meter.counting() if profiler is None else profiler, suppress(SweepInterrupted):
            run_each(sweep.order, sweep.folder, services)
        if profiler is not None:
            profiler.dump_stats(str(profile))
        if len(screen.read) < settle + 2:
            sys.exit(f"error: the sweep of {trials} trials ended after {len(screen.read)} looks")
        return {**_per_look(screen.read[settle:]), _MEMORY: float(psutil.Process().memory_info().rss)}


def _per_look(read: Sequence[Mapping[str, float]]) -> dict[str, float]:
    pairs = list(itertools.pairwise(read))
    found = {name: [after.get(name, 0.0) - before.get(name, 0.0) for before, after in pairs] for name in read[-1]}
    every = {f"{ALL}, {word}": of(found[ALL]) for word, of in (("least", min), ("median", statistics.median))}
    return {**every, **{name: statistics.fmean(values) for name, values in found.items()}}


def main() -> None:
    """Measure at each size, each in a process of its own, and print a table."""
    options = _options()
    be_impatient()
    sizes = options.trials
    alone = len(sizes) == 1
    counts = options.policy, options.settle, options.looks
    found = {n: measured(n, *counts, options.profile) if alone else _apart(n) for n in sizes}
    if options.json is not None:
        text = json.dumps(found, indent=1)
        print(text) if str(options.json) == "-" else options.json.write_text(f"{text}\n")
    if str(options.json) != "-":
        Console().print(_table(found, options.policy))


def _apart(trials: int) -> dict[str, float]:
    command = [sys.executable, "-m", "benchmarks.looks", *sys.argv[1:], "--trials", str(trials), "--json", "-"]
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
    found: dict[str, float] = json.loads(done.stdout)[str(trials)]
    return found


def _table(found: Mapping[int, Mapping[str, float]], policy: str) -> Table:
    table = Table("", title=f"CPU ms of a look under {policy}; load {os.getloadavg()[0]:.1f}")
    for trials in found:
        table.add_column(f"{trials} trials", justify="right")
    for name in next(iter(found.values())):
        label, unit = (name, 1e3) if name != _MEMORY else (f"{name}, MB", 1e-6)
        table.add_row(label, *(f"{parts.get(name, 0.0) * unit:.1f}" for parts in found.values()))
    return table


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--trials",
        type=lambda text: [int(number) for number in text.split(",")],
        default=[100, 300, 1000, 3000],
        help="trials of a sweep; several sizes with commas (default: 100,300,1000,3000)",
    )
    parser.add_argument("--policy", default="ahead", help="what steers (default: ahead)")
    parser.add_argument("--looks", type=int, default=20, help="how many looks are measured (default: 20)")
    parser.add_argument(
        "--settle",
        type=int,
        default=15,
        help="looks before that, in which processes start and trials get their first shares (default: 15)",
    )
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the findings there; - for standard output")
    parser.add_argument("--profile", type=Path, metavar="FILE", help="write a profile of the loop, of one size only")
    return parser.parse_args()


if __name__ == "__main__":
    main()
