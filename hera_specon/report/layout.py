"""Where things go on the Gantt chart and in the share charts. Pure."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from hera_specon.report.history import History, Stretch


@dataclass(frozen=True, slots=True)
class Bar:
    """A stretch of a trial on its node's lane; lanes count from 0 on each node."""

    stretch: Stretch
    lane: int


@dataclass(frozen=True, slots=True)
class Band:
    """A node's rows on the chart: ``lanes`` of them from row ``top`` down."""

    node: str
    top: int
    lanes: int
    bars: tuple[Bar, ...]


def bands(history: History) -> tuple[Band, ...]:
    """Lay the trials of each node out in as few lanes as keep them apart, nodes one under the other."""
    laid: list[Band] = []
    for node in history.nodes():
        bars = _bars([visit for visit in _visits(history) if visit[0].node == node])
        top = laid[-1].top + laid[-1].lanes if laid else 0
        laid.append(Band(node, top, 1 + max(bar.lane for bar in bars), tuple(bars)))
    return tuple(laid)


def _visits(history: History) -> list[list[Stretch]]:
    """Return each unbroken stay of a trial on a node, with neighbours that look alike joined."""
    stays: list[list[Stretch]] = []
    for stretches in history.stretches.values():
        placed = [stretch for stretch in stretches if stretch.node]
        for before, stretch in pairwise([None, *placed]):
            if stretch is None:
                continue
            if before is not None and before.node == stretch.node and before.end == stretch.start:
                stays[-1].append(stretch)
            else:
                stays.append([stretch])
    return [_joined(stay) for stay in stays]


def _joined(stay: Sequence[Stretch]) -> list[Stretch]:
    joined: list[Stretch] = []
    for stretch in stay:
        if joined and (joined[-1].phase, joined[-1].category) == (stretch.phase, stretch.category):
            joined[-1] = replace(stretch, start=joined[-1].start)
        else:
            joined.append(stretch)
    return joined


def _bars(visits: Sequence[Sequence[Stretch]]) -> list[Bar]:
    free_at: list[float] = []
    bars: list[Bar] = []
    for visit in sorted(visits, key=lambda stay: (stay[0].start, stay[0].trial)):
        lane = next((i for i, free in enumerate(free_at) if free <= visit[0].start), len(free_at))
        free_at[lane : lane + 1] = [visit[-1].end]
        bars += [Bar(stretch, lane) for stretch in visit]
    return bars


def shares(history: History, node: str) -> tuple[list[float], dict[str, list[float]]]:
    """Return the times at which a share on ``node`` changed, and each trial's cores from each on.

    A trial that is not on the node has 0 cores; every trial's list is as long as the times.
    """
    here = [s for s in history.all_stretches() if s.node == node and s.cpu is not None]
    times = sorted({0.0, history.end, *(s.start for s in here), *(s.end for s in here)})
    trials = dict.fromkeys(s.trial for s in sorted(here, key=lambda s: (s.start, s.trial)))
    return times, {trial: [_cores_at(here, trial, time) for time in times] for trial in trials}


def _cores_at(stretches: Sequence[Stretch], trial: str, time: float) -> float:
    return next((s.cpu or 0.0 for s in stretches if s.trial == trial and s.start <= time < s.end), 0.0)


def usage(history: History, node: str) -> list[tuple[float, float]]:
    """Return time and busy cores of ``node``: the sum over the trials on it of what each used last."""
    told = sorted(
        (at, trial, cores) for trial, uses in history.usage.items() for at, cores, where in uses if where == node
    )
    latest: dict[str, float] = {}
    sums: dict[float, float] = {}
    for at, trial, cores in told:
        latest = {name: used for name, used in latest.items() if _was_on(history, name, node, at)} | {trial: cores}
        sums[at] = sum(latest.values())
    return list(sums.items())


def _was_on(history: History, trial: str, node: str, at: float) -> bool:
    return any(s.node == node and s.start <= at <= s.end for s in history.stretches.get(trial, ()))
