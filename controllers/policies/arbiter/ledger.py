"""The room on each node, while one trial after another gets its place there."""

from bisect import bisect_left
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from controllers.core.model import Node, NodeKind, NodeName, TrialId
from controllers.policies.arbiter.demands import NOTHING, Amount, Claimant

MOST_LOOKED_AT: Final = 16
"""Nodes among which the one is chosen where the least must leave for a trial."""
MOST_NEW: Final = 256
"""Nodes that are taken to come at most, of all kinds together."""
Shape = tuple[Amount, int, frozenset[NodeName] | None]
"""What each worker asks for, how many there are, and the nodes that they may use: such trials fit on the same nodes."""


def shape_of(trial: Claimant) -> Shape:
    """Return what trials must share to fit on the same nodes."""
    return trial.each, trial.workers, trial.may_use


@dataclass(frozen=True, slots=True)
class FoundRoom:
    """Nodes for a trial's workers, by rank.

    ``clear`` tells that nothing has to leave them first, ``new`` what kinds those are that have to come.
    """

    nodes: tuple[NodeName, ...]
    clear: bool
    new: Mapping[NodeName, str] = field(default_factory=dict)


class RoomLedger:
    """The nodes with what is free of them; running trials whose turn has not come yet count apart.

    Args:
        nodes: what the trials of all sweeps together can have of each.
        kinds: what nodes can come.
        running: the trials that run, each with its part of what all have: of two nodes, what has the most leaves first.
    """

    def __init__(self, nodes: Sequence[Node], kinds: Sequence[NodeKind], running: Mapping[TrialId, float]) -> None:
        ready = [node for node in nodes if node.ready]
        self.free = {node.name: Amount(node.cpu, node.memory, node.devices - node.devices_starting) for node in ready}
        self._sizes = dict(self.free)
        self._only_for = {node.name: node.only_for for node in ready}
        self._order = list(self.free)
        self._kinds = {kind.name: kind for kind in kinds}
        self._left = {kind.name: min(kind.more, MOST_NEW) for kind in kinds}
        self._new: dict[NodeName, str] = {}
        self._share = running
        self._undecided: dict[NodeName, dict[TrialId, Amount]] = {name: {} for name in self.free}
        self._undecided_sum = dict.fromkeys(self.free, NOTHING)
        self._leaving = dict.fromkeys(self.free, NOTHING)
        self._from: dict[tuple[Shape, bool], int] = {}
        self._hopeless: set[Shape] = set()
        self._workers: dict[tuple[Shape, int], int] = {}
        for kind in kinds:
            for _ in range(kind.coming):
                self._add_node(kind)

    def expect(self, trial: Claimant) -> None:
        """Count a running trial as one whose turn will come."""
        for name, amount in _by_node(trial).items():
            if name in self.free:
                self._undecided[name][trial.id] = amount
                self._undecided_sum[name] += amount

    def let_leave(self, trial: Claimant) -> None:
        """Count what a trial holds that leaves already: room for others, though not yet."""
        for name, amount in _by_node(trial).items():
            if name in self.free:
                self._leaving[name] += amount
                self._undecided_sum[name] += amount

    def keep(self, trial: Claimant) -> bool:
        """Decide on a running trial: leave it where it is, if its room was not given away; return whether it stays."""
        amounts = {name: amount for name, amount in _by_node(trial).items() if name in self.free}
        for name in amounts:
            self._undecided_sum[name] -= self._undecided[name].pop(trial.id)
        if not all(amount.within(self.free[name]) for name, amount in amounts.items()):
            self._from.clear()  # what is given up here is room for others
            return False
        for name, amount in amounts.items():
            self.free[name] -= amount
        return True

    def give_up(self, trial: Claimant) -> None:
        """Decide on a running trial: it shall leave."""
        for name in _by_node(trial):
            if name in self.free:
                self._undecided_sum[name] -= self._undecided[name].pop(trial.id)
        self._from.clear()

    def place(self, trial: Claimant) -> FoundRoom | None:
        """Give a trial that waits a place: where nothing runs, else on a node that comes, else where others must leave.

        Return None where there is none at all.
        """
        shape = shape_of(trial)
        if shape in self._hopeless:
            return None
        room = self._clear_room(trial, shape) or self._room_to_come(trial) or self._room_of_others(trial, shape)
        if room is None:
            self._hopeless.add(shape)
            return None
        for name in room.nodes:
            self.free[name] -= trial.each
        return room

    def as_it_starts(self, trial: Claimant) -> Claimant:
        """Return a gang that waits with as many of its workers as it would get if nothing else were there.

        Any other trial comes back as it is.
        """
        if trial.nodes or not 0 < trial.least < trial.workers:
            return trial
        kind = shape_of(trial), trial.least
        if kind not in self._workers:
            more = range(trial.least + 1, trial.workers + 1)
            fitting = bisect_left(more, 1, key=lambda number: int(self.never_fits(replace(trial, workers=number))))
            self._workers[kind] = trial.least + fitting
        return replace(trial, workers=self._workers[kind])

    def never_fits(self, trial: Claimant) -> bool:
        """Return whether the trial would fit nowhere, if nothing else were there and all nodes came that can."""
        coming = any(trial.asked.within(_size(kind)) for kind in self._kinds.values())
        return not coming and not self._gather(trial, self._sizes, self._order)

    def _clear_room(self, trial: Claimant, shape: Shape) -> FoundRoom | None:
        begin = self._from.get((shape, True), 0)
        rooms = {}
        for index in range(begin, len(self._order)):
            name = self._order[index]
            rooms[name] = self.free[name] - self._undecided_sum[name]
            if not trial.each.within(rooms[name]):
                continue
            if trial.workers == 1 and self._allows(trial, name):
                # Room only shrinks until something is given up: what came before this node need not be looked at again.
                self._from[shape, True] = index
                return FoundRoom((name,), clear=True, new=self._kinds_of((name,)))
        if trial.workers == 1:
            self._from[shape, True] = len(self._order)
            return None
        nodes = self._gather(trial, rooms, self._order)
        return FoundRoom(nodes, clear=True, new=self._kinds_of(nodes)) if nodes else None

    def _room_to_come(self, trial: Claimant) -> FoundRoom | None:
        fitting = (
            kind
            for name, kind in sorted(self._kinds.items())
            if self._left[name] > 0
            and trial.asked.within(_size(kind))
            and kind.only_for <= trial.each.devices.kinds()
            and trial.may_use is None
        )
        kind = next(fitting, None)
        if kind is None or len(self._new) >= MOST_NEW:
            return None
        self._left[kind.name] -= 1
        nodes = (self._add_node(kind),) * trial.workers
        return FoundRoom(nodes, clear=True, new=self._kinds_of(nodes))

    def _room_of_others(self, trial: Claimant, shape: Shape) -> FoundRoom | None:
        if trial.workers > 1:
            nodes = self._gather(trial, self.free, self._order)
            return FoundRoom(nodes, clear=False) if nodes else None
        begin, found = self._from.get((shape, False), 0), list[NodeName]()
        for index in range(begin, len(self._order)):
            name = self._order[index]
            if trial.each.within(self.free[name]) and self._allows(trial, name):
                if not found:
                    self._from[shape, False] = index
                found.append(name)
                if len(found) == MOST_LOOKED_AT:
                    break
        if not found:
            return None
        return FoundRoom((min(found, key=lambda name: (self._cost(trial, name), name)),), clear=False)

    def _cost(self, trial: Claimant, name: NodeName) -> tuple[float, int]:
        """Return what room for a trial on a node costs: first those who have little, then how many must leave."""
        clear = self.free[name] - self._undecided_sum[name] + self._leaving[name]
        lacking, leaving = trial.each - clear, list[float]()
        there = sorted(self._undecided[name].items(), key=lambda item: (-self._share.get(item[0], 0.0), item[0]))
        for other, amount in there:
            if lacking.within(NOTHING):
                break
            lacking -= amount
            leaving.append(self._share.get(other, 0.0))
        return -min(leaving, default=0.0), len(leaving)

    def _gather(
        self, trial: Claimant, rooms: Mapping[NodeName, Amount], order: Iterable[NodeName]
    ) -> tuple[NodeName, ...]:
        """Return nodes for all workers of a trial, none where they do not all fit."""
        chosen: list[NodeName] = []
        for name in order:
            here = 0
            while (
                len(chosen) < trial.workers
                and name in rooms
                and self._allows(trial, name)
                and (trial.each * (here + 1)).within(rooms[name])
            ):
                here += 1
                chosen.append(name)
        return tuple(chosen) if len(chosen) == trial.workers else ()

    def _allows(self, trial: Claimant, name: NodeName) -> bool:
        free_of_charge = self._only_for.get(name, frozenset()) <= trial.each.devices.kinds()
        return free_of_charge and (trial.may_use is None or name in trial.may_use)

    def _add_node(self, kind: NodeKind) -> NodeName:
        name = NodeName(f"{kind.name} to come {len(self._new)}")
        self._new[name] = kind.name
        self.free[name] = _size(kind)
        self._only_for[name] = kind.only_for
        self._undecided[name], self._undecided_sum[name], self._leaving[name] = {}, NOTHING, NOTHING
        self._order.append(name)
        return name

    def _kinds_of(self, nodes: Iterable[NodeName]) -> dict[NodeName, str]:
        return {name: self._new[name] for name in nodes if name in self._new}


def all_that_can_come(kinds: Sequence[NodeKind]) -> Amount:
    """Return what all nodes have together that can come, as far as they are counted."""
    return sum((_size(kind) * (kind.coming + int(min(kind.more, MOST_NEW))) for kind in kinds), NOTHING)


def _by_node(trial: Claimant) -> dict[NodeName, Amount]:
    return {name: trial.each * trial.nodes.count(name) for name in dict.fromkeys(trial.nodes)}


def _size(kind: NodeKind) -> Amount:
    return Amount(kind.cpu, kind.memory, kind.devices)
