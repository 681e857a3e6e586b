"""How a sweep goes on if every trial has a given amount of work: a fluid model of its nodes. Pure.

The trials of a node share its cores without end, each up to the most that it can use. One that ends frees its cores for
the others of its node, and its room for a trial that waits.
"""

import heapq
import math
from bisect import insort
from collections import deque
from itertools import repeat
from typing import Final

from controllers.core.devices import Devices
from controllers.forecast.model import Course, FluidModel, Job, ModelNode
from controllers.policies.ahead.forecast import LINEAR, earliest_end
from controllers.policies.kit.allocation import allocate
from controllers.policies.kit.device_paces import shares_held
from controllers.policies.kit.waits import cores_with_waiting, speed_with_waiting

LOOKED_AT: Final = 32
"""Nodes among which a job to move is looked for: in a large cluster the others are like these."""
IDLE: Final = 0.25
"""Part of its cores that a node must leave idle before it draws jobs from others."""
CRITICAL: Final = 0.95
"""Part of the time to the earliest end that makes a job, at its most cores, one of those that would end the sweep."""
FLOOR: Final = 0.05
"""Part of a node that all of its jobs share evenly where the shortest go first."""
LEAST_STEP: Final = 1e-3
"""Part of the time to the earliest end that passes at least until another job is one of those that would end it."""
SLACK: Final = 1e-9


def ends(model: FluidModel, course: Course) -> list[float]:
    """Return when each job ends, in seconds from now; infinite for one that fits on no node."""
    return _Simulation(model, course).run()


class _Member:
    """A job on a node: ``left`` of its work, the ``most`` cores that it uses there, its speed with these.

    It waits for ``wait`` seconds in each second of work, and computes on ``peak`` cores. It ``holds`` devices or not;
    ``shares`` of them are replicas of shared ones.
    """

    __slots__ = ("fastest", "holds", "left", "most", "number", "peak", "shares", "speed", "wait", "weight")

    def __init__(self, number: int, left: float, most: float, weight: float, wait: float, power: float) -> None:
        self.number, self.left, self.weight, self.wait, self.peak = number, left, weight, wait, most
        self.holds, self.shares = False, 0
        self.most = cores_with_waiting(most, wait, power)
        self.fastest = speed_with_waiting(most**power, wait)
        self.speed = 0.0

    def __lt__(self, other: "_Member") -> bool:
        """Tell whether it has all that it can use at a smaller share than ``other``."""
        return self.most * other.weight < other.most * self.weight


class _Node:
    """A node at ``since`` seconds; ``cpu``, ``memory`` and ``devices`` are free.

    ``coming`` are the cores for jobs that are on their way here.
    """

    __slots__ = (
        *("coming", "cores", "cpu", "devices", "load", "members", "memory", "model", "most", "only_for", "replicas"),
        *("since", "size", "to_share", "version"),
    )

    def __init__(self, room: ModelNode, supplied: float) -> None:
        self.size, self.cores = room.cores, supplied
        self.cpu = room.cpu
        self.memory = room.memory
        self.devices = room.devices
        self.only_for = room.only_for
        self.model, self.replicas, self.to_share = room.model, room.replicas, room.to_share
        self.members: list[_Member] = []
        self.since = 0.0
        self.version = 0
        self.load = 0.0
        self.most = 0.0
        self.coming = 0.0

    def advance(self, now: float) -> None:
        seconds = now - self.since
        self.since = now
        if seconds > 0:
            for member in self.members:
                member.left -= member.speed * seconds

    def fits(self, job: Job) -> bool:
        if self.cpu + SLACK < job.cpu or self.memory < job.memory or not job.devices.within(self.devices):
            return False
        return not self.only_for or self.only_for <= job.devices.kinds()


_Shape = tuple[float, float, Devices]
"""What jobs must share to fit on the same nodes."""
_ARRIVES, _CHANGES = range(2)
_ANYWHERE: Final = -1


