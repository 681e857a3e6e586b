"""How many attempts run at a time: as many as keep the cores busy, as the memory holds, and as were asked for.

Where an author names a request of CPU, requests tell how many fit. Elsewhere what the attempts use tells it
(``cores``). Memory bounds both (``memory``): what an attempt would need is seen in those before it.
"""

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Protocol

from controllers.worlds.local.cores import LATE_S, SETTLED_S, Taken, room_for_more
from controllers.worlds.local.gangs import Ended
from controllers.worlds.local.gauge import Gauge, MemoryThere
from controllers.worlds.local.job_book import JobBook
from controllers.worlds.local.jobs import LocalJob
from controllers.worlds.local.memory import Holding, MemoryUse
from controllers.worlds.local.rates import RateMeter
from controllers.worlds.local.room import Machine, Room, workers_on
from controllers.worlds.local.workflow import PodStep

LOOK_S: Final = 1.0
YOUNG_S: Final = 2.0
"""An attempt counts as young for so many seconds."""
_KILLED: Final = 128 + 9
_SHORT: Final = 0.05
"""With so little of the memory left, a process that somebody killed was killed for memory."""
_LATELY_S: Final = 5.0
_SLACK: Final = 1e-9
_IDLE: Final = ""


class AttemptMeter(Protocol):
    """What is measured of attempts that run."""

    def cpu_seconds(self, job: LocalJob) -> float:
        """Return the CPU seconds that an attempt has used so far."""
        ...

    def waited_seconds(self, job: LocalJob) -> float | None:
        """Return for how many seconds an attempt has waited for a core so far; None where nobody tells."""
        ...

    def memory(self, job: LocalJob) -> float:
        """Return the bytes of memory that an attempt holds now."""
        ...


@dataclass(frozen=True, slots=True)
class LetIn:
    """How many ``more`` attempts may start.

    ``limits`` are the cores up to which those that start may request of each node, and ``bounds`` what that leaves,
    where it is not what the node has.
    """

    more: int
    limits: Mapping[str, float]
    bounds: Mapping[str, float]


