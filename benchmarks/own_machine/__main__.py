"""The same trials on one's own machine by hand, in other tools and in ``specon run`` with its defaults, in pairs.

    python -m benchmarks.own_machine [--workload minutes ...] [--tool specon ...] [--rounds 5] [--beside LOAD]
    python -m benchmarks.own_machine --page

In each round, which draws other trials, every tool runs once, one after another, and another one begins. The runs are
kept in runs.json of the folder, and a later call goes on with what is missing. Stop it at any time. It needs a machine
with nothing else on it: "others" is what ran beside the command, with the load of --beside. --page makes no run, and
writes the tables of docs/experiments/own-machine.md.
"""

import argparse
import os
import signal
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Final

from rich.console import Console

from benchmarks.disturbed_machine.load import LOADS, NONE
from benchmarks.own_machine.bounds import BoundError, MemoryBound
from benchmarks.own_machine.making import make
from benchmarks.own_machine.runs import Run, RunFile, Task, tasks
from benchmarks.own_machine.tables import grouped, write_page
from benchmarks.own_machine.tools import OWN, TOOLS
from benchmarks.own_machine.workloads import SIZES, WORKLOADS
from controllers.core.errors import SpeconError

_OUT: Final = Path(".specon") / "own-machine"
_WARM: Final = Task("minutes", "small", NONE, 0, OWN)
"""What each tool runs once before anything is measured: the first time, its code is read and compiled."""


def measure(wanted: Sequence[Task], file: RunFile, folder: Path, tell: Callable[[str], None]) -> None:
    """Make the runs that ``file`` lacks, and tell of each.

    Raises:
        SpeconError: A tool does not run here at all.
    """
    missing = [task for task in wanted if not file.has(task)]
    for tool in dict.fromkeys(task.tool for task in missing if task.sizes == "full"):
        tell(f"{tool} runs a little once, which does not count")
        if not make(replace(_WARM, tool=tool), folder / "warm").complete:
            message = f"{tool} does not train four tiny trials; the newest output.txt in {folder / 'warm'} says why"
            raise SpeconError(message)
    for number, task in enumerate(missing, start=1):
        tell(f"run {number} of {len(missing)}: {task.workload}, round {task.seed}, {task.tool}, beside {task.beside}")
        run = make(task, folder / "runs")
        file.append(run)
        tell(told(run))


def told(run: Run) -> str:
    """Return a run in a line."""
    given = run.watched
    mean = "none ended" if run.mean_completion is None else f"mean {run.mean_completion:.1f} s"
    lost = "" if run.complete else f"; {len(run.ends)} OF {run.wanted} TRIALS ENDED, EXIT CODE {given.exit_code}"
    return (
        f"  {run.whole:.1f} s, {mean}; {run.cpu_s:.0f} CPU s of trials, {given.others:.2f} cores to others, "
        f"{given.stolen:.2f} stolen, probe {1000 * given.probe_s:.1f} ms; {run.killed} killed{lost}"
    )


def left_out(workloads: Sequence[str], tools: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Yield what cannot be measured here, and why."""
    for tool in tools:
        if TOOLS[tool].lacks:
            yield tool, TOOLS[tool].lacks
    bounded = [name for name in workloads if WORKLOADS[name].memory]
    if bounded:
        try:
            with MemoryBound(f"own-machine-{os.getpid()}", 10**9):
                pass
        except BoundError as error:
            yield from ((name, str(error)) for name in bounded)


def main() -> None:
    """Make the runs that are missing, and print a table for each workload."""
    given = _options()
    console, file = Console(width=160, highlight=False, log_path=False), RunFile(given.out / "runs.json")
    if given.page:
        write_page(file.runs)
        return
    workloads = given.workload or [name for name, workload in WORKLOADS.items() if not workload.spare]
    tools = given.tool or list(TOOLS)
    lacking = dict(left_out(workloads, tools))
    _tell_left_out(console, lacking)
    workloads = [name for name in workloads if name not in lacking]
    tools = [name for name in tools if name not in lacking]
    if not workloads or not tools:
        sys.exit("nothing is left to measure")
    # As Ctrl-C: the command that runs ends with all that it started.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("ended by SIGTERM; the same command goes on"))
    wanted = list(tasks(workloads, tools, given.rounds, given.sizes, given.beside))
    try:
        measure(wanted, file, given.out, lambda line: console.log(line, markup=False))
    except SpeconError as error:
        sys.exit(str(error))
    for group in grouped(run for run in file.runs if run.task in wanted):
        console.print(f"\n**{group.title}**\n\n{group.table}", soft_wrap=True, markup=False)
    _tell_left_out(console, lacking)


def _tell_left_out(console: Console, lacking: dict[str, str]) -> None:
    for name, why in lacking.items():
        console.print(f"LEFT OUT: {name}, as {why}", soft_wrap=True, markup=False)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    several = "only this; may be repeated"
    usual = ", ".join(name for name, workload in WORKLOADS.items() if not workload.spare)
    parser.add_argument("--workload", action="append", choices=WORKLOADS, help=f"{several}  [default: {usual}]")
    parser.add_argument("--tool", action="append", choices=TOOLS, help=f"{several}  [default: all that are installed]")
    parser.add_argument("--rounds", type=int, default=5, help="how many  [default: 5]")
    parser.add_argument("--beside", choices=(*LOADS, NONE), default=NONE, help="load that runs meanwhile")
    parser.add_argument("--sizes", choices=SIZES, default="full", help="small ones only try everything out")
    parser.add_argument("--out", type=Path, default=_OUT, help="folder for the runs")
    parser.add_argument("--page", action="store_true", help="make no run; write the page")
    return parser.parse_args()


if __name__ == "__main__":
    main()
