"""Four sweeps of two teams on one simulated cluster, with the arbiter and without it.

Each team's mean completion is set beside what it would be on half of the nodes, all for itself; the makespan beside
that of the four sweeps one after the other. A ratio below 1 is better.

python -m benchmarks.sweeps_at_once [--seeds 30] [--policy default --policy fifo --policy ahead]
"""

import argparse
import statistics
from collections.abc import Collection, Iterable, Mapping
from concurrent.futures import as_completed
from dataclasses import dataclass, replace
from typing import Final

from rich.console import Console
from rich.progress import Progress
from rich.table import Table

from controllers.core.model import TrialId
from controllers.lab.simulation.experiments.everyday import HeavyTailed
from controllers.lab.simulation.together import SharedRun, SweepOwner, simulate_together
from controllers.lab.worker_pool import worker_pool
from controllers.policies.arbiter import Arbiter
from controllers.policies.registry import parse_policy
from controllers.worlds.simulated.scenario import Costs, Scenario
from controllers.worlds.simulated.workload import Workload

SIZES: Final[Mapping[str, int]] = {"red-1": 30, "red-2": 10, "blue-1": 20, "blue-2": 20}
"""Trials of each sweep: the teams have as many, one in two unlike sweeps."""
TEAMS: Final = ("red", "blue")
POLICIES: Final = ("default", "fifo", "ahead")
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
    parser.add_argument("--policy", action="append", choices=POLICIES)
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
    cases = [(policy, arbitrated) for policy in given.policy or POLICIES for arbitrated in (True, False)]
    with worker_pool() as pool, Progress(console=Console(stderr=True)) as progress:
        runs = [[pool.submit(compare, *case, seed) for seed in range(given.seeds)] for case in cases]
        bar = progress.add_task("sweeps at once", total=len(cases) * given.seeds)
        for run_at_once in as_completed(run_at_once for seeds in runs for run_at_once in seeds):
            run_at_once.result()
            progress.advance(bar)
    for (policy, arbitrated), seeds in zip(cases, runs, strict=True):
        table.add_row(policy, "arbiter" if arbitrated else "none", *told([seed.result() for seed in seeds]))
    Console(width=140).print(table)


def compare(policy: str, arbitrated: bool, seed: int) -> Seed:  # noqa: FBT001 - as the pool hands it over
    """Return the ratios of one seed under ``policy``."""
    together = run(policy, seed, SIZES, NODES, Arbiter() if arbitrated else None)
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
