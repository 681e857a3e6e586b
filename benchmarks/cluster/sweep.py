"""The VAE sweep on a real cluster, under the default scheduler and under SpeCon with FlowCon.

Run ``python -m benchmarks.cluster.sweep [--policy default --policy specon:…] [--out FOLDER]``. It brings up the test
cluster with one more node for the project's own manifests, submits the sweep once under each policy from the same
initial placement, and prints the comparison, and moves and resizes as counted by API server and cgroups.
"""

import argparse
import json
import subprocess
import sys
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final

from rich.console import Console
from rich.table import Table

from benchmarks.cluster.installation import NAMESPACE, ROOT, forwarded, installed
from benchmarks.cluster.witnesses import WeightsSeen, moves_made, resizes_served
from tests.cluster.kubectl import Kubectl

SWEEP: Final = Path(__file__).with_name("vae_ten.py")
POLICIES: Final = ("default", "specon:interval=10,alpha=0.05+flowcon:interval=10")
_LONGEST_S: Final = 3600
_TERMINAL: Final = Console()


@dataclass(frozen=True)
class Counted:
    """One run of the sweep, and what was counted from outside."""

    policy: str
    workflow: str
    resizes_served: int
    weight_changes: int
    moves: int


def main() -> None:
    """Run, and print the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--policy", action="append", help="under which to run; the first is the baseline")
    parser.add_argument("--file", type=Path, default=SWEEP, help="sweep to submit")
    parser.add_argument("--out", type=Path, default=ROOT / ".specon" / "cluster-sweep", help="folder for the report")
    given = parser.parse_args()
    given.out.mkdir(parents=True, exist_ok=True)
    policies = given.policy or POLICIES
    with installed(_TERMINAL.log) as kubectl:
        runs: list[Counted] = []
        for policy in policies:
            runs.append(_run(given.file, kubectl, policy, runs[0].workflow if runs else None))
            _TERMINAL.print(_table(runs))
        _TERMINAL.print(kubectl("get", "pods", "--output=wide"))
        (given.out / "counted.json").write_text(json.dumps([asdict(run) for run in runs], indent=2))
        (given.out / "controller.log").write_text(
            kubectl("logs", "--selector=app.kubernetes.io/name=specon-controller", "--tail=-1", "--prefix")
        )
        with forwarded(kubectl, "mlflow", 5000) as uri:
            page = given.out / "report.html"
            _specon("report", *(run.workflow for run in runs), "--out", page, "--mlflow-tracking-uri", uri)


def _run(file: Path, kubectl: Kubectl, policy: str, like: str | None) -> Counted:
    before, weights = resizes_served(kubectl), WeightsSeen()
    weights.start()
    _TERMINAL.log(f"submitting {file.name} under {policy}")
    wishes = ["--policy", policy, *(["--first-nodes-of", like] if like else [])]
    access: list[str | Path] = ["--kubeconfig", kubectl.kubeconfig, "--namespace", NAMESPACE]
    created = json.loads(_specon("submit", file, *access, *wishes, "--json"))
    kubectl(
        "wait",
        f"workflow/{created['name']}",
        "--for=condition=Completed",
        f"--timeout={_LONGEST_S}s",
        seconds=_LONGEST_S,
    )
    phase = kubectl.get("workflow", created["name"])["status"]["phase"]
    _TERMINAL.log(f"{created['name']} {phase}")
    name = created["name"]
    return Counted(policy, name, resizes_served(kubectl) - before, weights.changes(), moves_made(kubectl, name))


def _specon(*arguments: str | Path) -> str:
    command = [sys.executable, "-m", "hera_specon.cli", *(str(argument) for argument in arguments)]
    done = subprocess.run(command, cwd=ROOT, text=True, stdout=subprocess.PIPE, check=True)
    _TERMINAL.print(done.stdout)
    return done.stdout


def _table(runs: list[Counted]) -> Table:
    table = Table("policy", "workflow", "resizes (API server)", "changes of weight (cgroups)", "moves (pods)")
    for run in runs:
        table.add_row(run.policy, run.workflow, str(run.resizes_served), str(run.weight_changes), str(run.moves))
    return table


if __name__ == "__main__":
    main()
