"""Whether the sweep falls behind what the default scheduler would have come to, and what is done about it. Pure.

``ahead`` goes by what it believes of trials and nodes. Where that is wrong, the default scheduler, which believes
nothing, can be sooner. So it is kept up what the default scheduler would have done so far, with the work of each trial
and the supply of each node as far as they are known by now: each trial where there was the most room, all trials of a
node with the same part. It would go on so. ahead is given what it can come to at best: the earliest end that all its
trials could have, and on each node the shortest first. Otherwise it would be blamed for moves that it has yet to make.

Where ahead comes to clearly more, it falls back: it shares evenly, and moves trials only to nodes that stand idle. That
ends when a while has passed in which it fell no further behind: so what it foresees holds again. A loss that it had by
then is not held against it any more, but each while is twice as long as the one before.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import Final

from controllers.core.model import Direction, NodeName, Phase, Snapshot, Trial, TrialId
from controllers.policies.ahead.forecast import EVEN, Load, earliest_end, node_forecast, share_evenly
from controllers.policies.kit.allocation import allocate
from controllers.policies.kit.places import roomiest_nodes

TOLERATED: Final = 0.05
"""``ahead`` may be late by this part of the time since the sweep began: the estimates are no better."""
MOVES_TOLERATED: Final = 2.0
"""It may also be late by what so many moves take."""
CALM_S: Final = 60.0
"""It trusts its beliefs again once it has fallen no further behind for so many seconds, at first."""
MOST_CALM_S: Final = 3840.0
"""``CALM_S`` doubles each time up to this."""
KEPT_ENDED: Final = 200
"""The state keeps at most this many trials that have ended, and would not have ended by default."""
NOTHING: Final = 1e-6
"""A trial with less than this part of its work left is done: sums of floats are not exact."""
STILL: Final = 0.1
"""It holds its own if it has fallen further behind by at most this part of the seconds that passed."""


@dataclass(frozen=True, slots=True)
class TrialByDefault:
    """A trial as it would be by now under the default scheduler.

    ``trial`` is None once it has really ended. It asks for ``cpu`` cores and ``memory`` bytes. ``whole`` is its work,
    as on a single core, in seconds; ``done`` is how much of it would be done, on ``node``, where it trains from
    ``from_s`` on; None while it waits. ``most`` is how many cores it can use. ``ended_s`` and ``really_ended_s`` are
    how long after its submission it would have ended, and did; None while it has not.
    """

    trial: TrialId | None
    submitted_s: float
    cpu: float = 0.0
    memory: float = 0.0
    whole: float = 0.0
    most: float = 1.0
    node: NodeName | None = None
    from_s: float = 0.0
    done: float = 0.0
    ended_s: float | None = None
    really_ended_s: float | None = None

    @property
    def left(self) -> float:
        """What it would still have to do."""
        return max(0.0, self.whole - self.done)


@dataclass(frozen=True, slots=True)
class Gap:
    """Seconds by which a sweep is later than under the default scheduler: its end, and its mean completion."""

    end: float = 0.0
    mean: float = 0.0


@dataclass(frozen=True, slots=True)
class Watch:
    """What the default scheduler would have come to at ``at``, and how ahead stands beside it.

    ``jobs`` leaves out the trials that have ended and would have: there were ``over`` of these, which together ended
    ``later_s`` seconds later than they would have. The first was submitted at ``began``, None before there was one.
    ``fallen_back_at`` is since when ahead shares evenly, None while it does not; ``gap`` is what it was behind by then.
    ``forgiven`` is what it was behind by when it began to trust its beliefs again, ``calm_s`` how long it waits next.
    """

    at: float = 0.0
    jobs: tuple[TrialByDefault, ...] = ()
    over: int = 0
    later_s: float = 0.0
    began: float | None = None
    gap: Gap = Gap()
    forgiven: Gap = Gap()
    fallen_back_at: float | None = None
    calm_s: float = CALM_S

    @property
    def fallen_back(self) -> bool:
        """Whether ahead is to share evenly."""
        return self.fallen_back_at is not None


@dataclass(frozen=True, slots=True)
class Work:
    """What is known of a trial's work: ``done`` and ``left``, as on a single core, and the ``most`` cores it can use.

    ``known`` tells that its own reports say it.
    """

    done: float
    left: float
    most: float
    known: bool


@dataclass(frozen=True, slots=True)
class WatchScene:
    """What a look goes by.

    ``work`` is that of each trial that has not ended, ``at_node`` the node where it is, or is on its way to. A trial
    trains from ``start_s`` seconds after its place on, and a move takes ``move_s``; what is known is ``age_s`` old.
    """

    snapshot: Snapshot
    work: Mapping[TrialId, Work]
    at_node: Mapping[TrialId, NodeName]
    power: float
    start_s: float
    move_s: float
    age_s: float

    @property
    def cores(self) -> Mapping[NodeName, float]:
        """What the nodes give their trials."""
        return {node.name: node.supplied for node in self.snapshot.nodes if node.ready and node.supplied > 0}


def keep_watch(scene: WatchScene, before: Watch) -> Watch:
    """Return what is known after a look. Gangs and trials that hold devices are not watched, nor those beside them."""
    snapshot = scene.snapshot
    if any(trial.gang or trial.devices.counts for trial in snapshot.unended):
        return Watch(snapshot.now)
    jobs = _with_places(_advance(_as_known_now(scene, before.jobs), scene, before.at), scene)
    began = min((job.submitted_s for job in jobs), default=None) if before.began is None else before.began
    watch = _without_over(replace(before, at=snapshot.now, jobs=tuple(jobs), began=began))
    if _clear(jobs, scene):
        return _judge(watch, _gap(watch, scene), scene)
    calm = watch.fallen_back_at is not None and watch.at - watch.fallen_back_at >= watch.calm_s
    return replace(watch, fallen_back_at=None) if calm else watch


def _clear(jobs: Sequence[TrialByDefault], scene: WatchScene) -> bool:
    """Whether enough is known: no trial waits, here or there, and each that runs has told what work it has left."""
    waits = any(job.node is None for job in jobs)
    return not waits and all(work.known and name in scene.at_node for name, work in scene.work.items())


def _as_known_now(scene: WatchScene, before: Sequence[TrialByDefault]) -> list[TrialByDefault]:
    """Return the jobs of the trials there are, with their work as it is known by now."""
    snapshot, jobs = scene.snapshot, list[TrialByDefault]()
    named = {job.trial: job for job in before if job.trial is not None}
    for name, work in scene.work.items():
        trial = snapshot.named[name]
        job = named.get(name) or TrialByDefault(name, trial.submitted_at, trial.base_cpu, trial.memory)
        job = replace(job, whole=work.done + work.left, most=work.most)
        over = job.left <= NOTHING * job.whole  # it would have ended with the work that was guessed before
        jobs.append(job if over else replace(job, ended_s=None))
    for job in before:
        ended = snapshot.named.get(job.trial) if job.trial is not None else None
        if job.trial is None:
            jobs.append(job)
        elif ended is not None and ended.phase is Phase.SUCCEEDED:
            jobs.append(replace(job, trial=None, really_ended_s=snapshot.now - job.submitted_s))
    return jobs


def _advance(jobs: Sequence[TrialByDefault], scene: WatchScene, since: float) -> list[TrialByDefault]:
    """Return ``jobs`` after the seconds from ``since`` to now."""
    advanced, cores = list(jobs), scene.cores
    by_node: dict[NodeName, list[int]] = {}
    for place, job in enumerate(jobs):
        if job.node is not None and job.node in cores and job.ended_s is None:
            by_node.setdefault(job.node, []).append(place)
    for node, places in by_node.items():
        at, now = since, scene.snapshot.now
        while at < now:
            training = [place for place in places if advanced[place].ended_s is None and advanced[place].from_s <= at]
            starts = [advanced[place].from_s - at for place in places if at < advanced[place].from_s < now]
            shares = allocate([advanced[place].most for place in training], cores[node], EVEN)
            speeds = {place: math.pow(share, scene.power) for place, share in zip(training, shares, strict=True)}
            needed = {place: advanced[place].left / speed for place, speed in speeds.items() if speed > 0}
            step = min((now - at, *starts, *needed.values()))
            # Onwards even where what is left takes less time than the clock can tell.
            at = max(at + step, math.nextafter(at, math.inf))
            for place, seconds in needed.items():
                job = replace(advanced[place], done=advanced[place].done + speeds[place] * step)
                over = seconds <= step or job.left <= NOTHING * job.whole
                advanced[place] = replace(job, ended_s=at - job.submitted_s) if over else job
    return advanced


def _with_places(jobs: list[TrialByDefault], scene: WatchScene) -> list[TrialByDefault]:
    """Return ``jobs`` with a node for each that waits and has room, as the default scheduler gives it."""
    snapshot = scene.snapshot
    if all(job.node is not None for job in jobs):
        return jobs
    trials = [_under_default(place, job, snapshot) for place, job in enumerate(jobs)]
    there = [trial for trial, job in zip(trials, jobs, strict=True) if job.ended_s is None]
    line = sorted((trial for trial in there if trial.gated), key=lambda trial: (trial.submitted_at, trial.id))
    nodes = roomiest_nodes(Snapshot(snapshot.now, tuple(there), snapshot.nodes), line)
    given = [nodes.get(trial.id) for trial in trials]
    from_s = snapshot.now + scene.start_s
    return [
        job if node is None else replace(job, node=node, from_s=from_s) for job, node in zip(jobs, given, strict=True)
    ]


def _under_default(place: int, job: TrialByDefault, snapshot: Snapshot) -> Trial:
    phase, nodes = (Phase.PENDING, ()) if job.node is None else (Phase.RUNNING, (job.node,))
    known = None if job.trial is None else snapshot.named[job.trial]
    return Trial(
        id=TrialId(f"{place:06d}"),
        phase=phase,
        cpu=job.cpu,
        base_cpu=job.cpu,
        memory=job.memory,
        direction=Direction.MINIMIZE,
        submitted_at=job.submitted_s,
        nodes=nodes,
        gated=job.node is None,
        may_use=None if known is None else known.may_use,
    )


def _without_over(watch: Watch) -> Watch:
    """Return ``watch`` without the jobs of trials that have ended, and would have; what they came to is kept.

    Where the default scheduler is far behind, those that ended first are taken to end by now, so that their number
    stays bounded.
    """
    now, left = watch.at, list[TrialByDefault]()
    ended = [job for job in watch.jobs if job.really_ended_s is not None]
    surplus = {id(job) for job in ended[: max(0, len(ended) - KEPT_ENDED)]}
    over, later = watch.over, watch.later_s
    for job in watch.jobs:
        would_s = now - job.submitted_s if job.ended_s is None and id(job) in surplus else job.ended_s
        if job.really_ended_s is None or would_s is None:
            left.append(job)
        else:
            over, later = over + 1, later + job.really_ended_s - would_s
    return replace(watch, jobs=tuple(left), over=over, later_s=later)


def _gap(watch: Watch, scene: WatchScene) -> Gap:
    """Return by how much the sweep is later than it would be, even where ahead does the best from here on."""
    now, cores = watch.at, scene.cores
    theirs: dict[NodeName, list[Load]] = {node: [] for node in cores}
    ours: dict[NodeName, list[Load]] = {node: [] for node in cores}
    later = watch.later_s
    for job in watch.jobs:
        since = now - job.submitted_s
        later += since if job.really_ended_s is None else job.really_ended_s
        later -= since if job.ended_s is None else job.ended_s
        if job.ended_s is None and job.node in theirs:
            theirs[job.node].append((job.left + max(0.0, job.from_s - now), job.most))
        if job.trial is not None and (node := scene.at_node[job.trial]) in ours:
            ours[node].append((scene.work[job.trial].left, scene.work[job.trial].most))
    evenly = [share_evenly(loads, cores[node], scene.power) for node, loads in theirs.items()]
    later += sum(node_forecast(loads, cores[node], scene.power).completions for node, loads in ours.items())
    later -= sum(completions for completions, _ in evenly)
    end = earliest_end(chain.from_iterable(ours.values()), cores.values(), scene.power)
    count = max(1, watch.over + len(watch.jobs))
    return Gap(end - max((last for _, last in evenly), default=0.0), later / count)


def _judge(watch: Watch, gap: Gap, scene: WatchScene) -> Watch:
    """Return ``watch`` with what follows from being behind by ``gap``."""
    now, slack = watch.at, MOVES_TOLERATED * scene.move_s + scene.age_s
    limit = TOLERATED * max(0.0, now - (watch.began or 0.0)) + slack
    beyond = max(gap.end - max(0.0, watch.forgiven.end), gap.mean - max(0.0, watch.forgiven.mean))
    if watch.fallen_back_at is None:
        if beyond <= limit:
            return watch
        return replace(watch, fallen_back_at=now, gap=gap)
    passed = now - watch.fallen_back_at
    if beyond <= limit / 2:
        return replace(watch, fallen_back_at=None, gap=gap)
    if passed < watch.calm_s:
        return watch
    if max(gap.end - watch.gap.end, gap.mean - watch.gap.mean) > STILL * passed:
        return replace(watch, fallen_back_at=now, gap=gap)
    calm = min(MOST_CALM_S, 2 * watch.calm_s)
    return replace(watch, fallen_back_at=None, gap=gap, forgiven=gap, calm_s=calm)
