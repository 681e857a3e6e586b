"""Runs a sweep of one gang in this folder under a policy that has it grow and shrink by a script: 1, 3, 2 workers."""

import json
from pathlib import Path

from hera.workflows import Resources, Workflow

from benchmarks.change_of_size.scripted import Scripted
from controllers.core.model import NodeName
from controllers.local_run.order import LocalSettings
from controllers.local_run.run import run_locally
from hera_specon import Sweep, choice, minimize
from hera_specon.display.screens import PlainScreen
from hera_specon.report.page import write_report

JOB = Path(__file__).with_name("gang_job.py")
HERE, THERE = NodeName("node-1"), NodeName("node-2")
SIZES = ((0, (HERE,)), (30, (HERE, THERE, THERE)), (70, (THERE, HERE)))
"""From which step on the gang shall be on which nodes."""


def main() -> None:
    """Run the sweep, and leave its result in ``out.json``."""
    with Workflow(generate_name="gang-", entrypoint="gang") as w:
        Sweep(
            name="gang", image="python:3.11", command=["python", str(JOB), "260", "0", "0", "60"], workers=(1, 3),
            space={"lr": choice(0.1)}, search="grid", objective=minimize("loss"), grace=10,
            resources=Resources(cpu_request="100m", memory_request="16Mi"),
        )  # fmt: skip
    settings = LocalSettings(nodes=2, cpus_per_node=0.4)
    with PlainScreen(print) as screen:
        run = run_locally(w.to_dict(), Path(__file__), [Scripted(sizes=SIZES)], settings, screen)
    write_report(run.folder, [Path("report.html")])
    Path("out.json").write_text(json.dumps({"runs": [result.to_dict() for result in run.results]}))


if __name__ == "__main__":
    main()
