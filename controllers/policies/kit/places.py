"""Where trials start, and where suspended ones go on: in what order they get a place, and on which node."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from heapq import heapify, heappop, heapreplace
from typing import Any, assert_never

from controllers.core.actions import Clone, Migrate, Place, Proposal, Resize, Stop, Suspend
from controllers.core.model import Node, NodeName, Phase, Snapshot, Trial, TrialId
from controllers.policies.kit.capacity import Capacity, RequestShape, request_shape
from controllers.policies.kit.occupancy import Occupancy

NodeCost = Callable[[Node, Sequence[Trial]], float]
"""What a node costs a trial that comes to it, by the trials that are there."""


def waiting(snapshot: Snapshot) -> Iterator[Trial]:
    """Yield the trials that wait for a place, first attempts and suspended ones."""
    return (trial for trial in snapshot.unended if trial.waits)


def places(
    snapshot: Snapshot, occupancy: Occupancy, cost: NodeCost, reason: Callable[[Node, float], str]
) -> Iterator[Proposal]:
    """Yield a place for each waiting trial that fits somewhere, in the order of submission; ``occupancy`` is kept up.

    It is the ready node of least ``cost`` that has room; of several, the one with the least of its CPU requested, then
    the first by name. A trial that fits nowhere waits on and does not hold up a smaller one.
    """
    capacity, nodes = occupancy.capacity, occupancy.ready()

    def ranked(node: Node) -> tuple[float, float, NodeName]:
        return cost(node, occupancy.on(node.name)), capacity.requested(node.name) / node.cpu, node.name

    ranks = {node.name: ranked(node) for node in nodes}
    # Placing a trial only takes room away, so what does not fit now will not fit later in this decision.
    unfit: set[RequestShape] = set()
    for trial in sorted(waiting(snapshot), key=lambda trial: (trial.submitted_at, trial.id)):
        shape = request_shape(trial)
        roomy = [] if shape in unfit else [node for node in nodes if capacity.fits(trial, node.name)]
        if not roomy:
            unfit.add(shape)
            continue
        node = min(roomy, key=lambda node: ranks[node.name])
        yield Proposal(Place.on(node.name, trial), reason(node, ranks[node.name][0]))
        occupancy.place(trial, node.name)
        ranks[node.name] = ranked(node)


def admit_trials(
    snapshot: Snapshot, capacity: Capacity, rank: Callable[[Trial], Any], reason: Callable[[Trial], str]
) -> Iterator[Proposal]:
    """Yield a place for each waiting trial that fits somewhere, the one of least ``rank`` first.

    It is the node with the most cores that nobody requests. A trial that fits nowhere does not hold up a smaller one.
    ``capacity`` is kept up.
    """
    for trial in sorted(waiting(snapshot), key=lambda trial: (rank(trial), trial.id)):
        free = {
            name: node.cpu - capacity.requested(name)
            for name, node in capacity.nodes.items()
            if capacity.fits(trial, name)
        }
        if free:
            place = Place.on(min(free, key=lambda name: (-free[name], name)), trial)
            capacity.apply(place)
            yield Proposal(place, reason(trial))


def with_room(snapshot: Snapshot, trials: Sequence[Trial]) -> tuple[list[Trial], list[Trial]]:
    """Return those of ``trials`` for which there is room, one after the other, and those for which there is none.

    A trial that was placed and does not run yet will take room, though no node shows it: it counts as if it went to the
    node with the most cores that nobody requests, as each of ``trials`` does.
    """
    starting = [trial for trial in snapshot.unended if trial.phase is Phase.PENDING and trial.starts]
    nodes = roomiest_nodes(snapshot, (*starting, *trials))
    begun = {trial.id for trial in starting}
    new = [trial for trial in trials if trial.id not in begun]
    return [trial for trial in new if nodes[trial.id] is not None], [trial for trial in new if nodes[trial.id] is None]


def roomiest_nodes(snapshot: Snapshot, trials: Iterable[Trial]) -> dict[TrialId, NodeName | None]:
    """Return the node to which each of ``trials`` goes, one after the other; None where there is no room for it.

    It is the node with the most cores that nobody requests, as the default scheduler chooses.
    """
    capacity = Capacity.of(snapshot)
    nodes: dict[TrialId, NodeName | None] = {}
    lines: dict[tuple[RequestShape, tuple[int, int, int]], list[tuple[float, NodeName]]] = {}
    for trial in trials:
        kind = request_shape(trial), (trial.workers, trial.min_workers, trial.max_workers)
        if kind not in lines:
            lines[kind] = [(-_unrequested(capacity, name), name) for name in capacity.nodes]
            heapify(lines[kind])
        nodes[trial.id] = node = _roomiest(capacity, trial, lines[kind])
        if node is not None:
            capacity.apply(Place.on(node, trial))
    return nodes


def _roomiest(capacity: Capacity, trial: Trial, line: list[tuple[float, NodeName]]) -> NodeName | None:
    """Return the node with the most cores that nobody requests, of those with room for ``trial``.

    ``line`` is a heap of those that had room for a trial that asks for the same. Placing trials only takes room away.
    So a node without room leaves it for good, and one with fewer cores than are written there goes further back.
    """
    while line:
        listed, name = line[0]
        now = -_unrequested(capacity, name)
        if now != listed:
            heapreplace(line, (now, name))
        elif capacity.fits(trial, name):
            return name
        else:
            heappop(line)
    return None


def _unrequested(capacity: Capacity, name: NodeName) -> float:
    return capacity.nodes[name].cpu - capacity.requested(name)


def by_deadline(trial: Trial) -> tuple[float, float]:
    """Rank by deadline, then by submission; trials without a deadline come last."""
    deadline = trial.goals.deadline_at
    return (float("inf") if deadline is None else deadline), trial.submitted_at


def nodes_placed_on(proposals: Iterable[Proposal]) -> dict[TrialId, NodeName | None]:
    """Return the node of each first attempt that ``proposals`` place, None where the default scheduler chooses it."""
    nodes: dict[TrialId, NodeName | None] = {}
    for proposal in proposals:
        match proposal.action:
            case Place() as place:
                nodes[place.trial] = place.node
            case Resize() | Migrate() | Suspend() | Stop() | Clone():
                pass
            case _ as other:
                assert_never(other)
    return nodes


def still_starting(snapshot: Snapshot, places: Mapping[TrialId, NodeName]) -> dict[TrialId, NodeName]:
    """Return the ``places`` of trials that have yet to start: a placement rule must not forget them meanwhile.

    A trial that still waits for a place was refused the one it had.
    """
    return {trial.id: places[trial.id] for trial in snapshot.unended if trial.id in places and trial.starts}


def with_places(places: Mapping[TrialId, NodeName], proposals: Iterable[Proposal]) -> dict[TrialId, NodeName]:
    """Return ``places`` with the nodes that ``proposals`` give."""
    return {**places, **{trial: node for trial, node in nodes_placed_on(proposals).items() if node is not None}}