class Admission:
    """What the running attempts use, and how many more may start beside them.

    Args:
        machine: The nodes.
        jobs: All jobs as they are at any time.
        measured: Measures what they use.
        gauge: What the machine tells of itself.
    """

    def __init__(self, machine: Machine, jobs: JobBook, measured: AttemptMeter, gauge: Gauge) -> None:
        self._machine = machine
        self._jobs = jobs
        self._measured = measured
        self._gauge = gauge
        self._kinds: dict[str, PodStep] = {}
        self._memory_use = MemoryUse()
        self._meters: dict[str, RateMeter] = {}
        self._idle = 0.0
        self._could_use: dict[str, Taken] = {}
        self._there = gauge.memory()
        self._kills = gauge.memory_kills()
        self._killed_at = -math.inf
        self._now = 0.0
        self._look_at = -math.inf
        self._looks = 0
        self._let_in, self._let_in_at = LetIn(0, {}, {}), (-1, -1)

    @property
    def memory(self) -> MemoryThere:
        """The memory of the machine at the last look."""
        return self._there

    @property
    def moment(self) -> tuple[int, int]:
        """What was seen so far: the same as long as nothing has changed and nothing was measured."""
        return self._jobs.changes, self._looks

    @property
    def let_in(self) -> LetIn:
        """How many more attempts may start, and for how much of each node they may ask."""
        if self._let_in_at != self.moment:
            self._let_in, self._let_in_at = self._worked_out(), self.moment
        return self._let_in

    def expect(self, step: PodStep) -> None:
        """Take note that steps of that kind may come."""
        self._kinds.setdefault(step.template, step)

    def look(self, now: float) -> None:
        """Measure what the running attempts use, once a second at most; the memory of young ones each time."""
        self._now = now
        if now < self._look_at:
            # An attempt may fill its memory and end between two looks, and those after it go by what it came to.
            self._read_memory(job for job in self._jobs.placed if now - job.started_at < YOUNG_S)
            return
        self._look_at = now + LOOK_S
        self._looks += 1
        self._there = self._gauge.memory()
        self._count_kills()
        before, self._meters = self._meters, {}
        self._idle, self._could_use = self._rate(_IDLE, self._gauge.idle_seconds(), before), {}
        for job in self._jobs.placed:
            if job.step.cpu_guessed:
                self._could_use[job.key] = self._cores(job, before)
        self._read_memory(self._jobs.placed)

    def _read_memory(self, jobs: Iterable[LocalJob]) -> None:
        for job in jobs:
            held = self._measured.memory(job)
            self._memory_use.read(job.key, Holding(*_kind(job), job.started_at), self._now, held)

    def _cores(self, job: LocalJob, before: Mapping[str, RateMeter]) -> Taken:
        """Return what each worker of a job takes of its node, with the cores for which it waits."""
        used = self._rate(job.key, self._measured.cpu_seconds(job), before)
        waited = self._measured.waited_seconds(job)
        if waited is not None:
            used += self._rate(f"{job.key}/waited", waited, before)
        if self._now - job.started_at < SETTLED_S:
            return Taken(job.step.cpu, new=True)
        return Taken(job.step.cpu, used / job.size, in_doubt=waited is None)

    def _rate(self, name: str, total: float, before: Mapping[str, RateMeter]) -> float:
        """Return how fast a counter grew in the last seconds."""
        self._meters[name] = before.get(name) or RateMeter(LATE_S)
        return self._meters[name].read(self._now, total)

    def ended(self, job: LocalJob, end: Ended) -> float:
        """Take note of an attempt's end; return the most memory that it held, in bytes, 0 where nobody knows."""
        return self._memory_use.end(job.key, well=end.code == 0)

    def killed_for_memory(self, job: LocalJob, end: Ended, peak: float) -> bool:
        """Return whether an attempt ended because the machine had no memory left; its own limit is none of that.

        It is as good as certain where the kernel counts it, and likely where somebody else killed it while there was
        next to none. ``peak`` is the most that it held, in bytes.
        """
        self._count_kills()
        if end.code == 0 or job.step.memory_limit is not None:
            return False
        short = self._now - self._killed_at < _LATELY_S or self._there.available < _SHORT * self._there.total
        if not (end.memory_kills or (end.code == _KILLED and short)):
            return False
        self._memory_use.tell(job.step.template, peak)
        return True

    def why_held_up(self, job: LocalJob) -> str | None:
        """Return what speaks against one more attempt, wherever it is; None where nothing does."""
        if job.alone and self._jobs.placed:
            return "it was killed for memory, and waits until nothing else runs"
        # What is held for it already is counted; of several that were cut short together, each is looked at by itself.
        others = self._jobs.placed if job.targets else self._jobs.holding
        more = self.more([other for other in others if other.id != job.id])
        return None if more else "as many run as the memory holds, or as were asked for"

    def more(self, beside: Sequence[LocalJob]) -> int:
        """Return how many more attempts may start where those ``beside`` run, or are about to."""
        if any(job.alone for job in beside):
            return 0
        wanted = {step.template: step.memory * step.workers for step in self._kinds.values()}
        by_memory = self._memory_use.more(self._there, wanted, {job.key: _kind(job) for job in beside})
        # Whatever it needs, it needs it alone: nobody can leave more to it.
        by_memory = max(by_memory, 0 if beside else 1)
        trials = sum(bool(job.trial) for job in beside)
        by_hand = by_memory if self._machine.jobs is None else self._machine.jobs - trials
        return max(0, min(by_memory, by_hand))

    def part(self, job: LocalJob, nodes: Sequence[str], trials: int) -> float:
        """Return the cores that each worker of ``job`` has on ``nodes`` as it starts, if those beside it have alike.

        ``trials`` is how many run or wait.
        """
        others = [other for other in self._jobs.holding if other.id != job.id]
        # What starts before any has told gets no part that is right for a few seconds only, as it may keep that.
        told = self._memory_use.has_told(job.step.template)
        more = self.more([*others, job]) if told else math.inf
        live = Counter([*(node for other in others if other.placed for node in other.nodes), *nodes])
        return self._even_part(job.step, nodes, live, more, trials)

    def parts(self, trials: int) -> Iterator[tuple[LocalJob, float]]:
        """Yield each job that runs with the cores that each of its workers has now, if those beside it have alike."""
        placed, more = self._jobs.placed, self.let_in.more
        live = Counter(node for job in placed for node in job.nodes)
        return ((job, self._even_part(job.step, job.nodes, live, more, trials)) for job in placed)

    def _even_part(
        self, step: PodStep, nodes: Sequence[str], live: Mapping[str, int], more: float, trials: int
    ) -> float:
        """Return the least part on ``nodes``, on which so many workers are ``live`` and ``more`` may start."""

        def each(node: str) -> float:
            soon = min(live[node] + more * step.workers, self._machine.at_once(node, step, trials))
            return self._machine.nodes[node] / max(live[node], soon)

        return min(map(each, nodes))

    def _worked_out(self) -> LetIn:
        holding, kinds = self._jobs.holding, self._kinds.values()
        more, room = self.more(holding), Room(self._machine, holding)
        most = more * max((step.cpu * step.workers for step in kinds), default=0.0)
        guessed = max((step.cpu for step in kinds if step.cpu_guessed), default=None)
        limits, bounds = dict[str, float](), dict[str, float]()
        for node, cores in self._machine.nodes.items():
            requested = room.load(node).cpu_requested
            left = cores - requested
            if guessed is not None and self._machine.jobs is not None:
                left = most
            elif guessed is not None:
                taken = [held for job in holding for held in self._taken(node, job)]
                left = room_for_more(cores, taken, guessed, self._idle)
            left = min(left, most)
            limits[node] = requested + left
            if not math.isclose(limits[node], cores, abs_tol=_SLACK):
                bounds[node] = max(0.0, left)
        return LetIn(more, limits, bounds)

    def _taken(self, node: str, job: LocalJob) -> Iterable[Taken]:
        """Yield what each worker of ``job`` holds of ``node``."""
        here, coming = workers_on(node, job)
        if not job.step.cpu_guessed:
            yield from [Taken(max(job.cpu, job.step.cpu))] * max(here, coming)
            return
        new = Taken(job.step.cpu, new=True)
        yield from [self._could_use.get(job.key, new)] * here
        yield from [new] * (coming - here)

    def _count_kills(self) -> None:
        before, self._kills = self._kills, self._gauge.memory_kills()
        if self._kills > before:
            self._killed_at = self._now


def _kind(job: LocalJob) -> tuple[str, float]:
    """Return the template of ``job``, and the bytes of memory that its author asked for all its workers."""
    return job.step.template, job.step.memory * job.size
