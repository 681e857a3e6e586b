"""How soon the best model of a sweep is known for real: ours beside the ASHA of Optuna and of Ray Tune, and everything.

    python -m benchmarks.best_model [--setting small-nodes] [--seeds 3] [--policy default ...]
    python -m benchmarks.best_model --table

Real training, a real MLflow. In the setting ``one-machine``, three sweeps have all cores of this machine; in
``small-nodes``, one sweep has four nodes cut out of it. The other tools get the same configurations, as many at a time,
on as much CPU. A run takes one to four minutes and needs a quiet machine. The same command goes on with the runs that
are missing. --table prints what there is. Either way the tables go to docs/experiments/best-model-for-real.md. Ray Tune
is no dependency of ours: pip install 'ray[tune]' first.
"""

import argparse
import os
import signal
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from rich.console import Console

from benchmarks.best_model.curves import CurveFile, curves_of
from benchmarks.best_model.figures import BestModel, by_policy, paired, row
from benchmarks.best_model.in_other_tools import TOOLS, OtherTools
from benchmarks.experiments.markdown import table, with_tables
from benchmarks.payoff.__main__ import told
from benchmarks.payoff.on_this_machine import ThisMachine
from benchmarks.payoff.plan import Plan, tasks
from benchmarks.payoff.records import RunFile
from controllers.core.errors import SpeconError

FOLDER: Final = Path(".specon") / "best-model"
_EXPERIMENTS: Final = Path(__file__).parents[2] / "docs" / "experiments"
PAGE: Final = _EXPERIMENTS / "best-model-for-real.md"
_SWEEPS: Final = Path(__file__).with_name("sweeps")
_SMALL_NODES_OURS: Final = ("default", "promote+ahead", "promote:rungs=best+ahead", "promote:rungs=fast+ahead")
_SMALL_NODES_TOOLS: Final = (
    "Optuna's ASHA",
    "Optuna's ASHA, eta 2, first rung 16 %",
    "Ray Tune's ASHA",
    "Ray Tune's ASHA, eta 2, first rung 16 %",
)
WELL_SET: Final = ("Optuna's ASHA, eta 2, first rung 8 %", "Optuna's ASHA, eta 2, first rung 16 %")
"""On docs/experiments/promises.md, the one misses a better model about twice as often as ``finish=best``, the other
about as often."""


@dataclass(frozen=True)
class Setting:
    """What is measured: ``at_a_time`` trials train beside each other; the files ``named`` so keep runs and curves."""

    plan: Plan
    at_a_time: int
    named: str

    @property
    def runs(self) -> Path:
        """The file of the runs."""
        return _EXPERIMENTS / "data" / f"{self.named}-runs.json"

    @property
    def curves(self) -> Path:
        """The file of what their trials reported."""
        return _EXPERIMENTS / "data" / f"{self.named}-curves.json"


CORES: Final = os.cpu_count() or 1
SETTINGS: Final = {
    "one-machine": Setting(
        Plan(
            world="local",
            sweeps={name: _SWEEPS / f"{name}.py" for name in ("digits", "letters", "trees")},
            policies=("default", "promote:finish=best+ahead", "promote:finish=fast+ahead", *WELL_SET),
            nodes=1,
            cores=CORES,
            seeds=5,
        ),
        at_a_time=CORES,
        named="best-model-on-one-machine",
    ),
    "small-nodes": Setting(
        Plan(
            world="local",
            sweeps={"best model": _SWEEPS / "small_nodes.py"},
            policies=(*_SMALL_NODES_OURS, *_SMALL_NODES_TOOLS),
            nodes=4,
            cores=0.4,
            seeds=3,
        ),
        at_a_time=8,
        named="best-model",
    ),
}
_COLUMNS: Final = (
    "policy", "seeds", "makespan", "change", "at equal speed", "within 1 % of the best at", "regret", "ended early",
    "CPU s",
)  # fmt: skip
_PAIRED: Final = (
    "policy", "beside", "sweep", "pairs", "makespan", "at equal speed", "within 1 % of the best at", "regret", "missed",
)  # fmt: skip


