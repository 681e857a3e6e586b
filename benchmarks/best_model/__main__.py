"""How soon the best model of a sweep is known for real: ours beside the ASHA of Optuna and of Ray Tune, and everything.

    python -m benchmarks.best_model [--seeds 3] [--policy default ...]
    python -m benchmarks.best_model --table

Real training, a real MLflow, on nodes cut out of this machine; the other tools get the same configurations, as many at
a time, on as much CPU. A run takes one to four minutes and needs a quiet machine. The same command goes on with the
runs that are missing. --table prints what there is. Either way the table goes to
docs/experiments/best-model-for-real.md. Ray Tune is no dependency of ours: pip install 'ray[tune]' first.
"""

import argparse
import signal
import sys
from pathlib import Path
from typing import Final

from rich.console import Console

from benchmarks.best_model.curves import CurveFile, curves_of
from benchmarks.best_model.figures import by_policy, row
from benchmarks.best_model.in_other_tools import TOOLS, OtherTools
from benchmarks.experiments.markdown import table, with_tables
from benchmarks.payoff.__main__ import told
from benchmarks.payoff.on_this_machine import ThisMachine
from benchmarks.payoff.plan import Plan, tasks
from benchmarks.payoff.records import RunFile
from controllers.core.errors import SpeconError

FOLDER: Final = Path(".specon") / "best-model"
_EXPERIMENTS: Final = Path(__file__).parents[2] / "docs" / "experiments"
RUNS: Final = _EXPERIMENTS / "data" / "best-model-runs.json"
CURVES: Final = _EXPERIMENTS / "data" / "best-model-curves.json"
PAGE: Final = _EXPERIMENTS / "best-model-for-real.md"
SWEEP: Final = "best model"
OURS: Final = ("default", "promote+ahead", "promote:rungs=best+ahead", "promote:rungs=fast+ahead")
PLAN: Final = Plan(
    world="local",
    sweeps={SWEEP: Path(__file__).with_name("sweep.py")},
    policies=(*OURS, *TOOLS),
    nodes=4,
    cores=0.4,
    seeds=3,
)
WORKERS: Final = 8
"""Trials that run at a time."""
_COLUMNS: Final = (
    "policy", "seeds", "makespan", "change", "at equal speed", "within 1 % of the best at", "regret", "ended early",
    "CPU s",
)  # fmt: skip


def main() -> None:
    """Make the runs that are missing, and print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=PLAN.seeds)
    parser.add_argument("--policy", action="append", help="only this; may be repeated")
    parser.add_argument("--repeats", type=int, default=2, help="how often to make a disturbed run again")
    parser.add_argument("--table", action="store_true", help="make no run")
    given = parser.parse_args()
    console = Console(width=180, highlight=False)
    file, curves = RunFile(RUNS), CurveFile(CURVES)
    ours = ThisMachine(PLAN, FOLDER)
    theirs = OtherTools(PLAN.sweeps[SWEEP], WORKERS, PLAN.nodes * PLAN.cores, FOLDER)
    absent = [name for name, tool in TOOLS.items() if not tool.installed]
    for name in absent:
        console.log(f"!! {name} is left out: {TOOLS[name].package} is not installed")
    chosen = [policy for policy in given.policy or PLAN.policies if policy not in absent]
    wanted = list(tasks(PLAN, [SWEEP], range(1, 1 + given.seeds), chosen))
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("ended by SIGTERM; the same command goes on"))
    try:
        while not given.table and (missing := [task for task in wanted if not file.done(task, given.repeats)]):
            task = missing[0]
            console.log(f"seed {task.seed}, {task.policy}; {len(missing)} of {len(wanted)} runs to make")
            if task.policy in TOOLS:
                run, reported = theirs.make(task)
            else:
                run = ours.make(task)
                reported = curves_of(
                    max(FOLDER.glob(f"{SWEEP.replace(' ', '-')}-*"), key=lambda one: one.stat().st_mtime)
                )
            curves.keep(task, reported)
            file.append(run)
            console.log(told(run))
    except SpeconError as error:
        sys.exit(str(error))
    found = by_policy(file.chosen(), curves, OURS[0])
    rows = [row(policy, found[policy], against=policy != OURS[0]) for policy in PLAN.policies if policy in found]
    made = table(_COLUMNS, rows)
    console.print(made, soft_wrap=True, markup=False)
    PAGE.write_text(with_tables(PAGE.read_text("utf-8"), {"best-model": made if rows else ""}), "utf-8")


if __name__ == "__main__":
    main()
