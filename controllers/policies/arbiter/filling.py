"""Who gets the next trial's worth of a cluster, until nothing more fits: weighted, hierarchical, by dominant shares.

This is dominant resource fairness (Ghodsi et al., NSDI'11, algorithm 1) with weights (section 4.3): the next trial is
that of the sweep with the least dominant share for its weight. Namespaces are served so among themselves, and sweeps
within their namespace, as in hierarchical DRF (Bhattacharya et al., SoCC'13): what one cannot use goes to the others.
Where two have the same, what runs goes before what waits, so that nothing changes hands for nothing.
"""

import heapq
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

from controllers.core.model import Node, NodeKind, NodeName, TrialId
from controllers.policies.arbiter.demands import NOTHING, Amount, Claimant, NamespaceTerms, SweepDemand, Terms, terms_of
from controllers.policies.arbiter.ledger import FoundRoom, RoomLedger, Shape, all_that_can_come, shape_of

_DIGITS = 9
_Key = tuple[int, float, bool, float, str]


@dataclass(slots=True)
class Line:
    """One sweep's trials in the order in which they get their places, and what came of it.

    ``kept`` are running trials that stay, ``unkept`` those whose room others get, ``over_quota`` those that no quota
    allows. ``given`` are places of trials that wait, ``blocked`` counts those that got none; ``quota`` names the quota
    that speaks against them.
    """

    sweep: SweepDemand
    todo: list[Claimant]
    share: float = 0.0
    amount: Amount = NOTHING
    kept: list[Claimant] = field(default_factory=list)
    unkept: list[Claimant] = field(default_factory=list)
    over_quota: list[Claimant] = field(default_factory=list)
    given: dict[TrialId, tuple[Claimant, FoundRoom]] = field(default_factory=dict)
    blocked: list[Claimant] = field(default_factory=list)
    quota: str = ""
    _unfit: set[Shape] = field(default_factory=set)

    def key(self) -> _Key:
        """Return the rank among the sweeps of its namespace, the least first."""
        following = self.todo[-1]
        sweep = self.sweep
        return (
            -sweep.priority,
            round(self.share / sweep.weight, _DIGITS),
            not following.nodes,
            following.since,
            sweep.name,
        )

    def take_next(self) -> Claimant | None:
        """Take the next trial out of the line; None where the rest is blocked."""
        while self.todo:
            trial = self.todo.pop()
            if not trial.nodes and shape_of(trial) in self._unfit:
                self.blocked.append(trial)
            else:
                return trial
        return None

    def block(self, trial: Claimant) -> None:
        """Note that there is no place for a trial, nor for others like it."""
        self.blocked.append(trial)
        self._unfit.add(shape_of(trial))


@dataclass(slots=True)
class _Namespace:
    """The lines of a namespace; ``amount`` is what they have as decided so far, ``held`` as things are now."""

    name: str
    terms: NamespaceTerms
    lines: list[tuple[_Key, Line]] = field(default_factory=list)
    share: float = 0.0
    amount: Amount = NOTHING
    held: Amount = NOTHING

    def key(self) -> _Key:
        following = self.lines[0][1].todo[-1]
        share = round(self.share / self.terms.weight, _DIGITS)
        return -self.terms.priority, share, not following.nodes, following.since, self.name


