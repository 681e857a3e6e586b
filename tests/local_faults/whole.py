"""What must be so when a sweep has ended, whatever struck it: nothing lost, nothing doubled, nothing left."""

import json
import sqlite3
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

from tests.local_faults.bench import Bench
from tests.local_faults.hash_chain_job import DOUBLED, chain, digest_after

_Row = tuple[Any, ...]


def problems(bench: Bench, database: Path) -> list[str]:
    """Return what is wrong with the sweep that ran in ``bench``; ``database`` is that of its MLflow."""
    (result,) = json.loads((bench.folder / "result.json").read_text())["runs"]
    trials = {_chain_name(trial["params"]): trial for trial in result["trials"]}
    expected = {f"{variant}-{steps}" for variant in range(bench.case.variants) for steps in bench.case.steps}
    if trials.keys() != expected:
        return [f"trials {sorted(trials)} instead of {sorted(expected)}"]
    ran = {name: _Ran(name, trial, bench.witness) for name, trial in trials.items()}
    kept = _Kept(database, _uid(bench))
    found = [problem for one in ran.values() for problem in one.problems(kept)]
    return [*found, *kept.problems(), *_best(result, ran), *_left(bench)]


@dataclass(frozen=True)
class _Ran:
    """A trial as its result and its witness tell of it."""

    name: str
    result: Mapping[str, Any]
    witness: Path

    @property
    def whole(self) -> list[float]:
        return chain(self.name, int(self.name.partition("-")[2]))

    def problems(self, kept: "_Kept") -> Iterator[str]:
        stopped, history = bool(self.result["stopped"]), kept.history(self.result["id"])
        if not self.result["succeeded"]:
            yield f"trial {self.name} did not end well: {self.result}"
            return
        if [step for step, _ in history] != list(range(len(history))):
            yield f"history of {self.name} has gaps or doubles: {[step for step, _ in history]}"
        values = [value for _, value in history]
        if values != self.whole[: len(values)] or (len(values) < len(self.whole) and not stopped):
            yield f"history of {self.name} is wrong: {len(values)} of {len(self.whole)} values, stopped: {stopped}"
        if self.result["final_metric"] != (values[-1] if values else None):
            yield f"{self.name} is said to end with {self.result['final_metric']}, and ended with {values[-1:]}"
        yield from self._seen(stopped=stopped)

    def _seen(self, *, stopped: bool) -> Iterator[str]:
        if (self.witness / f"{self.name}.{DOUBLED}").exists():
            yield f"two attempts of {self.name} trained at once"
        path = self.witness / f"{self.name}.steps"
        lines = path.read_text().splitlines() if path.exists() else []
        steps = [(pid, int(step), digest) for pid, step, digest in map(str.split, lines)]
        if not stopped and {step for _, step, _ in steps} != set(range(len(self.whole))):
            yield f"{self.name} did not make all of its steps"
        digests = {-1: ""}
        for step in range(len(self.whole)):
            digests[step] = digest_after(self.name, step, digests[step - 1])
        if wrong := [step for _, step, digest in steps if digests.get(step) != digest]:
            yield f"{self.name} made steps {wrong[:5]} from a state that was not its own"
        if gaps := [(a[1], b[1]) for a, b in pairwise(steps) if b[1] > a[1] + 1 or (a[0] == b[0] and b[1] != a[1] + 1)]:
            yield f"{self.name} went from step to step as in {gaps[:5]}"


class _Kept:
    """What MLflow's own database has of the trials and of their sweep."""

    def __init__(self, database: Path, uid: str) -> None:
        with sqlite3.connect(database) as connection:
            runs: list[_Row] = connection.execute(
                "SELECT t.value, r.run_uuid, r.status FROM runs r JOIN tags t ON t.run_uuid = r.run_uuid "
                "WHERE t.key = 'specon.trial_id' AND r.lifecycle_stage = 'active'"
            ).fetchall()
            self._points: list[_Row] = connection.execute(
                "SELECT run_uuid, step, value FROM metrics WHERE key = 'loss' ORDER BY run_uuid, step"
            ).fetchall()
            self._sweeps: list[_Row] = connection.execute(
                "SELECT r.run_uuid, r.status FROM runs r JOIN tags t ON t.run_uuid = r.run_uuid "
                "WHERE t.key = 'specon.workflow' AND t.value = ? AND r.lifecycle_stage = 'active'",
                (uid,),
            ).fetchall()
        self._runs = [(trial.removeprefix(f"{uid}."), *run) for trial, *run in runs if trial.startswith(f"{uid}.")]

    def history(self, trial: str) -> list[tuple[int, float]]:
        mine = {run for one, run, _ in self._runs if one == trial}
        return [(step, value) for run, step, value in self._points if run in mine]

    def problems(self) -> Iterator[str]:
        counts = Counter(trial for trial, _, _ in self._runs)
        yield from (f"{count} runs in MLflow of trial {trial}" for trial, count in counts.items() if count > 1)
        yield from (f"run of {trial} is {status}" for trial, _, status in self._runs if status != "FINISHED")
        if [status for _, status in self._sweeps] != ["FINISHED"]:
            yield f"the sweep's runs are {self._sweeps}"


def _best(result: Mapping[str, Any], ran: Mapping[str, _Ran]) -> Iterator[str]:
    ends = {one.result["id"]: one.result["final_metric"] for one in ran.values() if one.result["final_metric"]}
    best = min(ends, key=lambda trial: ends[trial], default=None)
    if result["best"].get("chains") != best:
        yield f"the best is said to be {result['best']}, of {ends}"


def _left(bench: Bench) -> Iterator[str]:
    yield from (f"{path} is left" for path in bench.specon.rglob("*.new"))
    yield from (f"{path} is left" for path in bench.specon.rglob(".*.[0-9]*") if path.is_file())
    for root in (Path("/sys/fs/cgroup"), *Path("/sys/fs/cgroup").glob("*/")):
        yield from (f"control group {path} is left" for path in root.glob(f"*{_uid(bench)}*"))


def _uid(bench: Bench) -> str:
    (path,) = (bench.specon / "runs").iterdir()
    about = json.loads((path / "run.json").read_text())
    return f"{about['name']}-{about['uid_suffix']}-00"


def _chain_name(params: Mapping[str, Any]) -> str:
    return f"{params['variant']}-{params['steps']}"
