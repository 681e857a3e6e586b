"""Where SpeCon sends trials: converged ones (Algorithm 4 of the thesis), and those that even out the nodes (5)."""

import math
from bisect import bisect_left, insort
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from controllers.core.model import Category, NodeName, Snapshot, Trial, TrialId
from controllers.policies.kit.capacity import RequestShape, request_shape
from controllers.policies.kit.occupancy import Occupancy, heading, weight


@dataclass(slots=True)
class ScoredNodes:
    """The nodes with their scores, while requests for moves are served one after another.

    A move changes two nodes, so the order of all nodes is kept up instead of being sorted for each request: there may
    be as many requests as trials.
    """

    occupancy: Occupancy
    categories: Mapping[TrialId, Category]
    trials: Mapping[TrialId, Trial]
    _ranked: list[tuple[float, float, NodeName]] = field(init=False)
    _full: dict[RequestShape, set[NodeName]] = field(init=False)

    def __post_init__(self) -> None:
        self._full = {}
        self._ranked = sorted(self._rank(node) for node in self.ready())

    @classmethod
    def of(cls, snapshot: Snapshot, categories: Mapping[TrialId, Category]) -> "ScoredNodes":
        """Return the nodes that ``snapshot`` shows; a moving trial counts where it is heading."""
        trials = {trial.id: trial for trial in snapshot.unended if heading(trial)}
        return cls(Occupancy.of(snapshot), categories, trials)

    def ready(self) -> list[NodeName]:
        """Return the nodes that trials may be sent to, by name."""
        return [name for name, node in self.occupancy.capacity.nodes.items() if node.ready]

    def is_ready(self, node: NodeName) -> bool:
        """Return whether trials may be sent to ``node``."""
        nodes = self.occupancy.capacity.nodes
        return node in nodes and nodes[node].ready

    def score(self, node: NodeName) -> float:
        """Return ``S_w = 2|PC| + 1.5|WC| + 1|CC|`` of ``node`` (Algorithm 4, line 3)."""
        return weight(self.categories[trial.id] for trial in self.occupancy.on(node))

    def unconverged(self, node: NodeName) -> int:
        """Return ``|PC| + |WC|`` of ``node``."""
        return sum(self.categories[trial.id] is not Category.CONVERGED for trial in self.occupancy.on(node))

    def best_for(self, trial: Trial) -> tuple[NodeName, float] | None:
        """Return the ready node of least score that is the trial's own or has room for it, and that score.

        Among several it is the one with the least of its CPU in use, and then the first by name. None where no node
        may take it.
        """
        full = self._full.setdefault(request_shape(trial), set())
        for score, _, node in self._ranked:
            if node == trial.node:
                return node, score
            if node in full:
                continue
            if self.occupancy.capacity.fits(trial, node):
                return node, score
            full.add(node)  # for good: a move takes no load off a node before its attempt has ended
        return None

    def move(self, trial: Trial, node: NodeName) -> None:
        """Count ``trial``, which is not moved yet, on ``node`` from now on."""
        changed = [name for name in {*heading(trial), node} if self.is_ready(name)]
        for name in changed:
            del self._ranked[bisect_left(self._ranked, self._rank(name))]
        self.occupancy.move(trial, node)
        for name in changed:
            insort(self._ranked, self._rank(name))

    def _rank(self, node: NodeName) -> tuple[float, float, NodeName]:
        place = self.occupancy.capacity.nodes[node]
        return self.score(node), place.cpu_used / place.cpu if place.cpu > 0 else 1.0, node


def destination(nodes: ScoredNodes, trial: Trial, *, strict: bool) -> NodeName | None:
    """Return where ``trial`` should run (Algorithm 4): its own node where it is among the best, or the best other one.

    The best are the ready nodes with room that have the least score; among several, the one with the
    least of its CPU in use, and then the first by name.

    Returns:
        None where no node may take it, or (``strict``) where the destination's score, with the
        trial, would not be below the score of the node it leaves.
    """
    own, best = trial.node, nodes.best_for(trial)
    if best is None:
        return None
    node, least = best
    if own is None:
        return node
    if nodes.is_ready(own) and nodes.score(own) == least:
        return own
    if strict and least + weight([Category.CONVERGED]) >= nodes.score(own):
        return None
    return node


def rebalance(nodes: ScoredNodes, eligible_since: Mapping[TrialId, float]) -> Iterator[tuple[Trial, NodeName]]:
    """Yield moves that spread the trials (Algorithm 5), each counted on ``nodes`` before the next is looked for.

    An idle node takes trials while it has fewer than ``ceil(bf)``, where bf is trials per ready node. With
    no idle node, each that has fewer than ``floor(bf) - 1`` takes trials up to that. A trial comes from a
    node above bf with at least two more than the receiving one, so that no move makes a new imbalance;
    the one that became eligible last goes first, as it has the most left to do.

    Args:
        nodes: Where the live trials are; changed as moves are yielded.
        eligible_since: The trials that may still be moved, and since when, in seconds.
    """
    ready, count = nodes.ready(), nodes.occupancy.count
    if not ready:
        return
    balance = len(nodes.trials) / len(ready)
    idle = [node for node in ready if not count(node)]
    limit = math.ceil(balance) if idle else math.floor(balance) - 1
    left = dict(eligible_since)
    for node in idle or ready:
        while count(node) < limit:
            offered = [
                trial
                for trial in (nodes.trials[name] for name in left)
                if all(count(source) > max(balance, count(node) + 1) for source in heading(trial))
                and nodes.occupancy.capacity.fits(trial, node)
            ]
            if not offered:
                break
            trial = min(offered, key=lambda trial: (-left[trial.id], trial.id))
            del left[trial.id]
            nodes.move(trial, node)
            yield trial, node
