"""The default policy beside the default scheduler on a machine that other programs use too: the same load for both.

    python -m benchmarks.disturbed_machine [busy alternating bursts none] [--seeds 3] [--out FOLDER]

In each seed of each load the sweep runs once under either, one directly after the other, and begins with the other one
in the next seed. The load begins with the command, so both meet the same at the same second. The runs are kept in
runs.json of the folder, and a later call goes on with what is missing.

It needs a machine with nothing else on it: "others" is what ran beside the sweep, with the load.
"""

import argparse
import json
import statistics
from collections.abc import Iterable
from pathlib import Path
from typing import Final

from rich.console import Console
from rich.table import Table

from benchmarks.disturbed_machine.load import LOADS, NONE, beside
from benchmarks.foreseen import coverage
from benchmarks.payoff.on_this_machine import ThisMachine
from benchmarks.payoff.plan import Plan, tasks
from benchmarks.payoff.records import Run

_OUT: Final = Path(".specon") / "disturbed-machine"
_SWEEP: Final = Path(__file__).with_name("sweep.py")
_COLUMNS: Final = (
    *("beside", "seed", "policy", "makespan", "mean", "trials' cores", "others", "stolen", "moves"),
    *("end held", "trials held"),
)


def plan_of(load: str) -> Plan:
    """Return what is measured beside ``load``."""
    return Plan("local", {load: _SWEEP}, ("default", "ahead"), nodes=4, cores=0.4, seeds=3)


def runs_of(file: Path, loads: Iterable[str], seeds: Iterable[int]) -> list[Run]:
    """Make the runs that ``file`` lacks, and return all of them."""
    kept = [Run.from_dict(one) for one in json.loads(file.read_text(encoding="utf-8"))] if file.exists() else []
    for seed in seeds:
        for load in loads:
            plan = plan_of(load)
            for task in tasks(plan, [load], [seed], plan.policies):
                if all(run.task != task for run in kept):
                    with beside(load, seed):
                        kept.append(ThisMachine(plan, file.parent / "runs").make(task))
                    file.write_text(json.dumps([run.to_dict() for run in kept], indent=1), encoding="utf-8")
                    Console(width=140).print(table(kept))
    return kept


def table(runs: Iterable[Run]) -> Table:
    """Return a row for each run; those of ahead with the change against the default scheduler's."""
    by_task = {(run.task.sweep, run.task.seed, run.task.policy): run for run in runs}
    drawn = Table(*_COLUMNS, title="beside other programs", title_justify="left")
    for (load, seed, policy), run in sorted(by_task.items()):
        before = by_task.get((load, seed, "default"), run).result
        times = [
            changed(run.result.makespan_s, before.makespan_s),
            changed(run.result.mean_completion_s, before.mean_completion_s),
        ]
        cores = (run.delivered.nodes, run.delivered.others, run.delivered.stolen)
        moves = sum(trial.moves for trial in run.result.trials)
        told = ["" if each is None else f"{each:.2f}" for each in cores]
        drawn.add_row(load, str(seed), policy, *times, *told, str(moves), *held(run))
    return drawn


def changed(seconds: float, before: float) -> str:
    """Return a time, with its change against that of the default scheduler where it differs."""
    told = f"{seconds:.0f} s"
    return told if before in {0.0, seconds} else f"{told} {seconds / before - 1:+.1%}"


def held(run: Run) -> list[str]:
    """Return how many of the ranges that were told of the sweep's end and of the trials' held what came true."""
    parts = ((), ()) if run.foreseen is None else (run.foreseen.ends, run.foreseen.trials)
    seen = [coverage(range_ for part in of for range_ in part) for of in parts]
    return ["" if one is None else f"{one.held:.0%} of {one.told}" for one in seen]


def summary(load: str, runs: Iterable[Run]) -> str:
    """Return what the pairs beside ``load`` come to in the mean."""
    of = {(run.task.seed, run.task.policy): run.result for run in runs if run.task.sweep == load}
    pairs = [(of[seed, "ahead"], of[seed, "default"]) for seed, policy in of if policy == "default"]
    ends = statistics.fmean(ours.makespan_s / theirs.makespan_s - 1 for ours, theirs in pairs)
    means = statistics.fmean(ours.mean_completion_s / theirs.mean_completion_s - 1 for ours, theirs in pairs)
    return f"{load}: makespan {ends:+.1%}, mean completion {means:+.1%} in the mean of {len(pairs)} pairs"


def main() -> None:
    """Make the runs that are missing, and print all."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("loads", nargs="*", default=list(LOADS), help=", ".join((*LOADS, NONE)))
    parser.add_argument("--seeds", type=int, default=3, help="how many")
    parser.add_argument("--out", type=Path, default=_OUT, help="folder for runs and figures")
    given = parser.parse_args()
    if unknown := sorted(set(given.loads) - {*LOADS, NONE}):
        parser.error(f"{unknown[0]!r} is none of {', '.join((*LOADS, NONE))}")
    given.out.mkdir(parents=True, exist_ok=True)
    runs = runs_of(given.out / "runs.json", given.loads, range(1, given.seeds + 1))
    Console(width=140).print(table(runs))
    for load in given.loads:
        print(summary(load, runs))


if __name__ == "__main__":
    main()
