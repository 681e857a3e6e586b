"""Sweeps on nodes that come and go, and that are taken: what they lose, and what they cost.

    python -m benchmarks.elastic spot [--losses 200] [--policy ahead ...] [--trace FILE]
    python -m benchmarks.elastic deadline [--seeds 30] [--policy ahead ...]

``spot`` runs sweeps on spot nodes until so many were taken, for each notice and for each way to heed it. ``--trace``
names a file of https://github.com/skypilot-org/spot-traces, which says when how many nodes can be had; without one,
each node lives for a random time. ``deadline`` compares the cost by a deadline with that of nodes that are there all
the time. Each prints a table; means with their 95 % confidence interval.
"""

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from rich.console import Console
from rich.table import Table

from benchmarks.elastic.spot_losses import SpotCase, SpotRun, cases, read_trace
from benchmarks.elastic.static_allocation import LATER, NODES, Allocation, cheapest
from controllers.lab.simulation.evaluation import MeanOverSeeds, estimate
from controllers.lab.worker_pool import worker_pool

_SEEDS_AT_A_TIME: Final = 10
SPOT_POLICIES: Final = ("default", "ahead")
DEADLINE_POLICIES: Final = ("default", "ahead", "promote:rungs=best")
SWEEPS: Final = ("lengths", "best model")


def main() -> None:
    """Simulate and print a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("spot", "deadline"))
    parser.add_argument("--policy", action="append", help="instead of the usual ones; may be repeated")
    parser.add_argument("--losses", type=int, default=200, help="nodes to be taken in each case")
    parser.add_argument("--seeds", type=int, default=30, help="sweeps of each kind by a deadline")
    parser.add_argument("--trace", type=Path, help="file of the spot-traces repository")
    options = parser.parse_args()
    if options.what == "spot":
        available = () if options.trace is None else read_trace(options.trace)
        Console(width=160).print(_spot_table(cases(tuple(options.policy or SPOT_POLICIES), available), options.losses))
    else:
        Console(width=160).print(_deadline_table(options.policy or DEADLINE_POLICIES, options.seeds))


def _spot_table(every: Sequence[SpotCase], losses: int) -> Table:
    titles = ("policy", "notice, s", "heeded by", "taken", "work lost a time, s", "attempts", "makespan, s", "cost")
    table = Table(*titles, title=f"Spot nodes: at least {losses} taken in each case")
    for case in every:
        runs = _until(case, losses)
        lost = [run.lost_work_s / run.taken for run in runs if run.taken]
        table.add_row(
            case.policy,
            f"{case.notice_s:g}",
            case.heeded_by,
            str(sum(run.taken for run in runs)),
            _told(estimate(lost), 1),
            _told(estimate([float(run.attempts) for run in runs]), 1),
            _told(estimate([run.makespan_s for run in runs]), 0),
            _told(estimate([run.cost for run in runs]), 2),
        )
    return table


def _until(case: SpotCase, losses: int) -> list[SpotRun]:
    """Return the runs of so many seeds as it takes until ``losses`` nodes were taken."""
    runs: list[SpotRun] = []
    with worker_pool() as pool:
        while sum(run.taken for run in runs) < losses:
            runs += pool.map(case.run, range(len(runs), len(runs) + _SEEDS_AT_A_TIME))
            if not any(run.taken for run in runs):
                break
    return runs


def _deadline_table(policies: Sequence[str], seeds: int) -> Table:
    titles = ("sweep", "deadline", "policy", "static, cost", "come and go, cost", "change", "against default", "missed")
    table = Table(*titles, title=f"Least cost by a deadline, the best number of nodes of {NODES} in hindsight")
    for sweep in SWEEPS:
        found = {
            (policy, static): _by_seed(sweep, policy, seeds, static=static)
            for policy in dict.fromkeys(("default", *policies))
            for static in (True, False)
        }
        for later in LATER:
            ends = [later * one[NODES[-1]][0] for one in found["default", True]]
            for policy in policies:
                table.add_row(sweep, f"{later:g} x", policy, *_cells(found, policy, ends))
    return table


Found = dict[int, tuple[float, float]]
"""Makespan and cost by the number of nodes."""


def _cells(found: dict[tuple[str, bool], list[Found]], policy: str, ends: Sequence[float]) -> list[str]:
    def costs(name: str, *, static: bool) -> list[float | None]:
        return [cheapest(one, end) for one, end in zip(found[name, static], ends, strict=True)]

    static, elastic = costs(policy, static=True), costs(policy, static=False)
    default_static = costs("default", static=True)
    both = [(a, b) for a, b in zip(static, elastic, strict=True) if a is not None and b is not None]
    against = [(a, b) for a, b in zip(default_static, elastic, strict=True) if a is not None and b is not None]
    missed = f"{sum(one is None for one in static)}, {sum(one is None for one in elastic)}"
    if not both:
        return ["", "", "", "", missed]
    return [
        _told(estimate([a for a, _ in both]), 2),
        _told(estimate([b for _, b in both]), 2),
        _told(estimate([100 * (b / a - 1) for a, b in both]), 1) + " %",
        _told(estimate([100 * (b / a - 1) for a, b in against]), 1) + " %",
        missed,
    ]


def _by_seed(sweep: str, policy: str, seeds: int, *, static: bool) -> list[Found]:
    with worker_pool() as pool:
        rows = [list(pool.map(Allocation(sweep, policy, nodes, static).run, range(seeds))) for nodes in NODES]
    return [dict(zip(NODES, of_seed, strict=True)) for of_seed in zip(*rows, strict=True)]


def _told(mean: MeanOverSeeds, places: int) -> str:
    reach = "" if mean.half_width is None else f" ±{mean.half_width:.{places}f}"
    return f"{mean.mean:.{places}f}{reach}"


if __name__ == "__main__":
    main()
