"""FlowCon 2.0, ProCon and C-Balancer beside the default scheduler, over many seeds.

``python -m benchmarks.family --seeds 30`` prints a table in Markdown for each experiment, with 95 % confidence
intervals; every figure is against the default scheduler's run of the same seed.
"""

import argparse
from concurrent.futures import ProcessPoolExecutor
from dataclasses import astuple, dataclass, replace
from itertools import product
from multiprocessing import get_context
from typing import get_args

from controllers.results import RunResult
from controllers.simulated_run import SimulatedRun
from controllers.simulation.campaign import Order, simulate_seed
from controllers.simulation.experiment import Placement
from controllers.simulation.published import EXPERIMENTS
from controllers.simulation.statistics import estimate
from controllers.utilisation import utilisation_variance

POLICIES = ("default", "flowcon", "specon", "flowcon2", "procon", "cbalancer", "procon+flowcon", "procon+specon")
"""What each experiment is run under unless it is told; the first is the baseline."""
HEADINGS = ("makespan", "mean completion", "best trial", "worst trial", "faster", "variance of use", "moves")


@dataclass(frozen=True, slots=True)
class Outcome:
    """One run against the baseline of its seed; all but ``faster`` (a part) and ``moves`` are relative changes."""

    makespan: float
    mean: float
    best: float
    worst: float
    faster: float
    variance: float
    moves: float


def outcomes(experiment: str, placement: Placement, policies: tuple[str, ...], seed: int) -> tuple[Outcome, ...]:
    """Return what each policy made of one seed; ``placement`` is how the default scheduler is taken to place."""
    asked = EXPERIMENTS[experiment]
    order = Order(asked.under(replace(asked.assumptions, placement=placement)), policies)
    cores = {str(node.name): node.cpu for node in order.experiment.workload(seed).nodes}
    runs = simulate_seed(order, seed)
    variances = [utilisation_variance(run.timeline, cores) for run in runs]
    return tuple(_outcome(runs[0], run, variance / variances[0]) for run, variance in zip(runs, variances, strict=True))


def _outcome(baseline: SimulatedRun, run: SimulatedRun, variance: float) -> Outcome:
    before, after = _completions(baseline.result), _completions(run.result)
    changes = [after[name] / before[name] - 1 for name in before]
    return Outcome(
        makespan=run.result.makespan_s / baseline.result.makespan_s - 1,
        mean=run.result.mean_completion_s / baseline.result.mean_completion_s - 1,
        best=min(changes),
        worst=max(changes),
        faster=sum(change < 0 for change in changes) / len(changes),
        variance=variance - 1,
        moves=sum(trial.moves for trial in run.result.trials),
    )


def _completions(result: RunResult) -> dict[str, float]:
    return {trial.id: trial.completion_s for trial in result.trials}


def table(policies: tuple[str, ...], runs: list[tuple[Outcome, ...]]) -> str:
    """Return a Markdown table with a row for each policy but the baseline."""
    rows = [["policy", *HEADINGS], ["---"] * (1 + len(HEADINGS))]
    for place, policy in enumerate(policies[1:], start=1):
        columns = list(zip(*(astuple(run[place]) for run in runs), strict=True))
        cells = [_cell(heading, column) for heading, column in zip(HEADINGS, columns, strict=True)]
        rows.append([f"`{policy}`", *cells])
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)


def _cell(heading: str, values: tuple[float, ...]) -> str:
    found = estimate(values)
    reach = found.half_width or 0.0
    if heading == "moves":
        return f"{found.mean:.1f}"
    sign = "" if heading == "faster" else "+"
    return f"{found.mean * 100:{sign}.1f} ± {reach * 100:.1f} %"


def main() -> None:
    """Run the experiments that are named and print their tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("experiments", nargs="*", default=["G1", "G2", "G3", "P1", "B1"])
    parser.add_argument("--policy", action="append", help="may be given more than once; the first is the baseline")
    parser.add_argument("--placement", choices=get_args(Placement), default="requests")
    parser.add_argument("--seeds", type=int, default=30)
    parser.add_argument("--processes", type=int, default=2)
    given = parser.parse_args()
    policies = tuple(given.policy or POLICIES)
    with ProcessPoolExecutor(given.processes, mp_context=get_context("spawn")) as pool:
        for name in given.experiments:
            tasks = list(product((name,), (given.placement,), (policies,), range(given.seeds)))
            runs = list(pool.map(outcomes, *zip(*tasks, strict=True)))
            print(
                f"\n**{name}**: {EXPERIMENTS[name].title}; {given.seeds} seeds\n\n{table(policies, runs)}", flush=True
            )


if __name__ == "__main__":
    main()
