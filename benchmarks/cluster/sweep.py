"""The VAE sweep on a real cluster, under the default scheduler and under SpeCon with FlowCon.

Run ``python -m benchmarks.cluster.sweep [--policy default --policy specon:…] [--out FOLDER]``. It brings up the test
cluster with one more node for the project's own manifests, submits the sweep once under each policy from the same
initial placement, and prints the comparison, moves and resizes as counted by API server and cgroups, and the papers'
measures of whatever goals the sweep has: ``--file benchmarks/cluster/deadlines_ten.py --policy default --policy edf …``
"""

import argparse
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Final

from mlflow.tracking import MlflowClient
from rich.console import Console
from rich.table import Table

from benchmarks.cluster.installation import NAMESPACE, ROOT, TRAINING, cluster_with_controller
from benchmarks.cluster.witnesses import WeightsSeen, moves_made, resizes_served
from benchmarks.family_for_real.measures import Measured, asked_direction, asked_goals, measure
from controllers.core.errors import SpeconError
from controllers.core.goals import AskedGoals
from controllers.core.model import Direction
from hera_specon.records.tracked import sweep_runs, tracked_record, tracked_timeline
from tests.cluster import node_cgroups
from tests.cluster.installation import forwarded
from tests.cluster.kubectl import Kubectl
from tests.cluster.processes import wait_until

SWEEP: Final = Path(__file__).with_name("vae_ten.py")
POLICIES: Final = ("default", "specon:interval=10,alpha=0.05+flowcon:interval=10")
_MEASURES: Final = ("makespan", "mean", "best trial", "worst trial", "faster", "variance of use")
_OF_GOALS: Final[Mapping[str, Callable[[AskedGoals], object]]] = {
    "deadlines met": lambda asked: asked.deadline_s,
    "time to target": lambda asked: asked.target,
    "at pace, at a time": lambda asked: asked.seconds_per_step,
    "or faster, at a time": lambda asked: asked.seconds_per_step,
}
_LONGEST_S: Final = 3600
_RECORDED_S: Final = 60
_TERMINAL: Final = Console(width=140)


@dataclass(frozen=True)
class Counted:
    """One run of the sweep, and what was counted from outside."""

    policy: str
    workflow: str
    resizes_served: int
    weight_changes: int
    moves: int
    seconds: float
    cpu_seconds: float
    """Of the nodes that train: a run that had less for each second shared the machine with something else."""


def main() -> None:
    """Run, and print the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--policy", action="append", help="under which to run; the first is the baseline")
    parser.add_argument("--file", type=Path, default=SWEEP, help="sweep to submit")
    parser.add_argument("--out", type=Path, default=ROOT / ".specon" / "cluster-sweep", help="folder for the report")
    given = parser.parse_args()
    given.out.mkdir(parents=True, exist_ok=True)
    policies = given.policy or POLICIES
    with cluster_with_controller(_TERMINAL.log) as kubectl:
        runs: list[Counted] = []
        for policy in policies:
            runs.append(run_once(given.file, kubectl, policy, like=runs[0].workflow if runs else None))
            _TERMINAL.print(_table(runs))
        _TERMINAL.print(kubectl("get", "pods", "--output=wide"))
        (given.out / "counted.json").write_text(json.dumps([asdict(run) for run in runs], indent=2))
        (given.out / "controller.log").write_text(
            kubectl("logs", "--selector=app.kubernetes.io/name=specon-controller", "--tail=-1", "--prefix")
        )
        with forwarded(kubectl, "mlflow") as uri:
            client = MlflowClient(uri)
            _report([run.workflow for run in runs], given.out / "report.html", kubectl, client)
            _TERMINAL.print(_measures([run.workflow for run in runs], given.file, client))


def _measures(workflows: Sequence[str], file: Path, client: MlflowClient) -> Table:
    """Return the papers' measures of each run, those without goals and those of the goals that the sweep has."""
    goals = asked_goals(file)
    columns = [*_MEASURES, *(name for name, asks in _OF_GOALS.items() if any(map(asks, goals.values())))]
    direction = asked_direction(file)
    runs = [_measured(client, workflow, goals, direction) for workflow in workflows]
    table = Table("policy", *columns)
    for run in runs:
        told = run.told(runs[0])
        table.add_row(run.policy, *(told[column] for column in columns))
    return table