class _Simulation:
    """The events of a course: (when, what, job, node) of jobs that arrive, (when, what, node, version) of nodes."""

    def __init__(self, model: FluidModel, course: Course) -> None:
        self._model = model
        self._course = course
        self._left = list(course.works)
        self._waits = course.waits or [0.0] * len(model.jobs)
        self._moves = [job.moves if course.moves else 0 for job in model.jobs]
        supplies = course.supplies or [room.supplied for room in model.rooms]
        self._nodes = [_Node(room, supplied) for room, supplied in zip(model.rooms, supplies, strict=True)]
        self._ends = [math.inf] * len(model.jobs)
        self._events: list[tuple[float, int, int, int]] = []
        self._waiting: dict[_Shape, deque[int]] = {}
        self._held: deque[int] = deque()
        self._roomy = [(-room.cpu / room.cores, course.ties[index], index) for index, room in enumerate(model.rooms)]
        heapq.heapify(self._roomy)
        self._looked_at = 0
        self._exponent = math.inf if model.power >= LINEAR else course.exponent
        self._end = 0.0
        if model.shortest_first:
            mosts = map(cores_with_waiting, course.mosts, self._waits, repeat(model.power))
            self._end = earliest_end(zip(course.works, mosts, strict=True), supplies, model.power)

    def run(self) -> list[float]:
        for number, job in enumerate(self._model.jobs):
            if job.at is None:
                self._held.append(number)
            elif job.node is not None and job.at <= 0:
                self._join(number, job.node)
            else:
                self._events.append((job.at, _ARRIVES, number, _ANYWHERE if job.node is None else job.node))
                if job.node is not None:
                    self._nodes[job.node].coming += self._most(number, job.node)
        heapq.heapify(self._events)
        for index in range(len(self._nodes)):
            self._share(index, 0.0)
        for index in range(len(self._nodes)):
            self._attract(index, 0.0)
        while self._events:
            now, kind, subject, other = heapq.heappop(self._events)
            if kind == _ARRIVES:
                self._arrive(subject, other, now)
            elif other == self._nodes[subject].version:
                self._change(subject, now)
        return self._ends

    def _most(self, number: int, index: int) -> float:
        return min(self._course.mosts[number], self._nodes[index].cores)

    def _join(self, number: int, index: int) -> None:
        most, weight = self._most(number, index), self._course.weights[number]
        left, wait = self._left[number], self._waits[number]
        member, devices = _Member(number, left, most, weight, wait, self._model.power), self._model.jobs[number].devices
        if devices.counts:
            member.holds, member.shares = True, shares_held(devices, self._nodes[index].replicas)
        insort(self._nodes[index].members, member)

    def _arrive(self, number: int, index: int, now: float) -> None:
        job = self._model.jobs[number]
        if index == _ANYWHERE:
            roomiest = self._roomiest(job)
            if roomiest is None:
                self._waiting.setdefault((job.cpu, job.memory, job.devices), deque()).append(number)
                return
            index = roomiest
            self._request(index, job)
        else:
            self._nodes[index].coming -= self._most(number, index)
        self._nodes[index].advance(now)
        self._join(number, index)
        self._share(index, now)

    def _request(self, index: int, job: Job, times: int = 1) -> None:
        """Take what a job requests of a node; give it back with -1 times."""
        node = self._nodes[index]
        node.cpu -= times * job.cpu
        node.memory -= times * job.memory
        if job.devices:
            node.devices -= job.devices * times
        heapq.heappush(self._roomy, (-node.cpu / node.size, self._course.ties[index], index))

    def _roomiest(self, job: Job) -> int | None:
        """Return the node with the least requested part among those with room, None where none has any."""
        if (job.cpu, job.memory, job.devices) in self._waiting:
            return None  # room that was freed since has been offered to those that wait already
        if job.devices and self._model.shortest_first and self._model.speeds.unlike:
            return self._fastest(job)
        passed: list[tuple[float, float, int]] = []
        roomiest: int | None = None
        while self._roomy and roomiest is None:
            entry = heapq.heappop(self._roomy)
            node = self._nodes[entry[2]]
            if -entry[0] != node.cpu / node.size:
                continue  # it has changed, and has a newer entry
            if node.fits(job):
                roomiest = entry[2]
            else:
                passed.append(entry)
        for entry in passed:
            heapq.heappush(self._roomy, entry)
        return roomiest

    def _fastest(self, job: Job) -> int | None:
        """Return the node with the fastest devices among those with room, None where none has any."""
        ranks = (
            (self._model.speeds.seconds(node.model, 1.0), -node.cpu / node.size, self._course.ties[index], index)
            for index, node in enumerate(self._nodes)
            if node.fits(job)
        )
        return min(ranks, default=(0.0, 0.0, 0.0, None))[3]

    def _change(self, index: int, now: float) -> None:
        """Let the jobs of a node that are done end, and others take their place."""
        node = self._nodes[index]
        node.advance(now)
        moment = SLACK * (1 + now)  # sums of floats are not exact, and late in time less so
        going_on: list[_Member] = []
        for member in node.members:
            if member.left > moment * member.speed:
                going_on.append(member)
                continue
            job = self._model.jobs[member.number]
            self._ends[member.number] = now
            self._request(index, job, -1)
            if self._held:
                heapq.heappush(self._events, (now, _ARRIVES, self._held.popleft(), _ANYWHERE))
        if len(going_on) < len(node.members):
            node.members = going_on
            self._start_waiting(index)
        self._share(index, now)
        self._attract(index, now)

    def _start_waiting(self, index: int) -> None:
        node = self._nodes[index]
        for shape in sorted(self._waiting, key=lambda shape: self._waiting[shape][0]):
            queue = self._waiting[shape]
            while queue and node.fits(job := self._model.jobs[queue[0]]):
                self._request(index, job)
                self._join(queue.popleft(), index)
            if not queue:
                del self._waiting[shape]

    def _attract(self, index: int, now: float) -> None:
        """Let jobs come to a node that leaves cores idle, from those with the most left to do, while that pays."""
        if not self._course.moves or self._waiting:
            return
        if self._nodes[index].model and self._model.speeds.unlike:
            self._attract_to_devices(index, now)
        node, nodes, move_s = self._nodes[index], self._nodes, self._model.move_s
        while node.most + node.coming < (1 - IDLE) * node.cores:
            looked = range(self._looked_at, self._looked_at + min(LOOKED_AT, len(nodes)))
            self._looked_at = looked.stop % len(nodes)
            fullest: tuple[float, int, _Member] | None = None
            for other in (nodes[number % len(nodes)] for number in looked):
                if other is node or other.most <= min(other.cores, node.cores):
                    continue
                there = other.load / other.cores
                if fullest is None or there > fullest[0]:
                    jobs = self._model.jobs
                    movable = [m for m in other.members if self._moves[m.number] and node.fits(jobs[m.number])]
                    if movable:
                        fullest = there, nodes.index(other), max(movable, key=lambda member: member.left)
            if fullest is None:
                return
            there, source, member = fullest
            here = member.left / speed_with_waiting(self._most(member.number, index) ** self._model.power, member.wait)
            if here + 2 * move_s > max(there, member.left / member.fastest):
                return
            self._move(member, source, index, now)

    def _attract_to_devices(self, index: int, now: float) -> None:
        """Let jobs come from slower devices to those that nobody holds here, the longest first, while that pays."""
        node, speeds = self._nodes[index], self._model.speeds
        here = speeds.seconds(node.model, 1.0)
        while True:
            longest: tuple[float, int, _Member] | None = None
            for source, other in enumerate(self._nodes):
                faster = speeds.seconds(other.model, 1.0) - here if other.model else 0.0
                if other is node or faster <= 0:
                    continue
                other.advance(now)
                for member in other.members:
                    gain = member.left / member.fastest * faster - 2 * self._model.move_s
                    movable = member.holds and self._moves[member.number] and node.fits(self._model.jobs[member.number])
                    if movable and gain > 0 and (longest is None or gain > longest[0]):
                        longest = gain, source, member
            if longest is None:
                return
            _, source, member = longest
            self._move(member, source, index, now)

    def _move(self, member: _Member, source: int, target: int, now: float) -> None:
        number, job = member.number, self._model.jobs[member.number]
        self._nodes[source].advance(now)
        self._nodes[source].members.remove(member)
        self._request(source, job, -1)
        self._request(target, job)
        self._left[number] = max(0.0, member.left)
        self._moves[number] -= 1
        self._nodes[target].coming += self._most(number, target)
        heapq.heappush(self._events, (now + self._model.move_s, _ARRIVES, number, target))
        self._share(source, now)

    def _share(self, index: int, now: float) -> None:
        """Share the cores of a node again, and find out when that will be due the next time."""
        node, power = self._nodes[index], self._model.power
        slower = 1 / (1 + self._course.contention * (len(node.members) - 1))
        node.version += 1
        node.load = node.most = 0.0
        for member in node.members:
            node.load += member.left
            node.most += member.most
        if not node.members:
            return
        if node.most <= node.cores:
            for member in node.members:
                member.speed = slower * member.fastest
        else:
            cores = self._in_line(node, now) if self._model.shortest_first else _by_weight(node, power)
            for member, share in zip(node.members, cores, strict=True):
                member.speed = slower * (share if power == 1 else max(0.0, share) ** power)
        if node.model:
            self._slow_by_devices(node)
        due = min([member.left / member.speed for member in node.members if member.speed > 0])
        if self._model.shortest_first and node.most > node.cores:
            due = min(due, self._until_critical(node, now))
        heapq.heappush(self._events, (now + max(0.0, due), _CHANGES, index, node.version))

    def _slow_by_devices(self, node: _Node) -> None:
        """Slow the members that hold devices by how slow these are, and by how many share each."""
        held = sum([member.shares for member in node.members])
        sharing = max(1.0, held / node.to_share) if node.to_share else 1.0
        times = self._model.speeds.seconds(node.model, sharing)
        for member in node.members:
            if member.holds:
                member.speed /= times

    def _in_line(self, node: _Node, now: float) -> list[float]:
        """Return the cores of each member: the shortest first, and enough to those that would end the sweep."""
        members = node.members
        members.sort(key=lambda member: member.left)
        least = FLOOR * node.cores / len(members)
        shares = [min(least, member.most) for member in members]
        left = node.cores - sum(shares)
        horizon = self._end - now
        for place in range(len(members) - 1, -1, -1) if now >= self._model.calm_at else ():
            member = members[place]
            if member.left >= CRITICAL * horizon * member.fastest:
                needed = (member.left / horizon) ** (1 / self._model.power) if horizon > 0 else math.inf
                more = max(0.0, min(needed, member.most, left + shares[place]) - shares[place])
                shares[place] += more
                left -= more
        room = [member.most - share for member, share in zip(members, shares, strict=True)]
        return [share + more for share, more in zip(shares, allocate(room, left, self._exponent), strict=True)]

    def _until_critical(self, node: _Node, now: float) -> float:
        """Return the seconds until the next member of a node becomes one of those that would end the sweep."""
        horizon = self._end - now
        soonest = self._model.calm_at - now if now < self._model.calm_at else math.inf
        for member in node.members:
            gap = CRITICAL * horizon - member.left / member.fastest
            closing = CRITICAL - member.speed / member.fastest
            if gap > 0 and closing > 0 and gap < soonest * closing:
                soonest = gap / closing
        return max(soonest + SLACK, LEAST_STEP * abs(horizon))


def _by_weight(node: _Node, power: float) -> list[float]:
    """Return the cores of each member by its weight, to none more than it can use.

    One that waits has its share while it computes, and leaves it to the others meanwhile.
    """
    left, weight = node.cores, sum([member.weight for member in node.members])
    shares = []
    for member in node.members:
        share = cores_with_waiting(min(left * member.weight / weight, member.peak), member.wait, power)
        share = min(share, member.most)
        shares.append(share)
        left -= share
        weight = weight - member.weight or SLACK
    return shares