def main() -> None:
    """Make the runs that are missing, and print the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--setting", choices=SETTINGS, default="one-machine", help="[default: one-machine]")
    parser.add_argument("--sweep", action="append", help="only this; may be repeated")
    parser.add_argument("--seeds", type=int, help="how many  [default: 5, small-nodes 3]")
    parser.add_argument("--policy", action="append", help="only this; may be repeated")
    parser.add_argument("--repeats", type=int, default=2, help="how often to make a disturbed run again")
    parser.add_argument("--table", action="store_true", help="make no run")
    given = parser.parse_args()
    console, setting = Console(width=180, highlight=False), SETTINGS[given.setting]
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("ended by SIGTERM; the same command goes on"))
    if not given.table:
        try:
            measure(setting, given, console)
        except SpeconError as error:
            sys.exit(str(error))
    made = tables()
    for name in (name for name in made if made[name] and name.startswith(given.setting)):
        console.print(f"\n**{name}**\n\n{made[name]}", soft_wrap=True, markup=False)
    PAGE.write_text(with_tables(PAGE.read_text("utf-8"), made), "utf-8")


def measure(setting: Setting, given: argparse.Namespace, console: Console) -> None:
    """Make the runs that are missing.

    Raises:
        SpeconError: a run failed.
    """
    plan, file, curves = setting.plan, RunFile(setting.runs), CurveFile(setting.curves)
    ours = ThisMachine(plan, FOLDER)
    theirs = OtherTools(plan.sweeps, setting.at_a_time, plan.nodes * plan.cores, FOLDER)
    absent = [name for name in plan.policies if name in TOOLS and not TOOLS[name].installed]
    for name in absent:
        console.log(f"!! {name} is left out: {TOOLS[name].package} is not installed")
    chosen = [policy for policy in given.policy or plan.policies if policy not in absent]
    wanted = list(tasks(plan, given.sweep or list(plan.sweeps), range(1, 1 + (given.seeds or plan.seeds)), chosen))
    while missing := [task for task in wanted if not file.done(task, given.repeats)]:
        task = missing[0]
        console.log(f"{task.sweep}, seed {task.seed}, {task.policy}; {len(missing)} of {len(wanted)} runs to make")
        if task.policy in TOOLS:
            run, reported = theirs.make(task)
        else:
            run = ours.make(task)
            folders = FOLDER.glob(f"{task.sweep.replace(' ', '-')}-{task.seed}-*")
            reported = curves_of(max(folders, key=lambda one: one.stat().st_mtime))
        curves.keep(task, reported)
        file.append(run)
        console.log(told(run))


def tables() -> dict[str, str]:
    """Return by name a table for each sweep of each setting, and one of the pairs; empty where there is no run."""
    found: dict[str, str] = {}
    for name, setting in SETTINGS.items():
        figures = figures_of(setting)
        for sweep, of_sweep in figures.items():
            rows = [row(policy, of_sweep[policy], against=policy != "default") for policy in of_sweep]
            found[f"{name}-{sweep.replace(' ', '-')}"] = table(_COLUMNS, rows) if rows else ""
        pairs = [
            [f"`{policy}`", other, sweep, *cells]
            for policy in setting.plan.policies
            if policy.startswith("promote:")
            for other in WELL_SET
            for sweep, cells in paired(figures, policy, other)
        ]
        found[f"{name}-pairs"] = table(_PAIRED, pairs) if pairs else ""
    return found


def figures_of(setting: Setting) -> dict[str, dict[str, list[BestModel]]]:
    """Return the figures by sweep and policy, policies in the order of the plan."""
    plan, runs, curves = setting.plan, RunFile(setting.runs).chosen(), CurveFile(setting.curves)
    found = {}
    for sweep in plan.sweeps:
        made = by_policy([run for run in runs if run.task.sweep == sweep], curves, plan.policies[0])
        found[sweep] = {policy: made[policy] for policy in plan.policies if policy in made}
    return found


if __name__ == "__main__":
    main()
