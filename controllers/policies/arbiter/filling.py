"""Who gets the next trial's worth of a cluster, until nothing more fits: weighted, hierarchical, by dominant shares.

This is dominant resource fairness (Ghodsi et al., NSDI'11, algorithm 1) with weights (section 4.3): the next trial is
that of the sweep with the least dominant share for its weight. Namespaces are served so among themselves, and sweeps
within their namespace, as in hierarchical DRF (Bhattacharya et al., SoCC'13): what one cannot use goes to the others.
Where two have the same, what runs goes before what waits, so that nothing changes hands for nothing.
"""

import heapq
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from controllers.core.model import Node, NodeKind, NodeName, TrialId
from controllers.policies.arbiter.demands import (
    NOTHING,
    SLACK,
    Amount,
    Claimant,
    NamespaceTerms,
    SweepDemand,
    Terms,
    terms_of,
)
from controllers.policies.arbiter.ledger import FoundRoom, Occupant, RoomLedger, Shape, all_that_can_come, shape_of

_DIGITS = 9
LOOKS_EACH: Final = 128
"""Looks at nodes, or at parts of all of them, that a sweep has for each trial, beside a few at all nodes."""
_LOOKS_AT_ALL: Final = 16
_Key = tuple[bool, float, int, float, bool, float, str]
"""Whether a sweep has no claim to come first, since when it starves, and what ranks it otherwise."""


