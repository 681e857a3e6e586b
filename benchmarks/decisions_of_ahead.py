"""What one decision of ``ahead`` costs on a large cluster: CPU seconds, and how they grow with it.

    python -m benchmarks.decisions_of_ahead [--nodes 1000] [--profile]

Each case is decided at a quarter of the size and at full size, with five trials for each node: a cost that grows with
the number of trials is four times as much. The cases are those that differ in what is to be done:

- empty: nothing runs, all trials wait, and there is room for all.
- room: a fifth of the trials run and have reported, the rest wait, and there is room for them.
- unlike: the same, on nodes of 8, 16, 32 and 64 cores: the policy looks at some of each size.
- queue: room, but each trial fills a node, so that nothing can be placed.
- scattered: a fifth of the trials wait for twice as much as is free on each node, and small ones could make room.
- full: all trials run. The first decision with their reports resizes most of them.
- steady: ten seconds later, a tenth of the trials have reported again.
- uneven: all trials run on half of the nodes, so that moves pay.

Trials differ in how much they have to do, and this follows from their hyperparameters. With ``concave``, speed is
cores ** 0.8, and there are several ways to share a node.
"""

import argparse
import cProfile
import pstats
import random
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Final

from rich.console import Console
from rich.table import Table

from controllers.core.model import Direction, Node, NodeName, Phase, Progress, Snapshot, Trial, TrialId
from controllers.policies.ahead import Ahead
from controllers.policies.ahead.policy import AheadState
from controllers.policies.kit.scaling import ScalingSums
from controllers.policies.kit.work_left import SweepMeasurements

PER_NODE: Final = 5
CORES: Final = 16.0
CONCAVE: Final = ScalingSums(eu=1e4, ec=2e3, oo=1e4)
"""As trials that were seen on unlike shares leave it: a step costs more the more cores there are."""
_PARTS: Final = "measured|estimated|places|moves|__init__|proposals|shared_nodes|reconciled"


@dataclass(frozen=True)
class Case:
    """A snapshot, and the state of a policy that has looked at the sweep before."""

    snapshot: Snapshot
    state: AheadState

    def decide(self) -> None:
        """Decide once."""
        Ahead().decide(self.snapshot, self.state)


def empty(nodes: int, spread: ScalingSums) -> Case:
    """Return a sweep whose trials all wait."""
    trials = tuple(_waiting(number, 3.0) for number in range(nodes * PER_NODE))
    return Case(Snapshot(10.0, trials, _nodes(nodes)), AheadState(SweepMeasurements(spread=spread)))


def room(nodes: int, spread: ScalingSums) -> Case:
    """Return a sweep with a fifth of its trials running, and room for the rest."""
    return _seen_before([_running(n, 3.0, n) if n < nodes else _waiting(n, 3.0) for n in _all(nodes)], nodes, spread)


def unlike(nodes: int, spread: ScalingSums) -> Case:
    """Return the same on nodes of four sizes."""
    like = room(nodes, spread)
    sizes = tuple(replace(node, cpu=CORES * 2.0 ** (place % 4 - 1)) for place, node in enumerate(like.snapshot.nodes))
    return Case(replace(like.snapshot, nodes=sizes), like.state)


def queue(nodes: int, spread: ScalingSums) -> Case:
    """Return a sweep with a fifth of its trials running, which fill the nodes."""
    trials = [_running(n, CORES, n) if n < nodes else _waiting(n, CORES) for n in _all(nodes)]
    return _seen_before(trials, nodes, spread)


def scattered(nodes: int, spread: ScalingSums) -> Case:
    """Return a sweep with four fifths of its trials running, which leave a fifth of each node free."""
    fifth = CORES / PER_NODE
    trials = [_waiting(n, 2 * fifth) if n < nodes else _running(n, fifth, n % nodes) for n in _all(nodes)]
    return _seen_before(trials, nodes, spread)


def full(nodes: int, spread: ScalingSums) -> Case:
    """Return a sweep whose trials all run."""
    return _seen_before([_running(n, 3.0, n % nodes) for n in _all(nodes)], nodes, spread)


