"""Random groups of nodes that come and go, for cases that were drawn without: the rest of a case stays as it was."""

import random
from collections.abc import Sequence
from dataclasses import replace

from controllers.core.model import NodeName
from controllers.worlds.simulated.errors import WorkloadError
from controllers.worlds.simulated.faults import BootFault, SpotLoss, WorldFault
from controllers.worlds.simulated.scaling import AutoscalerTiming, SpotMarket
from controllers.worlds.simulated.scenario import Scenario
from controllers.worlds.simulated.workload import NodeGroup, NodeSpec, Workload
from controllers.worlds.simulated.world import SimulatedWorld
from tests.fault_search.case import Case

_WITHOUT_GROUPS = 0.7
_NOTICES_S = (0.0, 15.0, 120.0)
_AWAY_S = (20.0, 90.0)


def with_groups(case: Case, chance: random.Random) -> Case:
    """Return ``case``, or the same with nodes that come and go instead of some of its nodes, or of all."""
    if chance.random() < _WITHOUT_GROUPS:
        return case
    workload = case.scenario.workload
    kept = chance.choice((0, 0, len(workload.nodes) // 2, len(workload.nodes)))
    if any(trial.gang for trial in workload.trials):
        kept = len(workload.nodes)  # No policy asks for nodes for a gang.
    priced = chance.choice((True, True, False))
    fixed = tuple(replace(node, price=_price(chance) if priced else None) for node in workload.nodes[:kept])
    likes = chance.sample(workload.nodes, min(len(workload.nodes), chance.choice((1, 1, 2))))
    groups = tuple(_group(chance, number, like, priced=priced) for number, like in enumerate(likes))
    scaling = AutoscalerTiming(
        chance.choice((1.0, 10.0)),
        chance.choice((0.0, 5.0, 60.0)),
        chance.choice((60.0, 200.0)),
        chance.choice((5.0, 60.0)),
    )
    changed = replace(workload, nodes=fixed, groups=groups, scaling=scaling)
    if not _holds_all(changed):
        return case
    scenario = replace(
        case.scenario,
        workload=changed,
        pinned={trial: node for trial, node in case.scenario.pinned.items() if node in {it.name for it in fixed}},
    )
    staying = {None, *(node.name for node in fixed)}
    faults = tuple(fault for fault in case.faults if getattr(fault, "node", None) in staying)
    return replace(case, scenario=scenario, faults=(*faults, *_faults(chance, groups)))


def _group(chance: random.Random, number: int, like: NodeSpec, *, priced: bool) -> NodeGroup:
    most = chance.choice((1, 3, 8))
    spot = None
    if chance.random() < 0.6:
        away, back_after_s = chance.uniform(0, 100), chance.choice(_AWAY_S)
        dips = ((away, float(chance.randrange(most))), (away + back_after_s, float(most)))
        spot = SpotMarket(
            chance.choice(_NOTICES_S),
            drains=chance.random() < 0.7,
            available=dips if chance.random() < 0.4 else (),
            known_after_s=chance.choice((0.0, 5.0, 40.0)),
        )
    node = replace(like, name=NodeName(f"g{number}"), price=_price(chance) if priced else None)
    return NodeGroup(node, most, chance.choice((0, 0, 1)), chance.choice((0.0, 5.0, 50.0)), spot)


def _price(chance: random.Random) -> float:
    return chance.choice((0.0, 0.2, 1.0, 30.0))


def _holds_all(workload: Workload) -> bool:
    """Whether the workload's nodes hold each of its trials, and all workers that it needs at least."""
    try:
        SimulatedWorld(Scenario(workload))
    except WorkloadError:
        return False
    return True


def _faults(chance: random.Random, groups: Sequence[NodeGroup]) -> list[WorldFault]:
    faults: list[WorldFault] = []
    for _ in range(chance.choice((0, 1, 3, 6))):
        group = chance.choice(groups).name
        faults.append(
            chance.choice(
                (
                    SpotLoss(group, round(chance.uniform(0, 200), 1), chance.choice(_NOTICES_S)),
                    SpotLoss(group, round(chance.uniform(0, 60), 1), chance.choice(_NOTICES_S)),
                    BootFault(group, chance.randint(1, 4), chance.choice((0.0, 10.0, 100.0)), chance.random() < 0.5),
                )
            )
        )
    return faults
