"""From what is known of a sweep to the ranges in which its trials and the sweep itself will end. Pure.

What nobody knows is drawn (``guesses``), the sweep is followed to its end once for each draw (``fluid``), and the
range holds nine of ten of these ends.
"""

import math
import statistics
from bisect import bisect_left
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, NamedTuple, Self

from controllers.core.actions import Migrate, Resize
from controllers.core.forecast import WITHIN, EndRange, Forecast
from controllers.core.model import Node, Snapshot
from controllers.core.policy import Policy
from controllers.core.ports import ComingTrial
from controllers.forecast.fluid import ends
from controllers.forecast.guesses import LengthGuesses, LengthsBeyond, Like, Mosts, Stops, normal, uniform
from controllers.forecast.jobs import KnownJob, KnownSweep, known_sweep
from controllers.forecast.model import Course, FluidModel, Job
from controllers.forecast.supplies import Supplies, drawn_supplies
from controllers.forecast.waiting import Waits
from controllers.policies.kit.settings import PolicySettings
from controllers.policies.kit.waits import ONE_CORE
from controllers.policies.kit.work_left import SweepMeasurements
from controllers.policies.wrappers.wrapper import most_moves, parts

DRAWS: Final = (61, 43, 31, 23, 17, 13, 11, 7, 5, 3)
"""How often a sweep may be followed: primes, as ``guesses.uniform`` needs them."""
MOST_JOBS: Final = 4000
"""Trials times draws of a forecast: a large sweep is followed less often."""
MANY_MOVES: Final = 4
"""Moves of a trial that a forecast assumes under a policy without a limit."""
WAYS_TO_SHARE: Final = (math.inf, 4.0, 2.0, 1.0)
"""Exponents of ``kit.allocation.allocate``; infinity stands for 1 / (1 - power)."""
FOREVER_S: Final = 10 * 365 * 86_400.0
"""An end that may be so many seconds away is not told."""
DOUBT_OF_CONTENTION: Final = 0.02
"""Part of its speed that each further trial on a node may take from all others there, beyond what was measured."""
COMMON: Final = 0.3
"""Part of the uncertainty of what steps cost that all trials have in common: they run the same code."""
LEAST: Final = 0.02
"""A trial that has not ended has at least this part of its length left."""
OTHER_SIZES: Final = 0.25
"""Spread of what is left of a gang that grows and shrinks: as if by more or fewer cores than it has."""
NOT_SEEN: Final = Supplies()
END_S: Final = 2.0
"""Seconds by which an end may be missed: it takes a while until a trial has gone, and until that is seen."""


@dataclass(frozen=True, slots=True)
class PolicyTraits:
    """What there is to know of the policy that steers a sweep.

    ``reweighs`` tells that it changes shares by something else than the work left. ``most_moves`` is how often it
    moves a trial at most. ``scales_gangs`` tells that it changes how many workers they have.
    """

    shortest_first: bool = False
    reweighs: bool = False
    most_moves: int = 0
    scales_gangs: bool = False

    @classmethod
    def by(cls, policy: Policy[Any]) -> Self:
        """Return what there is to know of ``policy``."""
        shortest = any(part.shortest_first for part in parts(policy) if isinstance(part, PolicySettings))
        moves = most_moves(policy) if Migrate in policy.needs else 0
        scales = any(part.scales_gangs for part in parts(policy) if isinstance(part, PolicySettings))
        return cls(shortest, Resize in policy.needs and not shortest, MANY_MOVES if moves is None else moves, scales)

    @property
    def spread(self) -> "Spread":
        """What such a policy leaves open, even if all lengths were known."""
        if self.shortest_first:
            return Spread(end=0.05, trial=0.1, moves=1.0)
        if not (self.reweighs or self.most_moves):
            return Spread(end=0.03, trial=0.02)
        return Spread(0.03, 0.03 if self.reweighs else 0.1, 0.7 if self.reweighs else 0.0, 0.5)


@dataclass(frozen=True, slots=True)
class Spread:
    """What the model misses, as spreads of logarithms, found on simulated sweeps (docs/experiments/forecasts.md).

    ``end`` is of the time left to the sweep's end, ``trial`` of that to a trial's, ``weight`` of the shares to come.
    ``moves`` is the chance that trials move to where cores are idle.
    """

    end: float = 0.01
    trial: float = 0.01
    weight: float = 0.0
    moves: float = 0.0