def steady(nodes: int, spread: ScalingSums) -> Case:
    """Return the same, ten seconds later."""
    before = full(nodes, spread)
    chance, now = random.Random(nodes), before.snapshot.now + 10.0  # noqa: S311 - draws who reports
    trials = [_reported(trial, 3, now) if chance.random() < 0.1 else trial for trial in before.snapshot.trials]  # noqa: PLR2004
    state = Ahead().decide(before.snapshot, before.state).state
    return Case(Snapshot(now, tuple(trials), before.snapshot.nodes), state)


def uneven(nodes: int, spread: ScalingSums) -> Case:
    """Return a sweep whose trials all run, on half of the nodes."""
    return _seen_before([_running(n, 1.0, n % max(1, nodes // 2)) for n in _all(nodes)], nodes, spread)


CASES: Final[dict[str, Callable[[int, ScalingSums], Case]]] = {
    "empty": empty,
    "room": room,
    "unlike": unlike,
    "queue": queue,
    "scattered": scattered,
    "full": full,
    "steady": steady,
    "uneven": uneven,
}


def main() -> None:
    """Measure and print a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--nodes", type=int, default=1000, help="nodes of the large cluster (default: 1000)")
    parser.add_argument("--profile", action="store_true", help="say where the time goes, too")
    options = parser.parse_args()
    table = Table("case", "speed", "nodes", "trials", "CPU s", "of a quarter, s", "ratio")
    for name, build in CASES.items():
        for speed, spread in (("linear", ScalingSums()), ("concave", CONCAVE)):
            small, large = (_seconds(build(nodes, spread)) for nodes in (options.nodes // 4, options.nodes))
            sizes = str(options.nodes), str(options.nodes * PER_NODE)
            table.add_row(name, speed, *sizes, f"{large:.2f}", f"{small:.2f}", f"{large / small:.1f}")
    Console().print(table)
    for name, build in CASES.items() if options.profile else ():
        print(f"\n{name}")
        profile = cProfile.Profile()
        profile.runcall(build(options.nodes, ScalingSums()).decide)
        pstats.Stats(profile).sort_stats("cumulative").print_stats(rf"(ahead|kit)/\w+\.py:\d+\(({_PARTS})\)")


def _seconds(case: Case) -> float:
    began = time.process_time()
    case.decide()
    return time.process_time() - began


def _nodes(count: int) -> tuple[Node, ...]:
    return tuple(Node(NodeName(f"n{number:04d}"), CORES) for number in range(count))


def _all(nodes: int) -> range:
    return range(nodes * PER_NODE)


def _waiting(number: int, cpu: float) -> Trial:
    chance = random.Random(number)  # noqa: S311 - draws trials
    parameters = (("rate", chance.random()), ("width", float(chance.choice([16, 32, 64]))))
    name = TrialId(f"t{number:05d}")
    return Trial(
        name, Phase.PENDING, cpu, cpu, 2.0**30, Direction.MINIMIZE, 0.0, gated=True, parameters=parameters
    )  # fmt: skip


def _running(number: int, cpu: float, node: int) -> Trial:
    place = (NodeName(f"n{node:04d}"),)
    return replace(_waiting(number, cpu), phase=Phase.RUNNING, gated=False, nodes=place, attempt=1)


def _reported(trial: Trial, steps: int, now: float) -> Trial:
    """Return ``trial`` after so many more steps; what one costs follows from its parameters, nearly."""
    chance, (rate, width) = random.Random(trial.id), (float(value) for _, value in trial.parameters)  # noqa: S311
    step = steps + (0 if trial.progress is None else trial.progress.step)
    cost = width * (0.5 + rate) * chance.uniform(0.49, 0.51)
    progress = Progress(1.0, 0.5, 0.5, step, now - chance.random(), step * cost, chance.choice([100, 200, 400]))
    return replace(trial, progress=progress)


def _seen_before(trials: list[Trial], nodes: int, spread: ScalingSums) -> Case:
    """Return the sweep as those that run have reported twice, and a policy has seen all but the last."""
    state, seen = AheadState(SweepMeasurements(spread=spread)), [trial for trial in trials if trial.nodes]
    for now in (40.0, 70.0):
        seen = [_reported(trial, 10, now) for trial in seen]
        state = Ahead().decide(Snapshot(now, tuple(seen), _nodes(nodes)), state).state
    seen = [_reported(trial, 10, 100.0) for trial in seen]
    waiting = [trial for trial in trials if not trial.nodes]
    return Case(Snapshot(100.0, (*seen, *waiting), _nodes(nodes)), state)


if __name__ == "__main__":
    main()
