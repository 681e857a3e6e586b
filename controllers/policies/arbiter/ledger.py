"""The room on each node, while one trial after another gets its place there."""

from bisect import bisect_left
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum, auto
from typing import Final

from controllers.core.model import Node, NodeKind, NodeName, TrialId
from controllers.policies.arbiter.demands import NOTHING, Amount, Claimant
from controllers.policies.arbiter.first_fit import FirstFit
from controllers.policies.arbiter.leaving_order import LeavingOrder

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


@dataclass(frozen=True, slots=True)
class Occupant:
    """Whose a running trial is: the shares that its namespace and its sweep have, each for its weight."""

    namespace: str
    of_namespace: float
    of_sweep: float

    def rank(self, namespace: str) -> tuple[float, bool, float]:
        """Return how soon its trials leave for one of ``namespace``, the greatest first: its own before its equals'."""
        return self.of_namespace, self.namespace == namespace, self.of_sweep


class _Room(Enum):
    """What of a node is looked at: what is free now, with what may still have to leave, with what does not, and all."""

    CLEAR = auto()
    FREE = auto()
    DEAF = auto()
    EMPTY = auto()


class RoomLedger:
    """The nodes with what is free of them; running trials whose turn has not come yet count apart.

    Args:
        nodes: what the trials of all sweeps together can have of each.
        kinds: what nodes can come.
        running: whose the trials are that run: of two nodes, what has the most leaves first.
    """

    def __init__(self, nodes: Sequence[Node], kinds: Sequence[NodeKind], running: Mapping[TrialId, Occupant]) -> None:
        ready = [node for node in nodes if node.ready]
        self.free = {node.name: Amount(node.cpu, node.memory, node.devices - node.devices_starting) for node in ready}
        self._sizes = dict(self.free)
        self._only_for = {node.name: node.only_for for node in ready}
        self._order = list(self.free)
        self._kinds = {kind.name: kind for kind in sorted(kinds, key=lambda kind: kind.name)}
        self._left = {kind.name: min(kind.more, MOST_NEW) for kind in kinds}
        self._new: dict[NodeName, str] = {}
        self._holders = running
        self._undecided: dict[NodeName, dict[TrialId, Amount]] = {name: {} for name in self.free}
        self._undecided_sum = dict.fromkeys(self.free, NOTHING)
        self._leaving = dict.fromkeys(self.free, NOTHING)
        self._deaf: dict[NodeName, Amount] = {}
        self.unused = dict(self.free)
        """What of each node no trial holds now."""
        self._from: dict[tuple[Shape, bool], int] = {}
        self._hopeless: set[Shape] = set()
        self._looks = 0
        self._workers: dict[tuple[Shape, int], int] = {}
        self._orders: dict[NodeName, dict[str, LeavingOrder]] = {name: {} for name in self.free}
        self._index = {name: index for index, name in enumerate(self._order)}
        self._length = len(self._order) + (MOST_NEW + sum(kind.coming for kind in kinds) if kinds else 0)
        self._rows: dict[frozenset[str], dict[_Room, FirstFit]] = {}
        self._changed = dict.fromkeys(self._order)
        for kind in kinds:
            for _ in range(kind.coming):
                self._add_node(kind)

    @property
    def looks(self) -> int:
        """How much was looked at so far: parts of rows of nodes, and nodes one by one."""
        return self._looks + sum(row.looks for rows in self._rows.values() for row in rows.values())

    def expect(self, trial: Claimant) -> None:
        """Count a running trial as one whose turn will come."""
        for name, amount in _by_node(trial).items():
            if name in self.free:
                self._changed[name] = None
                self.unused[name] -= amount
                self._undecided[name][trial.id] = amount
                self._undecided_sum[name] += amount

    def let_leave(self, trial: Claimant) -> None:
        """Count what a trial holds that leaves already: room for others, though not yet."""
        for name, amount in _by_node(trial).items():
            if name in self.free:
                self._changed[name] = None
                self.unused[name] -= amount
                self._leaving[name] += amount
                self._undecided_sum[name] += amount

    def hold(self, trial: Claimant) -> None:
        """Count what a trial holds that should have left long ago: room for others only where there is no other."""
        for name, amount in _by_node(trial).items():
            if name in self.free:
                self._changed[name] = None
                self.unused[name] -= amount
                self.free[name] -= amount
                self._deaf[name] = self._deaf.get(name, NOTHING) + amount

    def keep(self, trial: Claimant) -> bool:
        """Decide on a running trial: leave it where it is, if its room was not given away; return whether it stays."""
        amounts = {name: amount for name, amount in _by_node(trial).items() if name in self.free}
        for name in amounts:
            self._decide_on(trial, name)
        if not all(amount.within(self.free[name]) for name, amount in amounts.items()):
            self._from.clear()  # what is given up here is room for others
            return False
        for name, amount in amounts.items():
            self.free[name] -= amount
            self._changed[name] = None
        return True

    def give_up(self, trial: Claimant) -> None:
        """Decide on a running trial: it shall leave."""
        for name in _by_node(trial):
            if name in self.free:
                self._decide_on(trial, name)
        self._from.clear()

    def _decide_on(self, trial: Claimant, name: NodeName) -> None:
        amount = self._undecided[name].pop(trial.id)
        self._undecided_sum[name] -= amount
        self._changed[name] = None
        for order in self._orders[name].values():
            order.remove(trial.id, amount)

    def place(self, trial: Claimant, namespace: str = "", *, clear: bool = True) -> FoundRoom | None:
        """Give a trial that waits a place: where nothing runs, else on a node that comes, else where others must leave.

        Last of all, it waits for those that do not leave. Where it must not have ``clear`` room, others leave first.
        Return None where there is no place at all.
        """
        shape = shape_of(trial)
        if shape in self._hopeless:
            return None
        room = (self._clear_room(trial, shape) or self._room_to_come(trial)) if clear else None
        room = room or self._room_of_others(trial, shape, namespace)
        if room is None and self._deaf:
            room = self._room_of_deaf(trial, shape, namespace)
        if room is None:
            if clear:
                self._hopeless.add(shape)
            return None
        for name in room.nodes:
            self.free[name] -= trial.each
            self._changed[name] = None
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
        return not coming and not self._gather(trial, _Room.EMPTY)

    def _clear_room(self, trial: Claimant, shape: Shape) -> FoundRoom | None:
        if trial.workers == 1:
            # Room only shrinks until something is given up: what came before this node need not be looked at again.
            index = self._first(_Room.CLEAR, trial, self._from.get((shape, True), 0))
            self._from[shape, True] = len(self._order) if index is None else index
            nodes: tuple[NodeName, ...] = () if index is None else (self._order[index],)
        else:
            nodes = self._gather(trial, _Room.CLEAR)
        return FoundRoom(nodes, clear=True, new=self._kinds_of(nodes)) if nodes else None

    def _room_to_come(self, trial: Claimant) -> FoundRoom | None:
        fitting = (
            kind
            for name, kind in self._kinds.items()
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

    def _room_of_others(self, trial: Claimant, shape: Shape, namespace: str) -> FoundRoom | None:
        if trial.workers > 1:
            nodes = self._gather(trial, _Room.FREE)
            return FoundRoom(nodes, clear=False) if nodes else None
        index = self._first(_Room.FREE, trial, self._from.get((shape, False), 0))
        if index is None:
            return None
        self._from[shape, False] = index
        found = list[NodeName]()
        while index is not None and len(found) < MOST_LOOKED_AT:
            found.append(self._order[index])
            index = self._first(_Room.FREE, trial, index + 1)
        return FoundRoom((min(found, key=lambda name: (self._cost(trial, name, namespace), name)),), clear=False)

    def _room_of_deaf(self, trial: Claimant, shape: Shape, namespace: str) -> FoundRoom | None:
        """Return room on nodes where trials should have left long ago: it is kept for who waits, whenever they do."""
        nodes = self._gather(trial, _Room.DEAF)
        for name in dict.fromkeys(nodes):
            amount = self._deaf.pop(name, NOTHING)
            self.free[name] += amount
            self._leaving[name] += amount
            self._undecided_sum[name] += amount
            self._changed[name] = None
        self._from.clear()
        return self._room_of_others(trial, shape, namespace) if nodes else None

    def _cost(self, trial: Claimant, name: NodeName, namespace: str) -> tuple[float, bool, float, int]:
        """Return what room for a trial on a node costs: first those who have little, then how many must leave."""
        lacking = trial.each - (self.free[name] - self._undecided_sum[name] + self._leaving[name])
        if not self._undecided[name] or lacking.within(NOTHING):
            return 0.0, True, 0.0, 0
        order = self._orders[name].get(namespace)
        if order is None:
            ranks = {other: self._holders[other].rank(namespace) for other in self._undecided[name]}
            order = self._orders[name][namespace] = LeavingOrder(self._undecided[name], ranks)
        (of_namespace, own, of_sweep), leaving = order.until(lacking)
        return -of_namespace, not own, -of_sweep, leaving

    def _gather(self, trial: Claimant, room: _Room) -> tuple[NodeName, ...]:
        """Return nodes for all workers of a trial, none where they do not all fit."""
        chosen: list[NodeName] = []
        begin = 0
        while len(chosen) < trial.workers and (index := self._first(room, trial, begin)) is not None:
            name, here = self._order[index], 1
            there = self._room_on(name)[room]
            while len(chosen) + here < trial.workers and (trial.each * (here + 1)).within(there):
                here += 1
            chosen += (name,) * here
            self._looks += here
            begin = index + 1
        return tuple(chosen) if len(chosen) == trial.workers else ()

    def _first(self, room: _Room, trial: Claimant, begin: int) -> int | None:
        """Return the first node from ``begin`` on that allows a trial and has ``room`` for one of its workers."""
        for name in self._changed:
            alike = self._rows.setdefault(self._only_for[name], {})
            for kind, amount in self._room_on(name).items():
                if kind not in alike:
                    alike[kind] = FirstFit(self._length)
                alike[kind].put(self._index[name], amount)
        self._changed.clear()
        kinds = trial.each.devices.kinds()
        rows = [alike[room] for only_for, alike in self._rows.items() if room in alike and only_for <= kinds]
        while True:
            found = [index for row in rows if (index := row.first(trial.each, begin)) is not None]
            if not found:
                return None
            begin = min(found)
            if trial.may_use is None or self._order[begin] in trial.may_use:
                return begin
            begin += 1

    def _room_on(self, name: NodeName) -> dict[_Room, Amount]:
        free = self.free[name]
        room = {_Room.CLEAR: free - self._undecided_sum[name], _Room.FREE: free}
        if self._deaf:
            room[_Room.DEAF] = free + self._deaf.get(name, NOTHING)
        if name in self._sizes:
            room[_Room.EMPTY] = self._sizes[name]
        return room

    def _add_node(self, kind: NodeKind) -> NodeName:
        name = NodeName(f"{kind.name} to come {len(self._new)}")
        self._new[name] = kind.name
        self.free[name] = self.unused[name] = _size(kind)
        self._only_for[name] = kind.only_for
        self._undecided[name], self._undecided_sum[name], self._leaving[name] = {}, NOTHING, NOTHING
        self._orders[name] = {}
        self._index[name] = len(self._order)
        self._changed[name] = None
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