def forecast(
    snapshot: Snapshot,
    measured: SweepMeasurements,
    to_come: Iterable[ComingTrial],
    steering: PolicyTraits,
    leaving_s: float = 0.0,
    supplies: Supplies = NOT_SEEN,
) -> Forecast:
    """Return when the trials of ``snapshot`` and the sweep will end; without ranges while nothing is known.

    Args:
        snapshot: What there is.
        measured: What the reports told so far, ``snapshot`` included.
        to_come: Trials that have not been submitted.
        steering: What shares the nodes, and how.
        leaving_s: Seconds from the last step of a trial until it counts as ended.
        supplies: What the nodes gave until now.
    """
    now, known = (
        snapshot.now,
        known_sweep(snapshot, measured, to_come, steering.most_moves, takes_turns=steering.shortest_first),
    )
    if not known.jobs:
        return Forecast(now, EndRange(now, now, now))
    if steering.shortest_first:
        known = replace(known, jobs=sorted(known.jobs, key=_shortest_first))
    if steering.scales_gangs:
        known = replace(known, jobs=[_of_other_sizes(trial) for trial in known.jobs])
    model = FluidModel(
        [trial.job for trial in known.jobs],
        known.rooms,
        known.power,
        steering.shortest_first,
        known.calm_at,
        known.move_s,
        known.speeds,
    )
    takers = [node for node in snapshot.nodes if node.ready and node.supplied > 0]
    drawn_ends = [ends(model, course) for course in _courses(known, steering.spread, takers, supplies)]
    if not drawn_ends:
        return Forecast(now)
    sweeps: dict[str, list[int]] = {}
    for place, trial in enumerate(known.jobs):
        sweeps.setdefault(trial.name.rpartition(".")[0], []).append(place)
    spread, submitted = steering.spread, {trial.id for trial in snapshot.unended}

    def told(name: str, places: Sequence[int], part: float) -> EndRange | None:
        coming = max(_comes_at(known.jobs[place].job) for place in places) + leaving_s
        left = [max([of_draw[place] for place in places]) + leaving_s for of_draw in drawn_ends]
        return _range(name, left, part, now, coming)

    of_sweeps = {sweep: told(sweep, own, spread.end) for sweep, own in sweeps.items()}
    of_trials = {
        trial.name: told(trial.name, [place], spread.trial)
        for place, trial in enumerate(known.jobs)
        if trial.name in submitted
    }
    return Forecast(
        now,
        told("all", range(len(known.jobs)), spread.end),
        {sweep: end for sweep, end in of_sweeps.items() if end is not None},
        {trial: end for trial, end in of_trials.items() if end is not None},
    )


def _shortest_first(trial: KnownJob) -> float:
    """Return by what trials that wait begin (``ahead.order``), as far as it is known how long they are."""
    return trial.left if trial.job.node is None and trial.left is not None else 0.0


def _of_other_sizes(trial: KnownJob) -> KnownJob:
    return replace(trial, error=math.hypot(trial.error, OTHER_SIZES)) if trial.elastic else trial


def _comes_at(job: Job) -> float:
    """Return in how many seconds a trial will be submitted: it cannot end sooner."""
    return job.at or 0.0 if job.node is None else 0.0


class _Row(NamedTuple):
    """What was drawn of a job, for each draw."""

    works: list[float]
    mosts: list[float]
    weights: list[float]
    waits: list[float]


class _Works:
    """What is drawn of the work of trials that have not told it.

    One that runs makes as many steps as others, or does as much work: whichever differs less among those that are
    known. One that has made no step does as much work as any other.
    """

    def __init__(self, known: KnownSweep, draws: int) -> None:
        steps, works = [whole.steps for whole in known.totals], [whole.work for whole in known.totals]
        self._in_steps = _spread(steps) <= _spread(works)
        begun = [trial for trial in known.jobs if trial.left is None and trial.step > 0]
        done = [trial.done / self._unit(trial) for trial in begun]
        self._begun = LengthsBeyond(steps if self._in_steps else works, done, draws)
        expected = [statistics.median(total for _, total in self.drawn(trial)) for trial in begun]
        self._others = LengthGuesses([*works, *expected], draws)

    def _unit(self, trial: KnownJob) -> float:
        return trial.step if self._in_steps else 1.0

    def drawn(self, trial: KnownJob) -> list[tuple[float, float]]:
        """Return, for each draw, a work in all as other trials have it, and that work with its uncertainty."""
        if trial.step <= 0:
            return self._others.drawn(trial.name)
        unit = self._unit(trial)
        return [(total * unit, total * unit) for total in self._begun.drawn(trial.name, trial.done / unit)]


class _Paces:
    """What is drawn of how trials wait rather than compute.

    One that has told nothing of it waits like the one that is about as long. Where it is open whether they wait or
    others hold them back, it is the same for all in a draw: the trials of a sweep are mostly of one kind.
    """

    def __init__(self, known: KnownSweep, draws: int) -> None:
        self._draws = draws
        self._chances = uniform("waits", draws)
        self._known = sorted(((whole.work, whole.waits) for whole in known.totals), key=lambda pair: pair[0])
        self._works = [work for work, _ in self._known]
        self.any = any(waits.chance for _, waits in self._known) or any(trial.waits.chance for trial in known.jobs)

    def drawn(self, trial: KnownJob, seen: Sequence[float]) -> list[float | None]:
        """Return, for each draw, the seconds that it waits in each second of work; None where it computes.

        Args:
            trial: It, as it is known by now.
            seen: Its length in each draw.
        """
        if not self.any:
            return [None] * self._draws
        own = trial.left is not None or trial.step > 0
        each = [trial.waits if own else self._like(total) for total in seen]
        drawn = zip(each, self._chances, strict=True)
        return [waits.seconds if chance < waits.chance else None for waits, chance in drawn]

    def _like(self, total: float) -> Waits:
        place = bisect_left(self._works, total)
        near = self._known[max(0, place - 1) : place + 1]
        return min(near, key=lambda other: abs(other[0] - total))[1]


