"""FlowCon 2.0, ProCon and C-Balancer beside the default scheduler, over many seeds, whatever places trials first.

``python -m benchmarks.family --seeds 30`` prints a table in Markdown for each experiment, with 95 % confidence
intervals; every figure is against the default scheduler's run of the same seed.
"""

import argparse
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import get_args

from benchmarks.experiments import markdown
from controllers.lab.simulation.evaluation import ExperimentPlan, PolicySummary, RunFigures, run_plans
from controllers.lab.simulation.experiments.experiment import Placement
from controllers.lab.simulation.experiments.published import EXPERIMENTS

POLICIES = ("default", "flowcon", "specon", "flowcon2", "procon", "cbalancer", "procon+flowcon", "procon+specon")
"""What each experiment is run under unless it is told; the first is the baseline."""
CHANGES: Mapping[str, Callable[[RunFigures], float | None]] = {
    "makespan": lambda run: run.makespan_change,
    "mean completion": lambda run: run.mean_change,
    "best trial": lambda run: run.measures["best_trial"],
    "worst trial": lambda run: run.worst_loser - 1,
    "faster": lambda run: run.faster_share,
    "variance of use": lambda run: run.measures["variance_of_use"],
}


def table(summaries: Sequence[PolicySummary]) -> str:
    """Return a Markdown table with a row for each policy but the baseline."""
    return markdown.table(("policy", *CHANGES, "moves"), [_row(one) for one in summaries if not one.baseline])


def _row(summary: PolicySummary) -> list[str]:
    cells = [
        markdown.percent(summary.over_seeds(figure), signed=title != "faster") for title, figure in CHANGES.items()
    ]
    moves = summary.over_seeds(lambda run: run.moves)
    return [f"`{summary.policy}`", *cells, "" if moves is None else f"{moves.mean:.1f}"]


def main() -> None:
    """Run the experiments that are named and print their tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("experiments", nargs="*", default=["G1", "G2", "G3", "P1", "B1"])
    parser.add_argument("--policy", action="append", help="may be given more than once; the first is the baseline")
    parser.add_argument("--placement", choices=get_args(Placement), default="requests")
    parser.add_argument("--seeds", type=int, default=30)
    parser.add_argument("--processes", type=int, default=2)
    given = parser.parse_args()
    for name in given.experiments:
        asked = EXPERIMENTS[name]
        placed = asked.under(replace(asked.assumptions, placement=given.placement))
        plan = ExperimentPlan(placed, tuple(given.policy or POLICIES))
        found = run_plans([plan], range(given.seeds), lambda _: None, given.processes)
        print(f"**{name}**: {asked.title}; {given.seeds} seeds\n\n{table(found)}", flush=True)


if __name__ == "__main__":
    main()
