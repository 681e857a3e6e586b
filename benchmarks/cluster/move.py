"""The time of a move on the test cluster, from the decision to the first step on the new node, by its parts.

    python -m tests.cluster up ...            (with the trainer's image)
    python -m benchmarks.cluster.move [--moves 5] [--json FILE]

Light trials are moved one after the other by the real controller, which finds the mark of a decided move on a pod as it
does after a restart. What pods do is timed as the API server's watch tells it, what a trial does as it says itself.
Sweeps that keep their checkpoints on a volume and sweeps that keep them in a bucket take turns.
"""

import argparse
import json
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Final

from rich.console import Console
from rich.table import Table

from tests.cluster.cluster import running_cluster
from tests.cluster.sweeps import bucket_descent_sweep, descent_sweep
from tests.cluster.sweeps.bench import Bench, Workflow, opened_bench
from tests.cluster.sweeps.bucket import bucket_of, wait_until_told
from tests.cluster.sweeps.pods_seen import SeenPod
from tests.cluster.sweeps.ports import free_ports
from tests.cluster.sweeps.proofs import check_whole
from tests.cluster.sweeps.tracking import Tracking

PARTS: Final = (
    ("marked", "decision to its mark on the pod"),
    ("asked", "mark to SIGTERM in the trainer"),
    ("left", "SIGTERM to the process's end (step, checkpoint, flush)"),
    ("told", "its end to the API server knowing"),
    ("created", "to Argo's next pod"),
    ("ungated", "to the gate opened"),
    ("scheduled", "to the node bound"),
    ("process", "to the training process (image, init, container)"),
    ("begun", "to the checkpoint loaded (imports)"),
    ("stepped", "to the first step done"),
)
Moments = dict[str, float]
KEPT: Final = {"volume": descent_sweep, "bucket": bucket_descent_sweep}
"""Where checkpoints are kept, and by which sweep."""
_TOLD: Final = 5
"""Steps of each trial in MLflow before any is moved."""


def moved(bench: Bench, kept: str) -> Iterator[Moments]:
    """Submit a sweep and move each trial in turn.

    Yields the moments of each move that ended where it should, in Unix seconds.
    """
    workflow = bench.submit(KEPT[kept], steps=200)
    wait_until_told(bench, workflow, descent_sweep.NAME, _TOLD)
    marked = {}
    for trial in workflow.trials:
        decided = time.time()
        marked[trial] = (decided, *bench.begin_move(workflow, trial))
        bench.wait(lambda: _has_moved(bench, workflow, marked), "the trial has moved", 120)
    bench.wait_for_end(workflow)
    check_whole(bench, workflow, on_volume=kept == "volume")
    for trial, (decided, before, target) in marked.items():
        after = bench.pods.of(workflow.name, trial)[1]
        if after.node == target:
            yield _moments(bench, before, after, decided)
    bench.delete(workflow)


def _has_moved(bench: Bench, workflow: Workflow, marked: Mapping[str, tuple[float, SeenPod, str]]) -> bool:
    running = bench.running(workflow)
    return all(trial in running and running[trial].uid != pod.uid for trial, (_, pod, _) in marked.items())


def _moments(bench: Bench, before: SeenPod, after: SeenPod, decided: float) -> Moments:
    said, later = bench.moments_said(before), bench.moments_said(after)
    return {
        "decided": decided,
        "marked": before.moments["marked"],
        "asked": said["asked"],
        "left": said["left"],
        "told": before.moments["ended"],
        **{name: after.moments[name] for name in ("created", "ungated", "scheduled")},
        "process": later["started"],
        "begun": later["begun"],
        "stepped": later["stepped"],
    }


def parts_of(moments: Moments) -> dict[str, float]:
    """Return the seconds of each part, and of all."""
    names = ["decided", *(name for name, _ in PARTS)]
    found = {later: moments[later] - moments[earlier] for earlier, later in pairwise(names)}
    return {**found, "total": moments["stepped"] - moments["decided"]}


def measured(wanted: int, folder: Path) -> dict[str, list[dict[str, float]]]:
    """Return the parts of at least ``wanted`` moves of each kind."""
    cluster = running_cluster()
    if cluster is None:
        sys.exit("no cluster is up: python -m tests.cluster up")
    tracking = Tracking(folder, free_ports(1)[0])
    tracking.start()
    found: dict[str, list[dict[str, float]]] = {kept: [] for kept in KEPT}
    try:
        with opened_bench(cluster, tracking, folder / "bench") as bench, bucket_of(bench):
            bench.controller().start().wait_ready()
            while min(map(len, found.values())) < wanted:
                for kept, moves in found.items():
                    moves.extend(map(parts_of, moved(bench, kept)))
    finally:
        tracking.stop()
    return found


def main() -> None:
    """Measure and print a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--moves", type=int, default=5)
    parser.add_argument("--json", type=Path)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        found = measured(args.moves, Path(name))
    title = ", ".join(f"{kept} {len(moves)} times" for kept, moves in found.items())
    table = Table("part", *(f"{kept}: median s (least to most)" for kept in found), title=f"a move: {title}")
    for name, label in (*PARTS, ("total", "decision to first step")):
        table.add_row(label, *(_spread([move[name] for move in moves]) for moves in found.values()))
    Console().print(table)
    if args.json:
        args.json.write_text(json.dumps(found, indent=1))


def _spread(seconds: Sequence[float]) -> str:
    return f"{statistics.median(seconds):.2f} ({min(seconds):.2f} to {max(seconds):.2f})"


if __name__ == "__main__":
    main()