def _spread(values: Sequence[float]) -> float:
    return statistics.pstdev(map(math.log, values))


def _courses(known: KnownSweep, spread: Spread, nodes: Sequence[Node], supplies: Supplies) -> list[Course]:
    """Return the ways in which the sweep may go on; none while no length is known."""
    jobs, rooms = known.jobs, known.rooms
    draws = next((draws for draws in DRAWS if draws * len(jobs) <= MOST_JOBS), DRAWS[-1])
    if not (known.totals and rooms):
        return []
    unknown = _Works(known, draws)
    like = [
        Like(trial.done + trial.left, (trial.used, False) if trial.most is None else (trial.most, True))
        for trial in jobs
        if trial.left is not None and (trial.most is not None or trial.used > 0)
    ]
    mosts = Mosts(like, max(room.cores for room in rooms), draws)
    paces = _Paces(known, draws)
    stops = Stops(known.parts, [trial.made for trial in jobs if trial.left is not None])
    contention = [known.contention + DOUBT_OF_CONTENTION * chance**2 for chance in uniform("contention", draws)]
    given = [math.pow(known.given, chance) for chance in uniform("given", draws)]
    common = [math.sqrt(COMMON) * score for score in normal("cost", draws)]
    rows: list[_Row] = []
    for trial in jobs:
        own = (math.sqrt(1 - COMMON) * score for score in normal(f"{trial.name} cost", draws))
        errors = [sum(both) for both in zip(common, own, strict=True)]
        if trial.left is None:
            drawn = unknown.drawn(trial)
            seen = [total for total, _ in drawn]
            rests = [max(total - trial.done, LEAST * total) + trial.startup for _, total in drawn]
            works = [rest * math.exp(trial.error * error) for rest, error in zip(rests, errors, strict=True)]
        else:
            seen = [trial.done + trial.left] * draws
            rest = stops.left(trial.name, trial.made, draws)
            works = [
                trial.left * part * math.exp(trial.error * error) for part, error in zip(rest, errors, strict=True)
            ]
        # What steps cost was measured beside others, which the model slows down by itself.
        works = [work / (1 + of_draw * trial.others) for work, of_draw in zip(works, contention, strict=True)]
        most = mosts.drawn(trial.name, seen, trial.used) if trial.most is None else [trial.most] * draws
        waits = paces.drawn(trial, seen)
        for draw, wait in enumerate(waits):
            if wait is None:
                works[draw] /= 1.0 if trial.job.devices else given[draw]
                continue
            most[draw] = min(most[draw], ONE_CORE)
            if trial.left is None and trial.step <= 0:  # it does not wait before it trains
                begins = (known.start_s or trial.startup) / (wait + 1 / most[draw] ** known.power)
                works[draw] = max(works[draw] - trial.startup, LEAST * works[draw]) + begins
        weights = [trial.weight * math.exp(spread.weight * score) for score in normal(f"{trial.name} weight", draws)]
        rows.append(_Row(works, most, weights, [wait or 0.0 for wait in waits]))
    ties = [uniform(f"node {number}", draws) for number in range(len(rooms))]
    ways = [1 / (1 - min(known.power, 0.99)) if math.isinf(way) else way for way in WAYS_TO_SHARE]
    moves, way = uniform("moves", draws), uniform("way", draws)
    gives = drawn_supplies(nodes, supplies, draws)
    return [
        Course(
            [row.works[draw] for row in rows],
            [row.mosts[draw] for row in rows],
            [row.weights[draw] for row in rows],
            [of_node[draw] for of_node in ties],
            moves[draw] < spread.moves,
            contention[draw],
            ways[int(way[draw] * len(ways))],
            [row.waits[draw] for row in rows] if paces.any else (),
            gives[draw],
        )
        for draw in range(draws)
    ]


def _range(name: str, left: Sequence[float], spread: float, now: float, least: float) -> EndRange | None:
    """Return the range of an end by the seconds left in each draw, ``least`` at least; None where it may never come."""
    draws = len(left)
    ordered = sorted(
        least + max(0.0, seconds - least) * math.exp(spread * score)
        for seconds, score in zip(left, normal(f"{name} end", draws), strict=True)
    )
    if not ordered[-1] < FOREVER_S:
        return None

    def quantile(part: float) -> float:
        place = part * (draws + 1) - 1  # of N numbers, the n-th is about the n / (N + 1) quantile
        below = min(max(0, math.floor(place)), draws - 2)
        return max(0.0, ordered[below] + (place - below) * (ordered[below + 1] - ordered[below]))

    low, likely, high = (quantile(part) for part in ((1 - WITHIN) / 2, 0.5, (1 + WITHIN) / 2))
    return EndRange(now + max(least, low - END_S), now + likely, now + high + END_S)