@dataclass(slots=True)
class Line:
    """One sweep's trials in the order in which they get their places, and what came of it.

    ``kept`` are running trials that stay, ``unkept`` those whose room others get, ``over_quota`` those that no quota
    allows. ``given`` are places of trials that wait, ``blocked`` counts those that got none; ``quota`` names the quota
    that speaks against them. ``starving`` says since when it has had nothing, where that is too long; ``deaf`` is what
    its trials hold that do not leave though they were asked to: it counts in its ``share``. ``looks`` is how often
    nodes may still be looked at for its trials: where each asks for other amounts, all nodes for each take too long.
    """

    sweep: SweepDemand
    todo: list[Claimant]
    starving: float | None = None
    deaf: Amount = NOTHING
    looks: int = 0
    share: float = 0.0
    amount: Amount = NOTHING
    kept: list[Claimant] = field(default_factory=list)
    unkept: list[Claimant] = field(default_factory=list)
    over_quota: list[Claimant] = field(default_factory=list)
    given: dict[TrialId, tuple[Claimant, FoundRoom]] = field(default_factory=dict)
    blocked: list[Claimant] = field(default_factory=list)
    quota: str = ""
    _unfit: set[Shape] = field(default_factory=set)

    @property
    def starves(self) -> bool:
        """Whether it has had nothing for too long, and was given nothing yet."""
        return self.starving is not None and not self.given and bool(self.todo)

    def key(self) -> _Key:
        """Return the rank among the sweeps of its namespace, the least first."""
        following = self.todo[-1]
        sweep = self.sweep
        return (
            not self.starves,
            self.starving if self.starving is not None and self.starves else 0.0,
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
    """The lines of a namespace; ``amount`` is what they have as decided so far, ``held`` as things are now.

    ``deaf`` is what those of their trials hold that do not leave.
    """

    name: str
    terms: NamespaceTerms
    lines: list[tuple[_Key, Line]] = field(default_factory=list)
    share: float = 0.0
    amount: Amount = NOTHING
    held: Amount = NOTHING
    deaf: Amount = NOTHING

    def key(self) -> tuple[int, float, bool, float, str]:
        """Return the rank among all namespaces, the least first."""
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
        deaf: The trials that do not leave though they were asked to: their room counts as their sweep's.
        most: The shares that namespaces came to when this was dealt out before: what is free goes to others, where one
            has as much as that and waits for its own trials to leave.
    """

    def __init__(
        self,
        lines: Sequence[Line],
        terms: Terms,
        nodes: Sequence[Node],
        kinds: Sequence[NodeKind] = (),
        deaf: Collection[TrialId] = frozenset(),
        most: Mapping[str, float] | None = None,
    ) -> None:
        self.lines = lines
        self._most = most or {}
        self._namespaces = {
            name: _Namespace(name, terms_of(name, terms)) for name in sorted({ln.sweep.namespace for ln in lines})
        }
        there = sum((Amount(node.cpu, node.memory, node.devices) for node in nodes if node.ready), NOTHING)
        self._totals = there + all_that_can_come(kinds)
        self.ledger = RoomLedger(nodes, kinds, self._holders())
        for line in lines:
            for trial in line.todo:
                if trial.nodes:
                    self.ledger.expect(trial)
            namespace = self._namespaces[line.sweep.namespace]
            for trial in line.sweep.trials:
                if trial.id in deaf:
                    self._hold(line, trial)
                elif trial.leaving:
                    self.ledger.let_leave(trial)
                if trial.nodes or trial.starting:
                    namespace.held += trial.asked
        for line in lines:
            line.looks = LOOKS_EACH * len(line.todo) + _LOOKS_AT_ALL * len(nodes)
            # What is about to run is decided.
            self.count(line, sum((trial.asked for trial in line.sweep.trials if trial.starting), NOTHING))

    def _hold(self, line: Line, trial: Claimant) -> None:
        """Count what a deaf trial holds that it was asked to leave."""
        nodes = trial.nodes if trial.leaving else trial.comes_from
        self.ledger.hold(replace(trial, nodes=nodes))
        line.deaf += trial.each * len(nodes)
        self._namespaces[line.sweep.namespace].deaf += trial.each * len(nodes)

    def _holders(self) -> dict[TrialId, Occupant]:
        """Return, for each trial that runs and was not told to leave, how much its namespace and its sweep have."""
        of_lines = [sum((trial.asked for trial in line.todo if trial.nodes), NOTHING) for line in self.lines]
        of_namespaces = dict.fromkeys(self._namespaces, NOTHING)
        for line, amount in zip(self.lines, of_lines, strict=True):
            of_namespaces[line.sweep.namespace] += amount
        shares = {
            name: self._dominant(amount) / self._namespaces[name].terms.weight for name, amount in of_namespaces.items()
        }
        holders: dict[TrialId, Occupant] = {}
        for line, amount in zip(self.lines, of_lines, strict=True):
            name = line.sweep.namespace
            holder = Occupant(name, shares[name], self._dominant(amount) / line.sweep.weight)
            holders |= {trial.id: holder for trial in line.todo if trial.nodes}
        return holders

    def count(self, line: Line, amount: Amount) -> None:
        """Count what a sweep has whatever is decided."""
        namespace = self._namespaces[line.sweep.namespace]
        line.amount += amount
        namespace.amount += amount
        line.share = self._dominant(line.amount + line.deaf)
        namespace.share = self._dominant(namespace.amount + namespace.deaf)

    def serve(self, line: Line, trial: Claimant) -> None:
        """Decide on one trial."""
        if line.looks <= 0 and not trial.nodes:
            line.block(trial)
            return
        before = self.ledger.looks
        self._serve(line, self.ledger.as_it_starts(trial))
        line.looks -= self.ledger.looks - before

    def _serve(self, line: Line, trial: Claimant) -> None:
        namespace = self._namespaces[line.sweep.namespace]
        quota = namespace.terms.why_over(namespace.amount + namespace.deaf + trial.asked)
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
        elif (room := self.ledger.place(trial, namespace.name, clear=self._may_have(namespace, trial))) is not None:
            line.given[trial.id] = trial, self._within_quota(line, trial, room)
            self.count(line, trial.asked)
        else:
            line.block(trial)

    def _may_have(self, namespace: _Namespace, trial: Claimant) -> bool:
        """Return whether a trial may have room that is free, beside what its namespace holds now."""
        most = self._most.get(namespace.name)
        return most is None or self._dominant(namespace.held + trial.asked) <= most + SLACK

    def shares_if_uneven(self) -> dict[str, float] | None:
        """Return the share that each namespace came to, None where what is free was dealt out rightly.

        It was not where a namespace got of it that holds its part already, while another waits for what others give
        back: the first may let its own trials take turns, but not at the cost of the second.
        """
        late, early = set[str](), set[str]()
        for line in self.lines:
            for _, room in line.given.values():
                (early if room.clear else late).add(line.sweep.namespace)
        shares = {name: namespace.share for name, namespace in self._namespaces.items()}
        over = {name for name in early if self._dominant(self._namespaces[name].held) > shares[name] + SLACK}
        return shares if any(late - {name} for name in over) else None

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
