"""Four sweeps of two teams on one simulated cluster, with the arbiter and without it.

Each team's mean completion is set beside what it would be on half of the nodes, all for itself; the makespan beside
that of the four sweeps one after the other. A ratio below 1 is better.

python -m benchmarks.sweeps_at_once [--seeds 30] [--policy default --policy fifo --policy ahead]
"""

import argparse
import statistics
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Final

from rich.console import Console
from rich.table import Table

from controllers.core.model import TrialId
from controllers.lab.simulation.experiments.everyday import HeavyTailed
from controllers.lab.simulation.together import SharedRun, SweepOwner, simulate_together
from controllers.policies.arbiter import Arbiter
from controllers.policies.registry import parse_policy
from controllers.worlds.simulated.scenario import Costs, Scenario
from controllers.worlds.simulated.workload import Workload

SIZES: Final[Mapping[str, int]] = {"red-1": 30, "red-2": 10, "blue-1": 20, "blue-2": 20}
"""Trials of each sweep: the teams have as many, one in two unlike sweeps."""
TEAMS: Final = ("red", "blue")
NODES: Final = 4
REQUEST: Final = 4.0
"""Cores that each trial asks for, of 16 that a node has: 16 of the 80 run at a time."""
FAIR: Final = 1.1
"""A team's mean completion may be so many times what it would be on its half of the nodes."""


@dataclass(frozen=True, slots=True)
class Seed:
    """Ratios of one seed: each team's mean completion to that on half the nodes, and the makespan to one by one."""

    teams: Mapping[str, float]
    makespan: float
    gave_back: int


def main() -> None:
    """Print a table for each policy."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=30)
    parser.add_argument("--policy", action="append", choices=("default", "fifo", "ahead"))
    given = parser.parse_args()
    table = Table(title=f"Four sweeps of two teams, {given.seeds} seeds: median (worst) of ratios")
    for title in (
        "policy",
        "",
        "red / its half",
        "blue / its half",
        "beyond 1.1",
        "makespan / one by one",
        "longer",
        "gave back",
    ):
        table.add_column(title, justify="left" if title in {"policy", ""} else "right")
    for policy in given.policy or ("default", "fifo", "ahead"):
        for how, arbiter in (("arbiter", Arbiter()), ("none", None)):
            seeds = [compare(policy, seed, arbiter) for seed in range(given.seeds)]
            table.add_row(policy, how, *told(seeds))
    Console(width=140).print(table)


def compare(policy: str, seed: int, arbiter: Arbiter | None) -> Seed:
    """Return the ratios of one seed under ``policy``."""
    together = run(policy, seed, SIZES, NODES, arbiter)
    one_by_one = sum(run(policy, seed, [name], NODES, Arbiter()).makespan_s for name in SIZES)
    teams = {}
    for team in TEAMS:
        own = [name for name in SIZES if name.startswith(team)]
        alone = run(policy, seed, own, NODES // 2, Arbiter())
        teams[team] = mean_completion(together, own) / mean_completion(alone, own)
    return Seed(teams, together.makespan_s / one_by_one, together.gave_back)


def run(policy: str, seed: int, sweeps: Collection[str], nodes: int, arbiter: Arbiter | None) -> SharedRun:
    """Return the run of these sweeps, all submitted at once, on so many nodes."""
    owners = {name: SweepOwner(name.partition("-")[0]) for name in sweeps}
    scenario = Scenario(workload(seed, sweeps, nodes), Costs.argo(), seed)
    return simulate_together(scenario, parse_policy(policy), owners, arbiter)


def workload(seed: int, sweeps: Collection[str], nodes: int) -> Workload:
    """Return the trials of these sweeps: the same whichever others there are."""
    drawn = {
        name: HeavyTailed(size, usual_s=120.0, request=REQUEST, most=REQUEST, nodes=nodes).workload(seed * 10 + number)
        for number, (name, size) in enumerate(SIZES.items())
    }
    trials = [
        replace(trial, id=TrialId(f"{name}.{trial.id}"), sweep=name) for name in sweeps for trial in drawn[name].trials
    ]
    return Workload(tuple(trials), drawn[next(iter(SIZES))].nodes)


def mean_completion(shared: SharedRun, sweeps: Iterable[str]) -> float:
    """Return the mean seconds from submission to end of all trials of these sweeps."""
    trials = [trial for name in sweeps for trial in shared.results[name].trials]
    return statistics.fmean(trial.completed_s - trial.submitted_s for trial in trials)


def told(seeds: Collection[Seed]) -> list[str]:
    """Return the cells of a row."""
    teams = [[seed.teams[team] for seed in seeds] for team in TEAMS]
    makespans = [seed.makespan for seed in seeds]
    beyond = sum(max(seed.teams.values()) > FAIR for seed in seeds)
    longer = sum(makespan > 1 for makespan in makespans)
    gave = statistics.median(seed.gave_back for seed in seeds)
    ratios = [f"{statistics.median(values):.2f} ({max(values):.2f})" for values in (*teams, makespans)]
    return [*ratios[:2], f"{beyond} of {len(seeds)}", ratios[2], f"{longer} of {len(seeds)}", f"{gave:g}"]


if __name__ == "__main__":
    main()