def _measured(client: MlflowClient, workflow: str, goals: Mapping[str, AskedGoals], direction: Direction) -> Measured:
    (parent,) = sweep_runs(client, workflow)
    (result,) = tracked_record(client, workflow).results()
    cores = {node.name: node.cores for node in TRAINING}
    return measure(result, tracked_timeline(client, parent), goals, cores, direction)


def _report(workflows: Sequence[str], page: Path, kubectl: Kubectl, client: MlflowClient) -> None:
    uri = client.tracking_uri
    for name in workflows:
        wait_for_record(client, name)
        _specon("status", name, *_access(kubectl), "--mlflow-tracking-uri", uri)
    _specon("report", *workflows, "--out", page, "--mlflow-tracking-uri", uri)


def wait_for_record(client: MlflowClient, workflow: str) -> None:
    """Wait until MLflow has all that the controller records of a finished workflow."""
    wait_until(partial(_is_recorded, client, workflow), f"the record of {workflow} is complete", _RECORDED_S)


def _is_recorded(client: MlflowClient, workflow: str) -> bool:
    try:
        return bool(tracked_record(client, workflow).results())
    except SpeconError:
        return False


def run_once(file: Path, kubectl: Kubectl, policy: str, *, like: str | None = None, seed: int | None = None) -> Counted:
    """Submit a sweep and wait for its end.

    Args:
        file: What to submit.
        kubectl: Speaks to the cluster.
        policy: Under which to run.
        like: A workflow from whose first placement to start.
        seed: Draws other trials, where the file heeds ``SWEEP_SEED``.
    """
    before, weights = resizes_served(kubectl), WeightsSeen()
    began, used = time.monotonic(), _cpu_seconds()
    weights.start()
    _TERMINAL.log(f"submitting {file.name} under {policy}")
    wishes = ["--policy", policy, *(["--first-nodes-of", like] if like else [])]
    drawn = {} if seed is None else {"SWEEP_SEED": str(seed)}
    created = json.loads(_specon("submit", file, *_access(kubectl), *wishes, "--json", env=drawn))
    kubectl(
        "wait",
        f"workflow/{created['name']}",
        "--for=condition=Completed",
        f"--timeout={_LONGEST_S}s",
        seconds=_LONGEST_S,
    )
    seconds, used = time.monotonic() - began, _cpu_seconds() - used
    phase = kubectl.get("workflow", created["name"])["status"]["phase"]
    _TERMINAL.log(f"{created['name']} {phase}")
    name = created["name"]
    resized, moved = resizes_served(kubectl) - before, moves_made(kubectl, name)
    return Counted(policy, name, resized, weights.changes(), moved, round(seconds, 1), round(used, 1))


def _cpu_seconds() -> float:
    return sum(node_cgroups.cpu_seconds_of(node) for node in TRAINING)


def _access(kubectl: Kubectl) -> list[str | Path]:
    return ["--kubeconfig", kubectl.kubeconfig, "--namespace", NAMESPACE]


def _specon(*arguments: str | Path, env: Mapping[str, str] | None = None) -> str:
    command = [sys.executable, "-m", "hera_specon.cli", *(str(argument) for argument in arguments)]
    whole = {**os.environ, **(env or {})}
    done = subprocess.run(command, cwd=ROOT, text=True, stdout=subprocess.PIPE, check=True, env=whole)
    _TERMINAL.print(done.stdout)
    return done.stdout


def _table(runs: list[Counted]) -> Table:
    table = Table("policy", "workflow", "resizes\nAPI server", "weights\ncgroups", "moves\npods", "cores\nused")
    for run in runs:
        counts = (run.resizes_served, run.weight_changes, run.moves)
        table.add_row(run.policy, run.workflow, *map(str, counts), f"{run.cpu_seconds / run.seconds:.2f}")
    return table


if __name__ == "__main__":
    main()
