"""The real controller against a large simulated cluster on a real API server: time of a tick, memory, what was decided.

    python -m benchmarks.controller_at_scale --nodes 1000 --trials 5000 --sweeps 50
    python -m benchmarks.controller_at_scale --nodes 20 --trials 100 --sweeps 2 --seconds 30

etcd, the API server, KWOK in place of kubelets, MLflow and ``specon controller`` run on free loopback ports and are
gone afterwards. Workflows and pods have the shape that Argo gives them; MLflow gets new points of every trial all the
time; moves are carried out: the trainer leaves with exit code 75, and its next attempt waits gated for the controller.
The controller's own metrics tell the times, /proc its memory. docs/reference/scale.md says what was found.
"""

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

from benchmarks.scale.cluster import NotRunningError
from benchmarks.scale.control_plane import ControlPlaneError
from benchmarks.scale.findings import Findings
from benchmarks.scale.measurement import measure
from benchmarks.scale.profiling import ProfilerError
from benchmarks.scale.programs import MissingProgramError
from benchmarks.scale.size import Size, SizeError
from benchmarks.scale.steering import SteeringError
from controllers.worlds.argo.calls.errors import ApiError

_ERRORS = (ApiError, ControlPlaneError, MissingProgramError, NotRunningError, ProfilerError, SizeError, SteeringError)
_MB = 1e6


def main() -> None:
    """Measure at each size and print a table."""
    options = _options()
    console = Console(stderr=True)
    try:
        findings = [_at(size, options, console) for size in _sizes(options)]
    except _ERRORS as error:
        sys.exit(f"error: {error}")
    if options.json is not None:
        text = json.dumps([found.to_dict() for found in findings], indent=1)
        print(text) if str(options.json) == "-" else options.json.write_text(f"{text}\n")
    if str(options.json) != "-":
        Console().print(table(findings))


def _at(size: Size, options: argparse.Namespace, console: Console) -> Findings:
    columns = (TextColumn("{task.description:12}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    console.print(f"{size.nodes} nodes, {size.trials} trials, {size.sweeps} sweeps")
    with Progress(*columns, console=console) as progress:
        return measure(size, progress, options.profile, options.logs)


def table(findings: Sequence[Findings]) -> Table:
    """Return the findings for people: one column for each size."""
    shown = Table("specon controller", title="per look at one sweep (a tick)")
    for found in findings:
        shown.add_column(f"{found.size.trials} trials", justify="right")
    for cells in zip(*(_lines(found) for found in findings), strict=True):
        shown.add_row(cells[0][0], *(value for _, value in cells))
    return shown


def _lines(found: Findings) -> list[tuple[str, str]]:
    return [
        ("nodes", str(found.size.nodes)),
        ("sweeps", str(found.size.sweeps)),
        ("seconds until all were looked at once", f"{found.start:.0f}"),
        ("ticks", str(found.ticks)),
        ("half of them within s", f"{found.tick_p50:.3f}"),
        ("95 % of them within s", f"{found.tick_p95:.3f}"),
        ("longest mean over a second, s", f"{found.tick_most:.3f}"),
        ("under a second", f"{found.tick_under:.1%}"),
        ("CPU time for each, looks in between included, s", f"{found.tick_cpu:.3f}"),
        ("memory (RSS), MB", f"{found.memory / _MB:.0f}"),
        ("memory at most, MB", f"{found.memory_most / _MB:.0f}"),
        ("cores used", f"{found.cores:.2f}"),
        ("its ticking thread waited for a core", f"{found.kept_waiting:.0%}"),
        ("resizes done", str(found.actions.get("resize/done", 0))),
        ("moves begun", str(found.actions.get("migrate/done", 0))),
        ("moves completed, and told of in Events", f"{found.moves_completed}, {found.moves_told}"),
        ("points logged meanwhile", str(found.points)),
        ("load of the machine", f"{found.load.machine:.1f}"),
    ]


def _sizes(options: argparse.Namespace) -> list[Size]:
    return [
        Size(
            nodes=options.nodes,
            trials=trials,
            sweeps=options.sweeps,
            seconds=options.seconds,
            report_every=options.report_every,
            policy=options.policy,
            priority=options.priority,
        )
        for trials in options.trials
    ]


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--nodes", type=int, default=1000, help="nodes of one core each (default: 1000)")
    parser.add_argument(
        "--trials",
        type=_numbers,
        default=[5000],
        help="live trials over all sweeps; several with commas (default: 5000)",
    )
    parser.add_argument("--sweeps", type=int, default=50, help="workflows with one sweep each (default: 50)")
    parser.add_argument("--seconds", type=float, default=90.0, help="how long to look on (default: 90)")
    parser.add_argument(
        "--report-every", type=float, default=30.0, help="seconds between two points of a trial (default: 30)"
    )
    parser.add_argument("--policy", default="specon+flowcon", help="what steers (default: specon+flowcon)")
    parser.add_argument(
        "--priority",
        type=int,
        metavar="NICE",
        help="niceness of the controller's process, such as -10 where others keep the machine busy (needs root)",
    )
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the findings there; - for standard output")
    parser.add_argument("--profile", type=Path, metavar="FILE", help="write a profile of the controller (needs py-spy)")
    parser.add_argument("--logs", type=Path, metavar="FOLDER", help="keep the logs of all parts there")
    return parser.parse_args()


def _numbers(text: str) -> list[int]:
    return [int(number) for number in text.split(",")]


if __name__ == "__main__":
    main()
