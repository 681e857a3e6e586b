"""One trial that goes from 1 to 3 to 2 workers on the test cluster, beside the same on one worker.

    python -m tests.cluster up
    python -m benchmarks.change_of_size.on_a_cluster [--json FILE]

The controller is the real one, but for its policy, which follows a script. Printed are the seconds without a step at
each change, the last loss and that of one worker alone, and the attempts with their pods, as the API server and MLflow
tell them. Every step must be in MLflow once. It takes about five minutes.
"""

import argparse
import json
import os
import sys
import tempfile
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import Final

from mlflow.tracking import MlflowClient
from rich.console import Console
from rich.table import Table

from benchmarks.change_of_size import sweep
from benchmarks.change_of_size.scripted import GROWS, SHRINKS
from mlflow_hooks import contract
from tests.cluster.cluster import running_cluster
from tests.cluster.sweeps.bench import Bench, Workflow, opened_bench
from tests.cluster.sweeps.ports import free_ports
from tests.cluster.sweeps.tracking import Tracking

_TRIAL: Final = "t000"
Sizes = Sequence[tuple[int, Sequence[str]]]


def trained(bench: Bench, sizes: Sizes) -> tuple[Workflow, list[tuple[float, float]]]:
    """Train the trial on the nodes of ``sizes``; return when each step was logged (Unix seconds), and its loss."""
    os.environ["SCRIPTED_SIZES"] = json.dumps(sizes)
    controller = bench.controller("scripted")
    controller.module = "benchmarks.change_of_size.controller"
    controller.start().wait_ready()
    workflow = bench.submit(sweep)
    bench.wait_for_end(workflow)
    if bench.phase(workflow) != "Succeeded":
        sys.exit(f"the workflow did not succeed:\n{bench.story()}")
    client = MlflowClient(bench.tracking.uri)
    bench.wait(lambda: len(_losses(client, workflow)) == sweep.STEPS, "every step is in MLflow", 60)
    controller.stop()
    return workflow, _losses(client, workflow)


def _losses(client: MlflowClient, workflow: Workflow) -> list[tuple[float, float]]:
    """Return moment and loss of each point in MLflow; a step that is there twice ends the program."""
    (experiment,) = client.search_experiments(filter_string="name = 'size'") or sys.exit("MLflow has no such sweep")
    (run,) = client.search_runs([experiment.experiment_id], f"tags.`{contract.TAG_TRIAL_ID}` LIKE '{workflow.uid}.%'")
    points = sorted(client.get_metric_history(run.info.run_id, "loss"), key=lambda point: point.step)
    if [point.step for point in points] != list(range(len(points))):
        sys.exit(f"steps are lost or doubled in MLflow: {[point.step for point in points]}")
    return [(point.timestamp / 1000, point.value) for point in points]


def attempts(bench: Bench, workflow: Workflow) -> Table:
    """Return the pods of each attempt: by node, with their exit codes."""
    table = Table("pod", "node", "exit code", title=f"pods of {workflow.name}")
    for pod in bench.pods.of(workflow.name, _TRIAL):
        table.add_row(pod.name, pod.node, str(pod.exit_code))
    return table


def main() -> None:
    """Train, and print what came of it."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", type=Path)
    args = parser.parse_args()
    cluster = running_cluster()
    if cluster is None:
        sys.exit("no cluster is up: python -m tests.cluster up")
    nodes = cluster.node_names
    console = Console()
    with tempfile.TemporaryDirectory() as name:
        tracking = Tracking(Path(name), free_ports(1)[0])
        tracking.start()
        try:
            with opened_bench(cluster, tracking, Path(name, "bench")) as bench:
                workflow, points = trained(bench, [(0, nodes[:1]), (GROWS, nodes[:3]), (SHRINKS, nodes[:2])])
                console.print(attempts(bench, workflow))
                _, alone = trained(bench, [(0, nodes[:1])])
        finally:
            tracking.stop()
    gaps = sorted(((later - earlier, step) for step, ((earlier, _), (later, _)) in enumerate(pairwise(points), 1)))[-2:]
    told = {"seconds without a step": dict(sorted((step, round(gap, 1)) for gap, step in gaps))}
    console.print({**told, "last loss": points[-1][1], "on one worker": alone[-1][1]})
    if args.json:
        args.json.write_text(json.dumps({**told, "losses": points, "alone": alone}, indent=1))


if __name__ == "__main__":
    main()
