"""The default policy beside the default scheduler on a cluster where a pod without requests burns a node's CPU.

    python -m benchmarks.disturbed_machine.on_a_cluster [--seeds 2] [--out FOLDER]

Someone else's pod computes on ``node-1`` of three for as long as the sweep lasts, as much as the node lets it. The
sweep runs once under either policy in each seed, through Argo on the test cluster, and begins with the other one in the
next seed. It takes about ten minutes for a seed, and needs a machine with nothing else on it.
"""

import argparse
import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Final

from rich.console import Console

from benchmarks.disturbed_machine.__main__ import summary, table
from benchmarks.payoff.on_a_cluster import test_cluster
from benchmarks.payoff.plan import ON_A_CLUSTER, tasks
from benchmarks.payoff.records import Run
from tests.cluster.kubectl import JsonObject, Kubectl

_OUT: Final = Path(".specon") / "disturbed-cluster"
_SWEEP: Final = "all at once"
_NODE: Final = "node-1"
_NAME: Final = "burner"
_STARTED_S: Final = 120


def burner() -> JsonObject:
    """Return the pod: it requests nothing, and never stops."""
    container = {
        "name": "burn",
        "image": "hera-specon/trainer:0.2.0",
        "imagePullPolicy": "Never",
        "command": ["python", "-c", "while True: pass"],
        "securityContext": {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}},
    }
    spec = {
        "nodeName": _NODE,
        "containers": [container],
        "terminationGracePeriodSeconds": 0,
        "securityContext": {"runAsNonRoot": True, "runAsUser": 1000, "seccompProfile": {"type": "RuntimeDefault"}},
    }
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": _NAME}, "spec": spec}


@contextmanager
def burning(kubectl: Kubectl) -> Iterator[None]:
    """Let the pod run meanwhile."""
    kubectl.create([burner()])
    kubectl("wait", "--for=condition=Ready", f"pod/{_NAME}", f"--timeout={_STARTED_S}s")
    try:
        yield
    finally:
        kubectl("delete", "pod", _NAME, "--wait=true")


def main() -> None:
    """Make the runs that are missing, and print all."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=2, help="how many")
    parser.add_argument("--out", type=Path, default=_OUT, help="folder for the figures")
    given = parser.parse_args()
    given.out.mkdir(parents=True, exist_ok=True)
    file, console = given.out / "runs.json", Console(width=140)
    plan = replace(ON_A_CLUSTER, policies=("default", "ahead"))
    kept = [Run.from_dict(one) for one in json.loads(file.read_text(encoding="utf-8"))] if file.exists() else []
    wanted = list(tasks(plan, [_SWEEP], range(1, given.seeds + 1), plan.policies))
    if missing := [task for task in wanted if all(run.task != task for run in kept)]:
        with test_cluster(plan, console.log) as cluster, burning(cluster.kubectl):
            for task in missing:
                kept.append(cluster.make(task))
                file.write_text(json.dumps([run.to_dict() for run in kept], indent=1), encoding="utf-8")
                console.print(table(kept))
    console.print(table(kept))
    console.print(summary(_SWEEP, kept))


if __name__ == "__main__":
    main()
