"""What one decision of ``promote`` costs on a large cluster: CPU seconds, in the cases of ``decisions_of_ahead``.

python -m benchmarks.decisions_of_promote [--nodes 1000]

One case is added: *rung*, in which a fifth of the trials run and all others wait at the first rung.
"""

import argparse
import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any, Final

from rich.console import Console
from rich.table import Table

from benchmarks.decisions_of_ahead import CASES, PER_NODE
from controllers.core.actions import Decision
from controllers.core.model import Phase, Progress, Snapshot
from controllers.policies.kit.scaling import ScalingSums
from controllers.policies.promote import FIRST_RUNG
from controllers.policies.registry import parse_policy

POLICIES: Final = ("promote", "promote:rungs=best", "promote:rungs=best+ahead")
RUNG: Final = "rung"
STEPS: Final = 100


def main() -> None:
    """Measure and print a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--nodes", type=int, default=1000, help="nodes of the large cluster (default: 1000)")
    nodes = parser.parse_args().nodes
    table = Table("case", "policy", "nodes", "trials", "CPU s", "of a quarter, s", "ratio", "actions")
    for name in (*CASES, RUNG):
        for policy in POLICIES:
            (small, _), (large, actions) = (decided(policy, name, size) for size in (nodes // 4, nodes))
            figures = f"{large:.2f}", f"{small:.2f}", f"{large / small:.1f}", str(actions)
            table.add_row(name, policy, str(nodes), str(nodes * PER_NODE), *figures)
    Console(width=120).print(table)


def decided(policy: str, name: str, nodes: int) -> tuple[float, int]:
    """Return the CPU seconds of the second decision of a case, and how many actions it brings."""
    decide = second_decision(policy, name, nodes)
    began = time.process_time()
    decision = decide()
    return time.process_time() - began, len(decision.proposals)


def second_decision(policy: str, name: str, nodes: int) -> Callable[[], Decision[Any]]:
    """Return what makes the second decision of a case, five seconds after the first."""
    snapshot = at_rung(nodes) if name == RUNG else CASES[name](nodes, ScalingSums()).snapshot
    chosen = parse_policy(policy)
    state = chosen.decide(snapshot, chosen.initial()).state
    return lambda: chosen.decide(replace(snapshot, now=snapshot.now + 5.0), state)


def at_rung(nodes: int) -> Snapshot:
    """Return a sweep with a fifth of its trials running, while the rest wait at the first rung."""
    like = CASES["room"](nodes, ScalingSums()).snapshot
    step = int(FIRST_RUNG * STEPS)
    trials = [
        replace(
            trial,
            phase=Phase.SUSPENDED,
            suspensions=1,
            progress=Progress(9.0, 1.0 + number / 1e4, 1.0 + number / 1e4, step, 9.0, 9.0, steps_total=STEPS),
        )
        if trial.waits
        else trial
        for number, trial in enumerate(like.trials)
    ]
    return replace(like, trials=tuple(trials))


if __name__ == "__main__":
    main()
