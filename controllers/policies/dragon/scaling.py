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
    spare = sorted((gang for gang in running if len(gang.nodes) > gang.min_workers), key=_surplus)[:MOST_SHRUNK]
    room, kept = capacity.copy(), {gang.id: list(gang.nodes) for gang in spare}
    nodes = room.gathered(trial, trial.min_workers)
    while not nodes:
        able = [gang for gang in spare if len(kept[gang.id]) > gang.min_workers]
        if not able:
            return None
        victim = max(able, key=lambda gang: (len(kept[gang.id]) - gang.min_workers, gang.submitted_at, gang.id))
        room.release(victim, [kept[victim.id].pop(_away_from_main(kept[victim.id]))])
        nodes = room.gathered(trial, trial.min_workers)
    for gang in spare:
        gone = list(gang.nodes)
        for node in kept[gang.id]:
            gone.remove(node)
        if gone:
            room.release(gang, gone, workers=-1)
            if again := room.gathered(trial, trial.min_workers):
                nodes, kept[gang.id] = again, list(gang.nodes)
            else:
                room.release(gang, gone)
    shrunk = {gang.id: tuple(kept[gang.id]) for gang in spare if len(kept[gang.id]) < len(gang.nodes)}
    return StartingRoom(nodes, shrunk)


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
