"""What one decision of ``kais`` costs on a large cluster: CPU seconds, in the cases of ``decisions_of_ahead``.

python -m benchmarks.decisions_of_kais [--nodes 1000]

Nothing counts as outside of what the network was trained on, so that it has to look at all.
"""

import argparse
import time

from rich.console import Console
from rich.table import Table

from benchmarks.decisions_of_ahead import CASES, PER_NODE
from benchmarks.train_kais.episodes import WHOLE, TrainedKais
from controllers.policies.kais.choosing import Best
from controllers.policies.kais.state import KaisState
from controllers.policies.kais.weights import Trained, read
from controllers.policies.kit.scaling import ScalingSums


def main() -> None:
    """Measure and print a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--nodes", type=int, default=1000, help="nodes of the large cluster (default: 1000)")
    nodes = parser.parse_args().nodes
    table = Table("case", "nodes", "trials", "CPU s", "of a quarter, s", "ratio", "actions")
    for name in CASES:
        (small, _), (large, actions) = (decided(name, size) for size in (nodes // 4, nodes))
        sizes = str(nodes), str(nodes * PER_NODE)
        table.add_row(name, *sizes, f"{large:.2f}", f"{small:.2f}", f"{large / small:.1f}", str(actions))
    Console().print(table)


def decided(name: str, nodes: int) -> tuple[float, int]:
    """Return the CPU seconds of a decision of a case, and how many actions it brings."""
    case = CASES[name](nodes, ScalingSums())
    policy = TrainedKais(trained=Trained(read().network, WHOLE), chooser=Best())
    state = KaisState(case.state.measured, submitted=case.state.submitted)
    began = time.process_time()
    decision = policy.decide(case.snapshot, state)
    return time.process_time() - began, len(decision.proposals)


if __name__ == "__main__":
    main()
