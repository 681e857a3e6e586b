"""What no policy can beat: lower bounds for makespan and mean completion time of a workload. Pure; seconds.

Both look at a relaxation in which all nodes are one pool. A trial j with W_j lone seconds of work does at most
e_j = max over c of speed(c) / c of it per core second (speeds of nodes apart), so it takes at least V_j = W_j / e_j
core seconds of a node of speed 1, whatever it gets when. The pool gives K = sum of cores x speed of the nodes each
second, and trial j takes at most u_j of that: the largest speed(min(cores it can use, cores of the node)) x speed of
the node, over the nodes, divided by e_j. Costs of starts and moves only add to that.

Devices are pools too, in device seconds of speed 1. With all the cores it can use, trial j has A_j seconds of training
on such devices. It holds d_j devices of a kind meanwhile, so it takes d_j A_j device seconds, at most d_j times the
speed of the fastest devices each second, of what all devices of all nodes do together. Where trials may share devices,
it takes only the part of them that it has a use for. Only nodes that have as many devices as a trial asks for count for
its u_j, in which the speed of their devices is a factor.

Where others use the nodes too, K changes with time as their supply does, and the bounds know how.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from heapq import heappop, heappush
from itertools import pairwise

from controllers.core.model import TrialId
from controllers.lab.simulation.given_cores import GivenCores
from controllers.worlds.simulated.workload import NodeSpec, TrialSpec, Workload

NOTHING = 1e-9
"""Part of all volumes that may be left of sums of floats."""


@dataclass(frozen=True, slots=True)
class Demand:
    """A trial to a pool: submitted at ``release``, ``volume`` core seconds, at most ``rate`` cores at once.

    Of a pool of devices, it is device seconds and devices.
    """

    release: float
    volume: float
    rate: float

    @property
    def alone(self) -> float:
        """Seconds that it takes if nothing else is there."""
        return self.volume / self.rate


def makespan_bound(workload: Workload) -> float:
    """Return a time, from the first submission, before which no schedule ends: the release-aware fluid bound.

    Until any time t, trial j can have had no more than u_j max(0, t - r_j) of its V_j core seconds. What is left of
    all must come out of the pool after t, so that every schedule ends at t + sum of max(0, V_j - u_j max(0, t - r_j))
    / K or later; and no trial ends before r_j + V_j / u_j. The bound is the largest over all t. Between the times at
    which a trial is submitted or could be done the expression is linear in t, so those suffice.
    """
    first = min(trial.submitted_at for trial in workload.trials)
    return max(pool.latest_end() for pool in _pools(workload)) - first


def mean_completion_bound(workload: Workload) -> float:
    """Return a mean completion time that no schedule gets below: the largest of three bounds.

    1. Each trial takes V_j / u_j even alone.
    2. The pool as one machine that trains one trial at a time at K: whatever shares the pool can be turned into
       turns on that machine without any completion getting later (between two events, each trial gets its part in
       one piece), and there shortest remaining time first is the best (Schrage 1968).
    3. With M_j the mean of the times at which j's core seconds are given: j gets no more than u_j, so
       C_j >= M_j + V_j / (2 u_j). The sum of M_j is least when the pool always gives all to the submitted trial
       of the smallest V_j (Goemans, Queyranne, Schulz, Skutella and Wang, "Single machine scheduling with release
       dates", SIAM J. Discrete Math. 15, 2002, theorem 2.4, for equal weights). Only where K is always the same.
    """
    cores, *devices = _pools(workload)
    sums = [cores.sum_of_completions(), *(pool.sum_of_completions() + cores.alone - pool.alone for pool in devices)]
    return max(sums) / len(workload.trials)


def unusable_seconds(workload: Workload, ended_at: Mapping[TrialId, float]) -> float:
    """Return for how long, in sum, all cores stood still since no policy could use them with the trials there were.

    A trial trains on one node at a time. So of n trials on m nodes at most n - m nodes have more than one, and each of
    the others gives its cores to one trial, which may be able to use fewer. This counts what the pool of the bounds
    could have given to the trials that were there and the nodes could not. A schedule that ends the short trials early
    has to bear that. ``ended_at`` is when each trial ended, on the clock of the submissions.
    """
    pool, *_ = _pools(workload)
    sizes = sorted((node.cpu * node.speed for node in workload.most_nodes), reverse=True)
    spans = [
        (demand.release, ended_at[trial.id], demand.rate)
        for trial, demand in zip(workload.trials, pool.demands, strict=True)
    ]
    changes = sorted({at for begin, end, _ in spans for at in (begin, end)})
    unusable = 0.0
    for since, until in pairwise(changes):
        rates = [rate for begin, end, rate in spans if begin <= since and end >= until]
        if rates:
            alone = [min(size, max(rates)) for size in sizes[: len(rates)]]
            left_over = sorted((size - used for size, used in zip(sizes, alone, strict=False)), reverse=True)
            usable = sum(alone) + sum(left_over[: max(0, len(rates) - len(sizes))])
            unusable += max(0.0, min(pool.given.most, sum(rates)) - usable) * (until - since)
    return unusable / pool.given.most


@dataclass(frozen=True, slots=True)
class _Pool:
    """The cores (of speed 1) or the devices of a kind, and the trials that take of them."""

    demands: Sequence[Demand]
    given: GivenCores

    @property
    def alone(self) -> float:
        """Seconds that its trials take in sum, each alone."""
        return sum(demand.alone for demand in self.demands)

    def latest_end(self) -> float:
        """Return the time before which no schedule ends, from the same zero as the releases."""
        demands = self.demands
        first = min(demand.release for demand in demands)
        own = max(demand.release + demand.alone for demand in demands)
        changes = sorted(
            [(demand.release, demand.rate) for demand in demands]
            + [(demand.release + demand.alone, -demand.rate) for demand in demands]
            + [(at, 0.0) for at in self.given.changes if at > first]
        )
        whole = sum(demand.volume for demand in demands)
        left, rate, before, latest = whole, 0.0, first, own
        for at, change in changes:
            left -= rate * (at - before)
            if left > NOTHING * whole:
                latest = max(latest, self.given.done_at(at, left))
            rate, before = rate + change, at
        return latest

    def sum_of_completions(self) -> float:
        """Return the sum of completion times, each from its trial's submission, that no schedule gets below."""
        releases = sum(demand.release for demand in self.demands)
        if self.given.changes:
            # In core seconds that were given by then, the machine is always the same.
            demands = [replace(demand, release=self.given.until(demand.release)) for demand in self.demands]
            ends = (self.given.when(turn.end) for turn in _one_machine(demands, 1.0, remaining=True))
            return max(self.alone, sum(ends) - releases)
        by_remaining = _one_machine(self.demands, self.given.most, remaining=True)
        by_volume = _one_machine(self.demands, self.given.most, remaining=False)
        completions = sum(turn.end for turn in by_remaining)
        means = sum(turn.mean for turn in by_volume)
        return max(self.alone, completions - releases, means + self.alone / 2 - releases)


@dataclass(slots=True)
class _Turns:
    """When one trial had the machine: its end, and the mean of its times."""

    end: float = 0.0
    mean: float = 0.0


def _one_machine(demands: Sequence[Demand], capacity: float, *, remaining: bool) -> list[_Turns]:
    """Run the trials on one machine, the one with the least volume (left, or in all) first, with preemption."""
    turns = [_Turns() for _ in demands]
    arriving = sorted(range(len(demands)), key=lambda index: demands[index].release)
    ready: list[tuple[float, int, float]] = []
    now = 0.0
    for number, index in enumerate(arriving):
        now = max(now, demands[index].release)
        seconds = demands[index].volume / capacity
        heappush(ready, (seconds, index, seconds))
        until = demands[arriving[number + 1]].release if number + 1 < len(arriving) else float("inf")
        while ready and now < until:
            key, current, left = heappop(ready)
            end = min(until, now + left)
            turns[current].mean += (end - now) * (end + now) / 2 / (demands[current].volume / capacity)
            left -= end - now
            if end < until or left <= 0:
                turns[current].end = end
            else:
                heappush(ready, (left if remaining else key, current, left))
            now = end
    return turns


def _pools(workload: Workload) -> Iterator[_Pool]:
    """Yield the cores, which every trial takes, then the devices of each kind that some trial asks for.

    Nodes that can come count as if they were there: no autoscaler is faster.
    """
    nodes = workload.most_nodes
    demands = [_demand(trial, nodes) for trial in workload.trials]
    yield _Pool(demands, GivenCores.of(nodes))
    for kind in sorted({kind for trial in workload.trials for kind, _ in trial.devices.counts}):
        holding = [
            _of_devices(trial, count, nodes) for trial in workload.trials if (count := trial.devices.count(kind))
        ]
        yield _Pool(
            holding, GivenCores(sum(node.devices.count(kind) / node.replicas * node.device_speed for node in nodes))
        )


def _demand(trial: TrialSpec, nodes: Sequence[NodeSpec]) -> Demand:
    having = _having(trial, nodes)
    on_device = {node.name: node.device_speed if trial.devices else 1.0 for node in having}
    per_core = max(speed / cores for cores, speed in trial.speedup.points) * max(on_device.values())
    fastest = max(_speed_by_cores(trial, node) * on_device[node.name] for node in having)
    # A gang gets the most done where its workers are all on the fastest nodes, and what they exchange takes no time.
    return Demand(trial.submitted_at, trial.work_s / per_core, trial.max_workers * fastest / per_core)


def _of_devices(trial: TrialSpec, count: int, nodes: Sequence[NodeSpec]) -> Demand:
    """Return what a trial takes that holds ``count`` devices of a kind."""
    having = _having(trial, nodes)
    shares = any(node.replicas > 1 for node in having)
    seconds = trial.work_s / max(_speed_by_cores(trial, node) for node in having)
    taken = count * (trial.device_use if shares else 1.0)
    return Demand(trial.submitted_at, taken * seconds, taken * max(node.device_speed for node in having))


def _having(trial: TrialSpec, nodes: Sequence[NodeSpec]) -> list[NodeSpec]:
    return [node for node in nodes if not trial.devices or trial.devices.within(node.devices)]


def _speed_by_cores(trial: TrialSpec, node: NodeSpec) -> float:
    return trial.speedup.speed(min(trial.limit, node.cpu)) * node.speed
