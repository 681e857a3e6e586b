"""Random workloads: a few trials and nodes of all sorts."""

import math
import random

from controllers.core.goals import AskedGoals
from controllers.core.model import Direction, NodeName, TrialId
from controllers.worlds.simulated.costs import Costs
from controllers.worlds.simulated.workload import NodeSpec, Report, Speedup, TrialSpec, Workload

_STRANGE = (math.nan, math.inf, -math.inf, 1e300, -1e300)


def draw_workload(chance: random.Random) -> Workload:
    """Return 2 to 12 trials and 1 to 5 nodes; each trial fits on each node."""
    nodes = tuple(_node(chance, number) for number in range(chance.randint(1, 5)))
    return Workload(tuple(_trial(chance, number) for number in range(chance.randint(2, 12))), nodes)


def draw_costs(chance: random.Random) -> Costs:
    """Return costs that were measured, or any others."""
    measured = (Costs.free(), Costs.argo(), Costs.local(), Costs.thesis())
    some = (0.0, 0.5, 3.0)
    drawn = Costs(
        start_s=chance.choice(some),
        start_cpu_s=chance.choice(some),
        leave_s=chance.choice(some),
        next_attempt_s=chance.choice(some),
        restore_s=chance.choice(some),
        retry_s=chance.choice((0.0, 1.0, 10.0)),
        resize_s=chance.choice(some),
        grace_s=chance.choice((0.0, 2.0, 30.0)),
        metric_delay_s=chance.choice((0.0, 1.0, 7.0)),
        heartbeat_s=chance.choice((0.5, 1.0, 2.0)),
    )
    return chance.choice((*measured, drawn, drawn, drawn, drawn))


def _node(chance: random.Random, number: int) -> NodeSpec:
    return NodeSpec(
        NodeName(f"n{number}"),
        cpu=chance.choice((1.0, 2.0, 4.0)),
        memory=chance.choice((math.inf, 4e9)),
        speed=chance.choice((0.5, 1.0, 1.0, 2.0)),
        contention=chance.choice((0.0, 0.0, 0.1)),
    )


def _trial(chance: random.Random, number: int) -> TrialSpec:
    work, cores, deaf = chance.uniform(5, 90), chance.choice((0.5, 1.0, 2.0)), chance.randrange(10) == 0
    return TrialSpec(
        id=TrialId(f"t{number:02}"),
        submitted_at=chance.choice((0.0, 0.0, round(chance.uniform(0, 60), 1))),
        work_s=work,
        reports=_reports(chance, work),
        cpu=chance.choice((0.0, 0.1, 0.1, 0.1, 0.25, 0.5, 0.5, 1.0)),
        speedup=chance.choice((Speedup.linear(cores), Speedup(((cores / 2, 0.7), (cores, 1.0))))),
        memory=chance.choice((0.0, 1e9, 2e9)),
        direction=chance.choice(list(Direction)),
        retries=chance.randint(0, 3),
        checkpoint_every_s=chance.choice((5.0, 20.0) if deaf else (None, 5.0, 20.0)),
        limit=chance.choice((math.inf, 1.0)),
        deaf=deaf,
        goals=_goals(chance),
    )


def _goals(chance: random.Random) -> AskedGoals:
    return AskedGoals(
        deadline_s=chance.choice((None, None, 20.0, 100.0)),
        target=chance.choice((None, None, 0.5, 0.0)),
        seconds_per_step=chance.choice((None, None, 0.5, 5.0)),
    )


def _reports(chance: random.Random, work: float) -> tuple[Report, ...]:
    number, speed = chance.choice((0, 1, 5, 20, 40, 40, 40)), chance.uniform(0, 20)
    noise, odd = chance.choice((0.0, 0.01, 0.3)), chance.choice((0.0, 0.0, 0.2))
    values = [math.exp(-speed * part / number) + chance.gauss(0, noise) for part in range(number)]
    values = [chance.choice(_STRANGE) if chance.random() < odd else value for value in values]
    return tuple(Report(work * part / number, value) for part, value in enumerate(values, start=1))
