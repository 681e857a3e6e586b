"""When a trial logged what: its reports found by the work done, only when somebody asks."""

import math
from bisect import bisect_right
from collections import deque
from dataclasses import dataclass
from functools import cached_property
from heapq import heappush
from itertools import accumulate

from controllers.core.model import Direction, Sample, TrialId
from controllers.worlds.simulated.workload import TrialSpec

_SLACK = 1e-9


@dataclass(frozen=True, slots=True)
class CpuUse:
    """CPU seconds over all attempts until now, and ``waits`` for a CPU; from now on they grow by the cores each second.

    ``waiting`` are those that the trial would use besides, if it were given them.
    """

    seconds: float
    cores: float
    waits: float = 0.0
    waiting: float = 0.0

    def after(self, seconds: float) -> "CpuUse":
        """Return the use ``seconds`` later."""
        return CpuUse(
            self.seconds + self.cores * seconds, self.cores, self.waits + self.waiting * seconds, self.waiting
        )


@dataclass(frozen=True, slots=True)
class _Stretch:
    """From ``at`` seconds on, work begins at ``work`` and goes on at ``rate``; the use of CPUs goes on from ``use``."""

    at: float
    work: float
    rate: float
    use: CpuUse

    def work_at(self, time: float) -> float:
        return self.work + self.rate * (time - self.at) if self.rate else self.work


Upcoming = list[tuple[float, TrialId]]
"""A heap of when trials will report next, as was foreseen; what a log says by now counts."""


class ReportLog:
    """The reports of one trial over all its attempts. Work that is done again after a failure is not reported again.

    Args:
        spec: the trial.
        upcoming: where the log puts itself whenever its next report is expected at another time.
    """

    def __init__(self, spec: TrialSpec, upcoming: Upcoming) -> None:
        self._upcoming = upcoming
        self.become(spec)
        self._stretches: deque[_Stretch] = deque()
        self._most = 0.0
        self._read = 0
        self._counted_at, self._use = -math.inf, CpuUse(0.0, 0.0)
        self.newest: Sample | None = None
        self.times: list[float] | None = None
        """When each report was logged, in seconds. A caller that wants the times puts a list here: it costs time."""
        self.next_at = math.inf
        """When the next report will be logged as things stand, in seconds."""

    def become(self, spec: TrialSpec) -> None:
        """Be the log of ``spec``, which has logged nothing yet."""
        self._spec = spec
        self._works = [report.work_s for report in spec.reports]
        self._slack = spec.work_s * _SLACK
        self.__dict__.pop("_bests", None)

    def follow(self, spec: TrialSpec) -> None:
        """Be the log of ``spec`` from the next report on: those that were logged stay. Nothing is under way.

        Args:
            spec: it reports as often as what the log was of before.
        """
        self.read(math.inf)
        self.become(spec)
        self._most = self._works[self._read - 1] if self._read else 0.0

    @property
    def exhausted(self) -> bool:
        """Whether every report has been read."""
        return self._read == len(self._works)

    def go_on(self, at: float, work: float, rate: float, use: CpuUse) -> None:
        """Note that from ``at`` seconds on ``work`` lone seconds grow by ``rate`` each second.

        Args:
            at: not before any earlier call's.
            work: as much as the attempt has made or resumed with.
            rate: lone seconds a second.
            use: of CPUs, as at ``at``.
        """
        # What was expected to come after ``at`` does not: close the stretch that is under way, forget later ones.
        while self._stretches and self._stretches[-1].at >= at:
            self._stretches.pop()
        if self._stretches:
            self._most = max(self._most, self._stretches[-1].work_at(at))
        if work < self._most and rate > 0:
            # Work that was lost is made again; until it has caught up, nothing new is logged.
            self._stretches.append(_Stretch(at, self._most, 0.0, use))
            caught_up = at + (self._most - work) / rate
            stretch = _Stretch(caught_up, self._most, rate, use.after(caught_up - at))
        else:
            stretch = _Stretch(at, max(work, self._most), rate if work >= self._most else 0.0, use)
        # While nothing is logged, one stretch is enough: a trial that is moved on and on would get one for each move.
        if not self._stretches or stretch.rate or self._stretches[-1].rate:
            self._stretches.append(stretch)
        self._foresee()

    def read(self, until: float) -> Sample | None:
        """Return the newest report logged until then, None where there is none; ``until`` never goes back."""
        while self._stretches and until >= self._stretches[0].at:
            stretch = self._stretches[0]
            end = self._stretches[1].at if len(self._stretches) > 1 else math.inf
            reached = bisect_right(self._works, stretch.work_at(min(end, until)) + self._slack, lo=self._read)
            if reached > self._read:
                self._count_cpu(reached, stretch)
                if self.times is not None:
                    self.times += [self._logged_at(index, stretch) for index in range(self._read, reached)]
                self.newest, self._read = self._sample(reached - 1, stretch), reached
            if until < end:
                break
            self._stretches.popleft()
        self._foresee()
        return self.newest

    def _foresee(self) -> None:
        self.next_at = self._expected()
        if self.next_at < math.inf:
            heappush(self._upcoming, (self.next_at, self._spec.id))

    def _expected(self) -> float:
        if self.exhausted:
            return math.inf
        for number, stretch in enumerate(self._stretches, start=1):
            at = self._logged_at(self._read, stretch)
            if number == len(self._stretches) or at <= self._stretches[number].at:
                return at
        return math.inf

    def _logged_at(self, index: int, stretch: _Stretch) -> float:
        missing = self._works[index] - stretch.work
        if missing <= self._slack:
            return stretch.at
        return stretch.at + missing / stretch.rate if stretch.rate else math.inf

    def _count_cpu(self, reached: int, stretch: _Stretch) -> None:
        """Count CPU seconds with those reports until ``reached`` that come long enough after the last count."""
        every = self._spec.cpu_every_s
        for index in range(self._read if every else reached - 1, reached):
            at = self._logged_at(index, stretch)
            if not every or at >= self._counted_at + every:
                self._counted_at = at
                self._use = stretch.use.after(at - stretch.at)

    def _sample(self, index: int, stretch: _Stretch) -> Sample:
        report = self._spec.reports[index]
        return Sample(
            value=report.value,
            step=index + 1,
            at=self._logged_at(index, stretch),
            cpu_seconds=self._use.seconds,
            first=self._spec.reports[0].value,
            steps_total=self._spec.steps_total,
            best=self._bests[index],
            cpu_wait=None if self._spec.waits_untold else self._use.waits,
        )

    @cached_property
    def _bests(self) -> list[float]:
        smaller = self._spec.direction is Direction.MINIMIZE
        worst = math.inf if smaller else -math.inf
        finite = (report.value if math.isfinite(report.value) else worst for report in self._spec.reports)
        return list(accumulate(finite, min if smaller else max))
