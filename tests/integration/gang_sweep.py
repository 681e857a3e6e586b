"""Runs a sweep of one gang in this folder under a policy that has it grow and shrink by a script: 1, 3, 2 workers."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from hera.workflows import Resources, Workflow

from controllers.core.model import Action, Decision, Migrate, NodeName, Place, Proposal, Snapshot, Trial
from controllers.local_run.run import LocalSettings, run_locally
from controllers.policies.kit.settings import PolicySettings
from hera_specon import Sweep, choice, minimize
from hera_specon.display.screens import PlainScreen
from hera_specon.report.page import write_report

JOB = Path(__file__).with_name("gang_job.py")
HERE, THERE = NodeName("node-1"), NodeName("node-2")
SIZES = ((0, (HERE,)), (30, (HERE, THERE, THERE)), (70, (THERE, HERE)))
"""From which step on the gang shall be on which nodes."""


@dataclass(frozen=True, slots=True)
class NoState:
    """Nothing is remembered."""


class Scripted(PolicySettings):
    """Grows and shrinks a gang as ``SIZES`` says."""

    name: ClassVar[str] = "scripted"
    summary: ClassVar[str] = "grows and shrinks a gang by a script"
    source: ClassVar[str] = "this test"
    needs: ClassVar[frozenset[type[Action]]] = frozenset({Place, Migrate})

    state_type: ClassVar[type[NoState]] = NoState

    def initial(self) -> NoState:
        """Return the state before the first decision."""
        return NoState()

    def decide(self, snapshot: Snapshot, state: NoState) -> Decision[NoState]:
        """Want what the script says."""
        wanted = (proposal for trial in snapshot.unended if (proposal := _wish(trial)) is not None)
        return Decision(state, tuple(wanted), wake_at=snapshot.now + 1)


def _wish(trial: Trial) -> Proposal | None:
    made = trial.progress.step if trial.progress else 0
    step, nodes = [(at, nodes) for at, nodes in SIZES if made >= at][-1]
    if trial.waits:
        return Proposal(Place(trial.id, nodes[0], nodes=nodes), f"at step {step}")
    if trial.steady and trial.nodes != nodes:
        return Proposal(Migrate(trial.id, nodes[0], nodes), f"at step {step}")
    return None


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
        run = run_locally(w.to_dict(), Path(__file__), [Scripted()], settings, screen)
    write_report(run.folder, [Path("report.html")])
    Path("out.json").write_text(json.dumps({"runs": [result.to_dict() for result in run.results]}))


if __name__ == "__main__":
    main()
