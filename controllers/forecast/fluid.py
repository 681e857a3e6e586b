"""How a sweep goes on if every trial has a given amount of work: a fluid model of its nodes. Pure.

The trials of a node share its cores without end, each up to the most that it can use. One that ends frees its cores for
the others of its node, and its room for a trial that waits.
"""

import heapq
import math
from bisect import insort
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from controllers.policies.ahead.forecast import LINEAR, NOTHING, allocated, earliest_end, node_forecast

FLOOR: Final = 0.05
LOOKED_AT: Final = 32
"""Nodes among which a trial to move is looked for: in a large cluster the others are like these."""


@dataclass(frozen=True, slots=True)
class Job:
    """A trial as the model sees it.

    It can use ``most`` cores, and requests ``cpu`` cores and ``memory`` bytes of a node when it starts. ``node`` is the
    number of the node where it is, None where it has yet to start. ``at`` is when it can go on or start, in seconds from
    now; None where it is submitted once another ends.
    """

    cpu: float
    memory: float
    node: int | None
    at: float | None


@dataclass(frozen=True, slots=True)
class Room:
    """A node: its cores, and what of it nobody requests (cores and bytes)."""

    cores: float
    cpu: float
    memory: float


@dataclass(frozen=True, slots=True)
class Model:
    """All jobs in the order of submission, all nodes, and by which rules they share.

    The speed of a job is cores ** ``power``. With ``shortest_first`` the cores of a node go to the job with the least
    left, otherwise by weight. A job moves where another node would leave cores idle, for ``move_s`` seconds in which it
    does not train; never with None.
    """

    jobs: Sequence[Job]
    rooms: Sequence[Room]
    power: float = 1.0
    shortest_first: bool = False
    move_s: float | None = None
    calm_at: float = 0.0


@dataclass(frozen=True, slots=True)
class Course:
    """One way in which the sweep may go on: work and weight of each job, and which of equal nodes is taken first.

    Work is in core seconds of a single core, ``ties`` holds a number for each node.
    """

    works: Sequence[float]
    mosts: Sequence[float]
    weights: Sequence[float]
    ties: Sequence[float]
    moves: bool = True
    exponent: float = 1.0


def ends(model: Model, course: Course) -> list[float]:
    """Return when each job ends, in seconds from now; infinite for one that fits on no node."""
    return _Simulation(model, course).run()


class _Member:
    """A job on a node; ``rank`` orders the members by how soon each of them has all that it can use."""

    __slots__ = ("left", "most", "number", "rank", "weight")

    def __init__(self, number: int, left: float, most: float, weight: float) -> None:
        self.number = number
        self.left = left
        self.most = most
        self.weight = weight
        self.rank = most / weight

    def __lt__(self, other: "_Member") -> bool:
        return self.rank < other.rank


class _Node:
    __slots__ = ("coming", "cores", "cpu", "load", "members", "memory", "most", "since", "speeds", "version")

    def __init__(self, room: Room) -> None:
        self.cores = room.cores
        self.cpu = room.cpu
        self.memory = room.memory
        self.members: list[_Member] = []
        self.speeds: list[float] = []
        self.since = 0.0
        self.version = 0
        self.load = 0.0
        self.most = 0.0
        self.coming = 0.0

    def advance(self, now: float) -> None:
        seconds = now - self.since
        self.since = now
        if seconds > 0:
            for member, speed in zip(self.members, self.speeds, strict=True):
                member.left -= speed * seconds


_ARRIVES, _ENDS = range(2)


