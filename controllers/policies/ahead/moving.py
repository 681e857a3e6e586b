"""Moves that save all trials time, after those that make room for trials that wait. Pure."""

import math
from collections.abc import Iterable, Iterator, Mapping
from collections.abc import Set as AbstractSet
from itertools import chain, islice
from typing import Final

from controllers.core.actions import Proposal
from controllers.core.model import NodeName, Phase, TrialId
from controllers.policies.ahead.planning import CONSIDERED, WORTH, WorkPlan
from controllers.policies.ahead.room import make_room
from controllers.policies.kit.most_cores import UNUSED

LEAST_GAIN: Final = 0.01
"""Part of all that a state costs which a move must win at least: estimates are no better."""


def choose_moves(plan: WorkPlan, movable: Iterable[TrialId]) -> Iterator[Proposal]:
    """Yield moves of ``movable`` trials that pay, each with those before it counted in.

    First those that make room for the trials for which no place was found, then those that save all trials the
    most. At most a quarter of the trials that run are on their way at a time.
    """
    live, left = [trial for trial in plan.snapshot.unended if trial.live], set(movable)
    most = max(1, len(live) // 4) - sum(trial.phase is Phase.MOVING for trial in live)
    return islice(chain(make_room(plan, left), _saving_time(plan, left)), max(0, most))


def choose_moves_to_idle_nodes(plan: WorkPlan, movable: Iterable[TrialId]) -> Iterator[Proposal]:
    """Yield moves of ``movable`` trials that pay, each to a node where there is no other."""
    return _saving_time(plan, {*movable}, only_idle=True)


def try_elsewhere(plan: WorkPlan, movable: Iterable[TrialId], shown: Mapping[TrialId, float]) -> Iterator[Proposal]:
    """Yield a move to an idle node for the longest of ``movable`` on each node, where it uses little of the node.

    Where nothing tells of others on a node, only that shows whether it is the trial that can use no more. ``shown``
    are the cores that each was seen to be able to use.
    """
    idle = sorted(node for node in plan.cores if not plan.loads[node])
    tried: set[NodeName] = set()
    for name in sorted(movable, key=lambda name: (-plan.estimates[name].work, name)):
        estimate, source = plan.estimates[name], plan.estimates[name].trial.node
        target = next((node for node in idle if plan.capacity.fits(estimate.trial, node)), None)
        if target is None or source in tried or source not in plan.cores or name not in plan.loads[source]:
            continue
        here, there = (estimate.work / math.pow(cores, plan.weights.power) for cores in (shown[name], estimate.most))
        little = shown[name] < UNUSED * plan.cores[source]
        if little and here - there > (1 + WORTH) * plan.weights.move_cost:
            idle.remove(target)
            tried.add(source)
            move = plan.move(name, target)
            yield Proposal(move, f"moving: it uses {shown[name]:.2g} cores, perhaps by its node")


def _saving_time(plan: WorkPlan, movable: set[TrialId], *, only_idle: bool = False) -> Iterator[Proposal]:
    while best := _best_move(plan, movable, only_idle=only_idle):
        gain, name, target = best
        movable.remove(name)
        yield Proposal(plan.move(name, target), f"moving: on {target} it saves all trials {gain:.0f} s in sum")


def _best_move(
    plan: WorkPlan, movable: AbstractSet[TrialId], *, only_idle: bool
) -> tuple[float, TrialId, NodeName] | None:
    before, targets = plan.tally.cost({}), plan.tally.first_done(CONSIDERED)
    if only_idle:
        targets = [node for node in targets if not plan.loads[node]]
    best: tuple[float, TrialId, NodeName] | None = None
    for source in plan.tally.last_done(CONSIDERED):
        if plan.unused(source) >= 0 and not plan.weights.devices.unlike:
            continue  # Each has all that it can use, so nobody gains where one leaves.
        for name in plan.loads[source]:
            trial = plan.estimates[name].trial
            if name not in movable or trial.node != source or not plan.worth_moving(name):
                continue
            for target in targets:
                if target == source or not plan.takes(trial, target):
                    continue
                gain = before - plan.cost_of_move(name, source, target)
                if best is None or (-gain, name, target) < (-best[0], best[1], best[2]):
                    best = gain, name, target
    pays = best is not None and best[0] > max(WORTH * plan.weights.move_cost, LEAST_GAIN * before)
    return best if pays else None
