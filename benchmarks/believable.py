"""How far the simulator can be believed: a sweep run for real, recorded, and simulated.

    python -m benchmarks.believable [--nodes 2] [--cpus-per-node 0.25] [--seeds 20] [--run FOLDER]

Eight PyTorch models are trained on slices of this machine, first under the default policy, then under SpeCon with
FlowCon from the same placement. The work of the simulated trials is what they cost under the default policy, for both;
the nodes get what the real ones got of their cores. Three columns set simulated completions beside the real ones:

- default: the run that the work was taken from. It tests the sharing of cores, starts and ends.
- repeated: the policy's run with the moves and resizes that were really made. It tests that shares and moves do
  what they did, with work from another run.
- decided: the policy deciding for itself over many seeds, mean and range. A decision taken a second earlier sends
  another trial away, so single trials differ from one real run to the next as well.

With --run an earlier run of this sweep is judged; nothing is trained.
"""

import argparse
import json
import subprocess
import sys
import tempfile
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

from rich.console import Console
from rich.table import Table

from benchmarks.believability.decisions import repeated
from controllers.core.model import TrialId
from controllers.core.policy import Policy
from controllers.lab.simulation.past_sweeps.forecast import PolicyForecast, Validation, forecast, validate
from controllers.lab.simulation.past_sweeps.past_sweep import PastSweep
from controllers.lab.simulation.past_sweeps.recording import Recording, TargetCluster, record
from controllers.lab.simulation.past_sweeps.supply import with_measured_supply
from controllers.lab.simulation.run import simulate
from controllers.policies.registry import parse_policy
from controllers.worlds.simulated.scenario import Costs, Scenario
from hera_specon.replay.past_sweeps import KnownObjective
from hera_specon.replay.sources import Where, find_past

SWEEP: Final = "benchmarks/believability/sweep.py"
POLICY: Final = "specon:interval=5,alpha=0.05+flowcon:interval=5"
BELIEVABLE: Final = 0.1
"""Greatest relative error of a completion time or makespan."""


@dataclass(frozen=True, slots=True)
class Findings:
    """The two runs as they were, and each beside its simulation."""

    default: PastSweep
    policy: PastSweep
    of_default: Validation
    with_decisions_repeated: Validation
    deciding: Validation


def train(state_dir: Path, nodes: int, cpus_per_node: float) -> Path:
    """Run the sweep under both policies; return the run's folder."""
    command = [sys.executable, "-m", "hera_specon.cli", "run", SWEEP, "--fresh", "--plain"]
    command += ["--policy", "default", "--policy", POLICY, "--state-dir", str(state_dir)]
    command += ["--nodes", str(nodes), "--cpus-per-node", str(cpus_per_node)]
    subprocess.run(command, check=True)
    return max((state_dir / "runs").iterdir(), key=lambda path: path.stat().st_mtime)


def judge(folder: Path, seeds: int) -> Findings:
    """Simulate both runs in ``folder`` from the work of the first."""
    default, policy = find_past(str(folder), Where(folder, None, None, KnownObjective())).sweeps
    ground = TargetCluster(default.nodes, Costs.local())
    recording = record(default, ground)
    spread = record(default, ground, [policy]).spread
    about = json.loads((folder / "run.json").read_text(encoding="utf-8"))
    uid = f"{folder.name}-{about['uid_suffix']}-01"
    part = next(folder.glob("01-*"))
    uncertain = replace(_on_nodes_of(policy, recording), spread=spread)
    decided = forecast(uncertain, {POLICY: parse_policy(str(policy.policy))}, seeds)
    return Findings(
        default,
        policy,
        validate(default, _once(_on_nodes_of(default, recording), "default", parse_policy("default"))),
        validate(policy, _once(_on_nodes_of(policy, recording), "repeated", repeated(part, uid))),
        validate(policy, decided[0]),
    )


def _on_nodes_of(sweep: PastSweep, recording: Recording) -> Recording:
    return replace(recording, workload=replace(recording.workload, nodes=with_measured_supply(sweep)))


def _once(recording: Recording, name: str, policy: Policy[Any]) -> PolicyForecast:
    scenario = Scenario(recording.workload, recording.costs, 0, recording.first_nodes)
    return PolicyForecast(name, (simulate(scenario, policy).result,))


def table(found: Findings) -> Table:
    """Return a row per trial and one for the makespan."""
    drawn = Table(
        "trial", "default, real", "simulated", "error", "policy, real", "repeated", "error", "decided", "error"
    )
    real = [{trial.id: trial.completion_s for trial in sweep.trials} for sweep in (found.default, found.policy)]
    for name in real[0]:
        drawn.add_row(
            name,
            *_pair(real[0][name], found.of_default.completions[name].mean),
            *_pair(real[1][name], found.with_decisions_repeated.completions[name].mean),
            *_ranged(real[1][name], found.deciding, name),
        )
    makespans = (found.of_default, found.with_decisions_repeated, found.deciding)
    first, second, third = (of.simulated_makespan_s for of in makespans)
    drawn.add_section()
    drawn.add_row(
        "makespan",
        *_pair(found.default.makespan_s, first.mean),
        *_pair(found.policy.makespan_s, second.mean),
        f"{third.mean:.1f} ({third.low:.0f} to {third.high:.0f})",
        _error(third.mean / found.policy.makespan_s - 1),
    )
    return drawn


def summary(of: Validation) -> str:
    """Return how many completions are believable, and the makespan's error."""
    errors = of.completion_errors.values()
    good = sum(abs(error) <= BELIEVABLE for error in errors)
    return (
        f"makespan {of.makespan_error:+.1%}, {good} of {len(errors)} completions within {BELIEVABLE:.0%}, "
        f"mean error {of.mean_completion_error:.1%}, worst {of.worst_completion_error:+.1%}"
    )


def _pair(real: float, simulated: float) -> tuple[str, str, str]:
    return f"{real:.1f}", f"{simulated:.1f}", _error(simulated / real - 1)


def _ranged(real: float, decided: Validation, name: TrialId) -> tuple[str, ...]:
    range_ = decided.completions[name]
    return f"{range_.mean:.1f} ({range_.low:.0f} to {range_.high:.0f})", _error(range_.mean / real - 1)


def _error(error: float) -> str:
    return f"{error:+.1%}" if abs(error) <= BELIEVABLE else f"[red]{error:+.1%}[/red]"


def main() -> None:
    """Train or look, then judge."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--nodes", type=int, default=2)
    parser.add_argument("--cpus-per-node", type=float, default=0.25)
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--run", type=Path, help="folder of an earlier run")
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="believable-", ignore_cleanup_errors=True) as folder:
        run = asked.run or train(Path(folder), asked.nodes, asked.cpus_per_node)
        found = judge(run, asked.seeds)
    console = Console(width=130)
    console.print(table(found))
    for title, of in (
        ("default, from its own work", found.of_default),
        ("policy, decisions repeated, from the default's work", found.with_decisions_repeated),
        ("policy deciding for itself, from the default's work", found.deciding),
    ):
        console.print(f"{title}: {summary(of)}", highlight=False)
    inside = len(found.deciding.completions) - len(found.deciding.missed)
    console.print(f"{inside} of {len(found.deciding.completions)} completions lie within the range of the seeds")


if __name__ == "__main__":
    main()
