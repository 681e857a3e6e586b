"""Moves that make room: a small trial goes elsewhere, so that a wide one which fits nowhere can start. Pure.

Where trials ask for unlike room and use all of it, cores stand idle though trials wait: a few on each node, and enough
on none. Every trial that fits starts, so wide trials wait until the small ones are through, and the sweep ends with the
wide ones alone. One move of a small trial to cores that stand idle elsewhere gives a wide one its place at once.
"""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import replace
from itertools import islice
from typing import Final, NamedTuple

from controllers.core.actions import Place, Proposal
from controllers.core.model import NodeName, Phase, Trial, TrialId
from controllers.policies.ahead.planning import WORTH, WorkPlan
from controllers.policies.kit.capacity import Capacity, RequestShape, request_shape

MOST_HELPED: Final = 16
"""Trials for which room is made in one decision, so that none takes long: the others come next."""
LOOKED_AT: Final = 16
"""Moves that would make room for a trial are looked at up to this number, and the best of them is taken."""
_LEAVING: Final = frozenset({Phase.MOVING, Phase.SUSPENDING, Phase.STOPPING})
Ends = Mapping[NodeName, Sequence[tuple[float, Trial]]]
"""The trials of each node with the seconds until each can have ended at the earliest, the first to end first."""


class Exchange(NamedTuple):
    """A ``trial`` that leaves ``source`` for ``target``, so that another one has room there."""

    trial: Trial
    source: NodeName
    target: NodeName


def make_room(plan: WorkPlan, movable: set[TrialId]) -> Iterator[Proposal]:
    """Yield a move for each trial that fits nowhere and would start far sooner by it."""
    if not movable or not plan.unplaced:
        return
    later, ends = plan.capacity.copy(), _ends(plan)
    for trial in plan.snapshot.unended:
        if trial.phase in _LEAVING:
            later.release(trial, trial.nodes)
    hopeless: set[RequestShape] = set()
    helpable = (trial for trial in plan.unplaced if not trial.gang and request_shape(trial) not in hopeless)
    for trial in islice(helpable, MOST_HELPED):
        node = next((node for node in ends if later.fits(trial, node)), None)
        if node is None:
            wait = seconds_until_room(trial, ends, later)
            exchange = _best_exchange(plan, wait, islice(exchanges(trial, ends, later, movable), LOOKED_AT))
            if exchange is None:
                hopeless.add(request_shape(trial))
                continue
            moved, node, target = exchange
            movable.remove(moved.id)
            ends[node].remove(next(end for end in ends[node] if end[1] is moved))
            move = plan.move(moved.id, target)
            later.apply(move)
            later.release(moved, (node,))
            why = f"moving: {trial.id} gets room on {node}, for which it would wait {wait:.0f} s at least"
            yield Proposal(move, why)
        later.apply(Place.on(node, trial))


def _ends(plan: WorkPlan) -> dict[NodeName, list[tuple[float, Trial]]]:
    """Return the trials of each node that do not leave it yet, the first that can have ended first."""
    ends: dict[NodeName, list[tuple[float, Trial]]] = {node: [] for node in plan.cores}
    for name, estimate in plan.estimates.items():
        for node in sorted(set(estimate.trial.nodes)) if estimate.trial.phase not in _LEAVING else ():
            if node in ends:
                ends[node].append((plan.length(name, plan.cores[node]).seconds, estimate.trial))
    for line in ends.values():
        line.sort(key=lambda end: (end[0], end[1].id))
    return ends


def _best_exchange(plan: WorkPlan, wait: float, possible: Iterable[Exchange]) -> Exchange | None:
    """Return the exchange that costs those that run the least, if it costs far less than the ``wait`` it saves."""
    before, cost = plan.tally.cost({}), plan.weights.move_cost
    best: tuple[float, Exchange] | None = None
    for exchange in possible if wait > (1 + WORTH) * cost else ():
        if plan.worth_moving(exchange.trial.id):
            gain = wait - cost + before - plan.cost_of_move(exchange.trial.id, exchange.source, exchange.target)
            if best is None or gain > best[0]:
                best = gain, exchange
    return best[1] if best is not None and best[0] > WORTH * cost else None


def seconds_until_room(trial: Trial, ends: Ends, capacity: Capacity) -> float:
    """Return the seconds until a trial that waits has room on some node at the earliest, as those that run end.

    Infinity where it never has, since no node is large enough. ``capacity`` is as before when this returns.
    """
    soonest = math.inf
    for node, line in ends.items():
        gone: list[Trial] = []
        for seconds, other in line:
            if seconds >= soonest:
                break
            capacity.release(other, (node,), other.nodes.count(node))
            gone.append(other)
            if capacity.fits(trial, node):
                soonest = seconds
                break
        for other in gone:
            capacity.release(other, (node,), -other.nodes.count(node))
    return soonest


def exchanges(trial: Trial, ends: Ends, capacity: Capacity, movable: AbstractSet[TrialId]) -> Iterator[Exchange]:
    """Yield each move of one ``movable`` trial that makes room for ``trial``, to the node that it fills best.

    ``capacity`` is as before whenever this yields.
    """
    wanted, targets = request_shape(trial), dict[RequestShape, list[NodeName]]()
    for source, line in ends.items():
        for _, other in line:
            if other.id not in movable or other.gang or request_shape(other) == wanted:
                continue
            capacity.release(other, (source,))
            makes_room = capacity.fits(trial, source)
            capacity.release(other, (source,), -1)
            if not makes_room:
                continue
            shape = request_shape(other)
            if shape not in targets:
                newcomer = replace(other, nodes=())  # a trial itself has room where it is
                roomy = [node for node in ends if capacity.fits(newcomer, node)]
                targets[shape] = sorted(roomy, key=lambda node: (_unrequested(capacity, node), node))
            target = next((node for node in targets[shape] if node != source), None)
            if target is not None:
                yield Exchange(other, source, target)


def _unrequested(capacity: Capacity, node: NodeName) -> float:
    return capacity.nodes[node].cpu - capacity.taken(node)[0]
