"""What the policies pay off for real: whole sweeps under each policy, in pairs, beside what no schedule could beat.

    python -m benchmarks.payoff [--sweep demo ...] [--seeds 5] [--policy default ...] [--out FILE]
    python -m benchmarks.payoff [--gangs] [--cluster]
    python -m benchmarks.payoff --pages

Each run is real: real training and a real MLflow, on nodes cut out of this machine, or with --cluster through Argo on
the test cluster. With --gangs, trials have several workers. It takes three to six minutes here and ten there. It needs
a quiet machine: a run during which others took more than a tenth of a core is made again, and all runs stay in the
file. Stop it at any time: the same command goes on with the runs that are missing. --pages writes the tables of
docs/experiments/in-figures.md and payoff.md.
"""

import argparse
import signal
import sys
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Final, Protocol

from rich.console import Console

from benchmarks.payoff.pages import disturbed, sweep_table, write_pages
from benchmarks.payoff.plan import (
    GANGS_ON_A_CLUSTER,
    ON_A_CLUSTER,
    ON_THIS_MACHINE,
    PLANS,
    WITH_GANGS,
    Plan,
    Task,
    tasks,
)
from benchmarks.payoff.records import Run, RunFile
from controllers.core.errors import SpeconError
from hera_specon import formatting

_FOLDER: Final = Path(".specon") / "payoff"
_UNKNOWN_S: Final = {"local": 150.0, "cluster": 600.0}
"""What a run is taken to last until one was made."""


class Maker(Protocol):
    """Makes runs in one world."""

    def make(self, task: Task) -> Run:
        """Make one."""
        ...


def measure(maker: Maker, wanted: Sequence[Task], file: RunFile, most_repeats: int, console: Console) -> None:
    """Make the runs that are missing in ``file``, and those that others disturbed again, and tell of each."""
    while missing := [task for task in wanted if not file.done(task, most_repeats)]:
        task = missing[0]
        took = [run.seconds for run in file.runs if (run.task.world, run.task.sweep) == (task.world, task.sweep)]
        usual = sum(took) / len(took) if took else _UNKNOWN_S[task.world]
        left = f"{len(missing)} of {len(wanted)} runs to make, about {formatting.seconds(usual * len(missing))} left"
        console.log(f"{task.sweep}, seed {task.seed}, {task.policy}: about {formatting.seconds(usual)}; {left}")
        run = maker.make(task)
        file.append(run)
        console.log(told(run))


def told(run: Run) -> str:
    """Return a run in a line."""
    given = run.delivered
    others = "" if given.others is None else f", MLflow and controller {given.services:.2f}, others {given.others:.2f}"
    again = "; DISTURBED" if run.disturbed else ""
    return (
        f"  makespan {run.result.makespan_s:.1f} s ({run.result.makespan_s / run.makespan_bound_s:.2f} x bound), mean "
        f"{run.result.mean_completion_s:.1f} s; nodes used {given.nodes:.2f} cores{others}, {given.stolen:.2f} stolen; "
        f"probe {1000 * given.probe_s:.1f} ms"
        f"{again}"
    )


def _maker(plan: Plan, folder: Path, console: Console) -> AbstractContextManager[Maker]:
    if plan.world == "local":
        from benchmarks.payoff.on_this_machine import ThisMachine  # noqa: PLC0415 - MLflow's import takes seconds

        return nullcontext(ThisMachine(plan, folder))
    from benchmarks.payoff.on_a_cluster import test_cluster  # noqa: PLC0415 - only root can have one

    return test_cluster(plan, console.log)


def main() -> None:
    """Make the runs, and print a table for each sweep."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    names = sorted({name for plan in PLANS for name in plan.sweeps})
    parser.add_argument("--cluster", action="store_true", help="through Argo on the test cluster")
    parser.add_argument("--gangs", action="store_true", help="trials of several workers")
    parser.add_argument("--sweep", action="append", choices=names, help="only this; may be repeated")
    parser.add_argument("--seeds", type=int, help="how many  [default: as planned]")
    parser.add_argument("--policy", action="append", help="only this; may be repeated")
    parser.add_argument("--repeats", type=int, default=2, help="how often to make a disturbed run again")
    parser.add_argument("--out", type=Path, default=_FOLDER / "runs.json", help="file that keeps the runs")
    parser.add_argument("--pages", action="store_true", help="make no run; write the pages")
    given = parser.parse_args()
    console, file = Console(width=180, highlight=False), RunFile(given.out)
    if given.pages:
        write_pages(file.chosen())
        return
    if given.gangs:
        plan = GANGS_ON_A_CLUSTER if given.cluster else WITH_GANGS
    else:
        plan = ON_A_CLUSTER if given.cluster else ON_THIS_MACHINE
    sweeps = given.sweep or list(plan.sweeps)
    if unknown := [sweep for sweep in sweeps if sweep not in plan.sweeps]:
        parser.error(f"{unknown[0]!r} is not measured there; choose from {', '.join(plan.sweeps)}")
    seeds = range(1, 1 + (given.seeds or plan.seeds))
    wanted = list(tasks(plan, sweeps, seeds, given.policy or plan.policies))
    # As Ctrl-C: the run that is being made ends, and a cluster goes down.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("ended by SIGTERM; the same command goes on"))
    try:
        if any(not file.done(task, given.repeats) for task in wanted):
            with _maker(plan, given.out.parent, console) as maker:
                measure(maker, wanted, file, given.repeats, console)
    except SpeconError as error:
        sys.exit(str(error))
    chosen = file.chosen()
    for sweep in sweeps:
        console.print(f"\n**{sweep}**\n\n{sweep_table(plan, sweep, chosen)}", soft_wrap=True, markup=False)
    for line in disturbed(chosen):
        console.print(f"DISTURBED: {line}", markup=False)


if __name__ == "__main__":
    main()