class _Simulation:
    def __init__(self, model: Model, course: Course) -> None:
        self._model = model
        self._course = course
        self._left = list(course.works)
        self._nodes = [_Node(room) for room in model.rooms]
        self._ends = [math.inf] * len(model.jobs)
        self._waiting: dict[tuple[float, float], deque[int]] = {}
        self._held: deque[int] = deque()
        self._events: list[tuple[float, int, int, int]] = []
        self._roomy = [(-room.cpu / room.cores, course.ties[index], index) for index, room in enumerate(model.rooms)]
        heapq.heapify(self._roomy)
        self._next = 0
        self._moved: set[int] = set()
        self._exponent = math.inf if model.power >= LINEAR else course.exponent
        self._calm = model.calm_at
        loads = zip(course.works, course.mosts)
        self._end = earliest_end(loads, [room.cores for room in model.rooms], model.power) if model.shortest_first else 0.0

    def run(self) -> list[float]:
        for number, job in enumerate(self._model.jobs):
            if job.at is None:
                self._held.append(number)
            elif job.node is not None and job.at <= 0:
                self._add(number, job.node)
            else:
                self._events.append((job.at, _ARRIVES, number, -1 if job.node is None else job.node))
        heapq.heapify(self._events)
        for index in range(len(self._nodes)):
            self._share(index, 0.0)
        for index in range(len(self._nodes)):
            self._attract(index, 0.0)
        while self._events:
            now, kind, subject, other = heapq.heappop(self._events)
            if kind == _ARRIVES:
                self._come(subject, other, now)
            elif other == self._nodes[subject].version:
                self._finish(subject, now)
        return self._ends

    def _add(self, number: int, index: int) -> None:
        job, node = self._model.jobs[number], self._nodes[index]
        member = _Member(number, self._left[number], min(self._course.mosts[number], node.cores), self._course.weights[number])
        insort(node.members, member)

    def _come(self, number: int, index: int, now: float) -> None:
        job = self._model.jobs[number]
        if index < 0:
            found = self._roomiest(job.cpu, job.memory)
            if found is None:
                self._waiting.setdefault((job.cpu, job.memory), deque()).append(number)
                return
            index = found
            self._take(index, job.cpu, job.memory)
        elif job.node != index or job.at:
            self._nodes[index].coming -= min(self._course.mosts[number], self._nodes[index].cores)
        self._nodes[index].advance(now)
        self._add(number, index)
        self._share(index, now)

    def _take(self, index: int, cpu: float, memory: float) -> None:
        node = self._nodes[index]
        node.cpu -= cpu
        node.memory -= memory
        heapq.heappush(self._roomy, (-node.cpu / node.cores, self._course.ties[index], index))

    def _roomiest(self, cpu: float, memory: float) -> int | None:
        if (cpu, memory) in self._waiting:
            return None
        passed = []
        found = None
        while self._roomy and found is None:
            entry = heapq.heappop(self._roomy)
            node = self._nodes[entry[2]]
            if -entry[0] != node.cpu / node.cores:
                continue
            if node.cpu + 1e-9 >= cpu and node.memory >= memory:
                found = entry[2]
            else:
                passed.append(entry)
        for entry in passed:
            heapq.heappush(self._roomy, entry)
        return found

    def _finish(self, index: int, now: float) -> None:
        node, jobs = self._nodes[index], self._model.jobs
        node.advance(now)
        going_on = []
        for member in node.members:
            if member.left > NOTHING:
                going_on.append(member)
                continue
            self._ends[member.number] = now
            job = jobs[member.number]
            self._take(index, -job.cpu, -job.memory)
            if self._held:
                heapq.heappush(self._events, (now, _ARRIVES, self._held.popleft(), -1))
        node.members = going_on
        for shape in sorted(self._waiting, key=lambda shape: self._waiting[shape][0]):
            queue = self._waiting[shape]
            while queue and node.cpu + 1e-9 >= shape[0] and node.memory >= shape[1]:
                self._take(index, *shape)
                self._add(queue.popleft(), index)
            if not queue:
                del self._waiting[shape]
        self._share(index, now)
        if not self._waiting:
            self._attract(index, now)

    def _attract(self, index: int, now: float) -> None:
        """Let jobs come from the node with the most left to do, as long as this one would leave cores idle."""
        node, nodes, move_s = self._nodes[index], self._nodes, self._model.move_s
        if move_s is None or not self._course.moves:
            return
        while node.most + node.coming < 0.75 * node.cores:
            looked = range(len(nodes)) if len(nodes) <= LOOKED_AT else [
                (self._next + k) % len(nodes) for k in range(LOOKED_AT)
            ]
            self._next += LOOKED_AT
            crowded = [i for i in looked if i != index and (nodes[i].most > 1.25 * nodes[i].cores or nodes[i].cores < node.cores) and nodes[i].members]
            if not crowded:
                return
            source = max(crowded, key=lambda i: nodes[i].load / nodes[i].cores)
            other = nodes[source]
            other.advance(now)
            movable = [m for m in other.members if m.number not in self._moved]
            if not movable:
                return
            member = max(movable, key=lambda m: m.left)
            most = self._course.mosts[member.number]
            here = member.left / min(most, node.cores) ** self._model.power
            there = max(member.left / member.most**self._model.power, other.load / other.cores)
            if here + 2 * move_s > there:
                return
            self._moved.add(member.number)
            where = other.members.index(member)
            del other.members[where], other.speeds[where]
            job = self._model.jobs[member.number]
            self._take(source, -job.cpu, -job.memory)
            self._take(index, job.cpu, job.memory)
            self._left[member.number] = member.left
            node.coming += min(self._course.mosts[member.number], node.cores)
            heapq.heappush(self._events, (now + move_s, _ARRIVES, member.number, index))
            self._share(source, now)

    def _share(self, index: int, now: float) -> None:
        node, power = self._nodes[index], self._model.power
        node.version += 1
        members = node.members
        if not members:
            node.speeds = []
            node.load = node.most = 0.0
            return
        node.most = sum([member.most for member in members])
        node.load = sum([member.left for member in members])
        if node.most <= node.cores:
            cores = [member.most for member in members]
        elif self._model.shortest_first:
            cores = self._in_line(node, now)
        else:
            left, weight = node.cores, sum([member.weight for member in members])
            cores = []
            for member in members:
                share = left * member.weight / weight
                if share > member.most:
                    share = member.most
                cores.append(share)
                left -= share
                weight = max(weight - member.weight, 1e-12)
        node.speeds = cores if power == 1 else [max(0.0, share) ** power for share in cores]
        first = min([member.left / speed for member, speed in zip(members, node.speeds, strict=True) if speed > 0])
        if self._model.shortest_first and node.most > node.cores and len(members) > 1 and now >= self._calm:
            first = min(first, max(self._end / 25, 5.0))
        heapq.heappush(self._events, (now + max(0.0, first), _ENDS, index, node.version))

    def _in_line(self, node: _Node, now: float) -> list[float]:
        members, power = node.members, self._model.power
        members.sort(key=lambda member: member.left)
        last = 0
        horizon = self._end - now
        if now >= self._calm:
            alone = [member.left / member.most**power for member in members]
            last = sum([one >= 0.9 * horizon for one in alone])
            if last:
                order = sorted(range(len(members)), key=lambda k: (alone[k] < 0.9 * horizon, -alone[k] if alone[k] >= 0.9 * horizon else alone[k]))
                node.members = members = [members[k] for k in order]
        left = node.cores * (1 - FLOOR)
        shares = [FLOOR * node.cores / len(members)] * len(members)
        for k in range(last):
            more = min(max(0.0, members[k].most - shares[k]), left)
            shares[k] += more
            left -= more
        rest = allocated([max(0.0, m.most - shares[k + last]) for k, m in enumerate(members[last:])], left, self._exponent) if last < len(members) else []
        for k, more in enumerate(rest):
            shares[last + k] += more
        return [min(share, m.most) for share, m in zip(shares, members)]
