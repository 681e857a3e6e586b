"""What simulating costs as the cluster grows: CPU seconds in all, for each event and each tick of the engine.

    python -m benchmarks.simulator [--largest 1000] [--plot costs.svg] [--profile]

Ten trials come to each node over 15 minutes and learn as most do, quickly at first. One process on one core; CPU
seconds, so that what else the machine does counts little.
"""

import argparse
import cProfile
import math
import pstats
import random
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from rich.console import Console
from rich.table import Table

from benchmarks.experiments.svg import Axes, Canvas
from controllers.core.model import NodeName, TrialId
from controllers.lab.simulation.run import simulate
from controllers.policies.registry import parse_policy
from controllers.worlds.simulated.scenario import Costs, Scenario
from controllers.worlds.simulated.workload import CurvePoint, NodeSpec, Speedup, TrialSpec, Workload

_SIZES: Final = (8, 30, 100, 300, 1000)
_POLICIES: Final = ("default", "specon+flowcon")
_COLOURS: Final = ("#8a94a0", "#1f77b4")
_TRIALS_PER_NODE: Final = 10
_WINDOW_S: Final = 900.0
_REPORTS: Final = 60
_COSTS: Final = Costs(
    start_s=1.9, start_cpu_s=5.5, leave_s=0.5, next_attempt_s=5.2, retry_s=5.2, restore_s=0.1, metric_delay_s=1.0
)


@dataclass(frozen=True)
class Cost:
    """What one simulated sweep took."""

    policy: str
    nodes: int
    trials: int
    cpu_s: float
    events: int
    ticks: int
    makespan_s: float

    @property
    def ms_per_event(self) -> float:
        """CPU milliseconds for each event of the simulated world."""
        return 1000 * self.cpu_s / self.events


def workload(nodes: int, trials: int, seed: int = 0) -> Workload:
    """Return ``trials`` trials that come over a quarter of an hour to nodes of 16 cores."""
    chance = random.Random(seed)  # noqa: S311 - makes workloads
    return Workload(
        tuple(_trial(f"t{number:05d}", chance) for number in range(trials)),
        tuple(NodeSpec(NodeName(f"n{number:04d}"), 16.0) for number in range(nodes)),
    )


def measured(policy: str, nodes: int, trials: int) -> Cost:
    """Simulate one sweep and return what it took."""
    scenario = Scenario(workload(nodes, trials), _COSTS)
    began = time.process_time()
    run = simulate(scenario, parse_policy(policy))
    cpu_s = time.process_time() - began
    return Cost(policy, nodes, trials, cpu_s, run.events, run.ticks, run.result.makespan_s)


def plot(costs: Sequence[Cost], path: Path) -> None:
    """Draw CPU milliseconds for each event over the number of nodes, as SVG."""
    grown = [cost for cost in costs if cost.trials == cost.nodes * _TRIALS_PER_NODE]
    most = max(cost.ms_per_event for cost in grown)
    canvas = Canvas(480, 280)
    axes = Axes(canvas, (50, 50, 400, 175), (0, max(cost.nodes for cost in grown)), (0, most * 1.1))
    axes.draw("", "nodes, with ten trials for each", "CPU ms for each event")
    canvas.text(50, 18, "What an event costs as the cluster grows", size=13)
    for policy, colour in zip(_POLICIES, _COLOURS, strict=True):
        own = [(axes.x(cost.nodes), axes.y(cost.ms_per_event)) for cost in grown if cost.policy == policy]
        canvas.line(own, colour, 2)
        for x, y in own:
            canvas.rect(x - 3, y - 3, 6, 6, colour)
    canvas.legend(50, 38, list(zip(_POLICIES, _COLOURS, strict=True)))
    canvas.save(path)


def main() -> None:
    """Measure and print a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--largest", type=int, default=_SIZES[-1], help="nodes of the largest cluster")
    parser.add_argument("--plot", type=Path, help="SVG file for the plot")
    parser.add_argument("--profile", action="store_true", help="say where the time of the largest sweep goes")
    options = parser.parse_args()
    if options.profile:
        _profile(options.largest)
        return
    sizes = [nodes for nodes in _SIZES if nodes <= options.largest]
    shapes = [(8, 50), *((nodes, nodes * _TRIALS_PER_NODE) for nodes in sizes)]
    costs = [measured(policy, nodes, trials) for nodes, trials in shapes for policy in _POLICIES]
    Console().print(_table(costs))
    if options.plot:
        plot(costs, options.plot)


def _trial(name: str, chance: random.Random) -> TrialSpec:
    work, speed = chance.uniform(100, 600), chance.uniform(5, 25)
    reports = tuple(
        CurvePoint(work * part / _REPORTS, math.exp(-speed * part / _REPORTS) + chance.gauss(0, 0.002))
        for part in range(1, _REPORTS + 1)
    )
    return TrialSpec(TrialId(name), chance.uniform(0, _WINDOW_S), work, reports, 1.0, Speedup.linear(4.0))


def _table(costs: Sequence[Cost]) -> Table:
    table = Table("nodes", "trials", "policy", "CPU s", "events", "ticks", "ms/event", "ms/tick", "makespan s")
    for cost in costs:
        per_tick = 1000 * cost.cpu_s / cost.ticks
        table.add_row(
            str(cost.nodes), str(cost.trials), cost.policy, f"{cost.cpu_s:.2f}", str(cost.events), str(cost.ticks),
            f"{cost.ms_per_event:.2f}", f"{per_tick:.2f}", f"{cost.makespan_s:.0f}",
        )  # fmt: skip
    return table


def _profile(nodes: int) -> None:
    scenario = Scenario(workload(nodes, nodes * _TRIALS_PER_NODE), _COSTS)
    profile = cProfile.Profile()
    profile.runcall(simulate, scenario, parse_policy("specon+flowcon"))
    pstats.Stats(profile).sort_stats("cumulative").print_stats("controllers", 40)


if __name__ == "__main__":
    main()
