"""Which gangs shrink so that another can start, and which grow. Pure."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from controllers.core.model import NodeName, Trial, TrialId
from controllers.policies.kit.capacity import Capacity

MOST_SHRUNK = 32
"""Gangs that are looked at to make room for one, so that no decision takes long."""


@dataclass(frozen=True, slots=True)
class StartingRoom:
    """Where a gang can start with as few workers as it may have, and the nodes that others keep for that."""

    nodes: tuple[NodeName, ...]
    kept: Mapping[TrialId, tuple[NodeName, ...]]


def room_for(trial: Trial, running: Iterable[Trial], capacity: Capacity) -> StartingRoom | None:
    """Return how ``trial`` can start with its least workers once some of ``running`` have shrunk; None where it can't.

    Workers go one by one from the gang that has the most above its minimum, first those away from the node with most
    of them. Gangs that need not shrink for it after all do not.

    Args:
        trial: Waits.
        running: The gangs that may be told to shrink.
        capacity: What is requested of each node.
    """
    spare = sorted((one for one in running if len(one.nodes) > one.min_workers), key=_surplus)[:MOST_SHRUNK]
    room, kept = capacity.copy(), {one.id: list(one.nodes) for one in spare}
    found = room.gathered(trial, trial.min_workers)
    while not found:
        able = [one for one in spare if len(kept[one.id]) > one.min_workers]
        if not able:
            return None
        victim = max(able, key=lambda one: (len(kept[one.id]) - one.min_workers, one.submitted_at, one.id))
        room.release(victim, [kept[victim.id].pop(_away_from_main(kept[victim.id]))])
        found = room.gathered(trial, trial.min_workers)
    for one in spare:
        gone = list(one.nodes)
        for node in kept[one.id]:
            gone.remove(node)
        if gone:
            room.release(one, gone, workers=-1)
            if again := room.gathered(trial, trial.min_workers):
                found, kept[one.id] = again, list(one.nodes)
            else:
                room.release(one, gone)
    shrunk = {one.id: tuple(kept[one.id]) for one in spare if len(kept[one.id]) < len(one.nodes)}
    return StartingRoom(found, shrunk)


def grown(trial: Trial, capacity: Capacity) -> tuple[NodeName, ...]:
    """Return the nodes of a gang that has grown by as many workers as one more node holds; empty where it can't.

    Its workers all start again in any case, so it may go where they are nearer each other.
    """
    nodes = near(trial, trial.max_workers, len(trial.nodes) + 1, capacity)
    return nodes if len(set(nodes)) <= len(set(trial.nodes)) + 1 else ()


def near(trial: Trial, most: int, least: int, capacity: Capacity) -> tuple[NodeName, ...]:
    """Return the nodes of as many workers as fit in one zone, from ``most`` down to ``least``; empty where none do."""
    for workers in range(most, least - 1, -1):
        nodes = capacity.gathered(trial, workers)
        if nodes and len({capacity.nodes[node].zone for node in nodes}) == 1:
            return nodes
    return ()


def _surplus(trial: Trial) -> tuple[int, float, TrialId]:
    return trial.min_workers - len(trial.nodes), -trial.submitted_at, trial.id


def _away_from_main(nodes: Sequence[NodeName]) -> int:
    """Return the place in ``nodes`` of the worker to let go: the last on the node that has the fewest of them."""
    return max(range(len(nodes)), key=lambda rank: (-nodes.count(nodes[rank]), rank))