class Filling:
    """Deals out a cluster.

    Args:
        lines: The sweeps, each with its trials, the next to be served at the end.
        terms: What each namespace is granted.
        nodes: What all of them together can have of each node.
        kinds: What nodes can come.
    """

    def __init__(
        self,
        lines: Sequence[Line],
        terms: Terms,
        nodes: Sequence[Node],
        kinds: Sequence[NodeKind] = (),
    ) -> None:
        self.lines = lines
        self._namespaces = {
            name: _Namespace(name, terms_of(name, terms)) for name in sorted({ln.sweep.namespace for ln in lines})
        }
        held = {line.sweep.name: sum((trial.asked for trial in line.todo if trial.nodes), NOTHING) for line in lines}
        there = sum((Amount(node.cpu, node.memory, node.devices) for node in nodes if node.ready), NOTHING)
        self._totals = there + all_that_can_come(kinds)
        shares = {line.sweep.name: self._dominant(held[line.sweep.name]) / line.sweep.weight for line in lines}
        running = {trial.id: shares[line.sweep.name] for line in lines for trial in line.todo if trial.nodes}
        self.ledger = RoomLedger(nodes, kinds, running)
        for line in lines:
            for trial in line.todo:
                if trial.nodes:
                    self.ledger.expect(trial)
            namespace = self._namespaces[line.sweep.namespace]
            for trial in line.sweep.trials:
                if trial.leaving:
                    self.ledger.let_leave(trial)
                if trial.nodes or trial.starting:
                    namespace.held += trial.asked

    def count(self, line: Line, amount: Amount) -> None:
        """Count what a sweep has whatever is decided."""
        namespace = self._namespaces[line.sweep.namespace]
        line.amount += amount
        namespace.amount += amount
        line.share, namespace.share = self._dominant(line.amount), self._dominant(namespace.amount)

    def serve(self, line: Line, trial: Claimant) -> None:
        """Decide on one trial."""
        trial = self.ledger.as_it_starts(trial)
        quota = self._namespaces[line.sweep.namespace].terms.why_over(
            self._namespaces[line.sweep.namespace].amount + trial.asked
        )
        if quota is not None:
            line.quota = quota
            if trial.nodes:
                self.ledger.give_up(trial)
                line.over_quota.append(trial)
            else:
                line.block(trial)
        elif trial.nodes:
            if self.ledger.keep(trial):
                line.kept.append(trial)
                self.count(line, trial.asked)
            else:
                line.unkept.append(trial)
        elif (room := self.ledger.place(trial)) is not None:
            line.given[trial.id] = trial, self._within_quota(line, trial, room)
            self.count(line, trial.asked)
        else:
            line.block(trial)

    def _within_quota(self, line: Line, trial: Claimant, room: FoundRoom) -> FoundRoom:
        """Return ``room``, which is not clear as long as the namespace has too much: others of it must leave first."""
        namespace = self._namespaces[line.sweep.namespace]
        quota = namespace.terms.why_over(namespace.held + trial.asked) if room.clear else None
        if quota is not None:
            line.quota = quota
            return replace(room, clear=False)
        if room.clear:
            namespace.held += trial.asked
        return room

    def beyond_quota(self, line: Line, waiting: Sequence[Claimant]) -> set[TrialId]:
        """Return those of a sweep's waiting trials, in turn, that its namespace's quota does not allow now.

        The others count as held from then on: they may start.
        """
        namespace, beyond = self._namespaces[line.sweep.namespace], set[TrialId]()
        for trial in waiting:
            if (quota := namespace.terms.why_over(namespace.held + trial.asked)) is None:
                namespace.held += trial.asked
            else:
                line.quota = quota
                beyond.add(trial.id)
        return beyond

    def fill(self) -> None:
        """Serve all, the one that has the least for its weight first."""
        for line in self.lines:
            if line.todo:
                namespace = self._namespaces[line.sweep.namespace]
                heapq.heappush(namespace.lines, (line.key(), line))
        waiting = [(namespace.key(), namespace.name) for namespace in self._namespaces.values() if namespace.lines]
        heapq.heapify(waiting)
        while waiting:
            _, name = heapq.heappop(waiting)
            namespace = self._namespaces[name]
            _, line = heapq.heappop(namespace.lines)
            if (trial := line.take_next()) is not None:
                self.serve(line, trial)
            if line.todo:
                heapq.heappush(namespace.lines, (line.key(), line))
            if namespace.lines:
                heapq.heappush(waiting, (namespace.key(), name))

    def first_without_room(self) -> Line | None:
        """Return the least served of the lines that others owe room, or else of those that got less than they want."""

        def rank(line: Line) -> tuple[float, ...]:
            namespace = self._namespaces[line.sweep.namespace]
            share = namespace.share / namespace.terms.weight
            return -namespace.terms.priority, share, -line.sweep.priority, line.share / line.sweep.weight

        owed = [line for line in self.lines if any(not room.clear for _, room in line.given.values())]
        short = owed or [line for line in self.lines if line.blocked]
        return min(short, key=lambda line: (rank(line), line.sweep.name), default=None)

    def promised_on(self) -> Iterator[tuple[Line, NodeName, Amount]]:
        """Yield what is meant for trials that wait, and on what node."""
        for line in self.lines:
            for trial, room in line.given.values():
                for name in room.nodes:
                    yield line, name, trial.each

    def _dominant(self, amount: Amount) -> float:
        """Return the greatest part that an amount is of what there is of anything."""
        totals = self._totals
        parts = [
            amount.cpu / totals.cpu if totals.cpu else 0.0,
            amount.memory / totals.memory if totals.memory else 0.0,
        ]
        for kind, count in amount.devices.counts:
            there = totals.devices.count(kind)
            parts.append(count / there if there else 0.0)
        return max(parts)
