"""How many cores the trials of each node get together, where others use the machine too. Pure.

A node has a size, and a supply: what others leave of it. Its trials tell: while some of them wait for a CPU, all that
they use together is all that there is. What they wait for is asked of the operating system, by the hooks. A trial that
can use no more does not wait, however little it uses, so what it *can* use and what it *was let* use are told apart.

What is learnt here can be wrong, or over by now. Newer evidence outweighs older within seconds. Without any, a node is
taken for whole again after a minute, and after longer ones each time that this was a mistake.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from controllers.core.model import Node, NodeName, Phase, Progress, Trial, TrialId

SETTLES_S: Final = 30.0
"""Seconds after which new evidence counts for two thirds."""
FORGOTTEN_S: Final = 60.0
"""Seconds without evidence after which two thirds of a node's missing cores count as there again."""
MOST_FORGOTTEN_S: Final = 960.0
"""``FORGOTTEN_S`` at most: it doubles each time that cores which counted as there were missing again."""
NEARLY_ALL: Final = 0.85
"""A node whose trials get this part of it is taken for whole: use is measured no better."""
EXPLAINED: Final = 0.5
"""Others have a node's unused cores if its trials waited for at least this part of them."""
LEAST_APART_S: Final = 0.9
"""Seconds between two counts of a trial at least, so that its use is measured well enough."""
MOST_S: Final = 1e12
"""Seconds that a trial may count; more make no sense."""
FRESH_S: Final = 30.0
"""A trial's use is believed for so many seconds at least."""
FRESH_COUNTS: Final = 3.0
"""It is believed for this many times the seconds that it was counted over, if that is longer."""


@dataclass(frozen=True, slots=True)
class Counted:
    """What a trial used from ``since`` to ``at``, in cores, and what it ``waited`` for beside them: CPUs, on average.

    ``cpu_seconds`` and ``cpu_wait`` are its counts at ``at``; ``used`` is None before there are two of one attempt.
    """

    attempt: int
    at: float
    cpu_seconds: float
    cpu_wait: float
    since: float = 0.0
    used: float | None = None
    waited: float = 0.0

    def fresh(self, now: float, since: float) -> bool:
        """Whether this tells of ``now``, and of nothing before ``since``."""
        lasts = max(FRESH_S, FRESH_COUNTS * (self.at - self.since))
        return self.used is not None and now - self.at <= lasts and self.since >= since


@dataclass(frozen=True, slots=True)
class Supplied:
    """The ``part`` of a node that its trials get, as is believed.

    ``forgotten_s`` is how long a lack is believed without being told of again; ``lacked`` tells that there was one
    before. ``trials`` are those of the last look; the newest that left did so at ``left_at``.
    """

    part: float = 1.0
    forgotten_s: float = FORGOTTEN_S
    trials: tuple[TrialId, ...] = ()
    left_at: float = 0.0
    lacked: bool = False

    @property
    def whole(self) -> bool:
        """Whether the node counts as whole."""
        return self.part >= NEARLY_ALL


@dataclass(frozen=True, slots=True)
class Supply:
    """What is known of all nodes at ``at`` seconds of the sweep's clock, and the newest counts of their trials."""

    at: float = 0.0
    counts: Mapping[TrialId, Counted] = field(default_factory=dict)
    nodes: Mapping[NodeName, Supplied] = field(default_factory=dict)


def supply_after(now: float, trials: Iterable[Trial], nodes: Iterable[Node], before: Supply) -> Supply:
    """Return what is known after a look.

    Args:
        now: Seconds of the sweep's clock.
        trials: Those that have not ended, with their progress.
        nodes: All nodes; a lack that is known of one does not count.
        before: What was known after the look before.
    """
    on: dict[NodeName, list[Trial]] = {node.name: [] for node in nodes}
    counts: dict[TrialId, Counted] = {}
    for trial in trials:
        counted = _newest_counts(trial, before.counts.get(trial.id))
        if counted is not None:
            counts[trial.id] = counted
        for node in dict.fromkeys(trial.nodes) if trial.live else ():
            if node in on:
                on[node].append(trial)
    seconds = max(0.0, now - before.at)
    nodes_after = {
        node.name: _update_supply(node, on[node.name], counts, now, seconds, before.nodes.get(node.name, Supplied()))
        for node in nodes
    }
    return Supply(now, counts, nodes_after)


def with_supply(nodes: Sequence[Node], supply: Supply) -> tuple[Node, ...]:
    """Return ``nodes`` with the cores that their trials get; each the same object where it counts as whole."""
    known = supply.nodes
    return tuple(
        node
        if node.name not in known or known[node.name].whole
        else replace(node, supply=known[node.name].part * node.cpu)
        for node in nodes
    )


def _newest_counts(trial: Trial, before: Counted | None) -> Counted | None:
    """Return the newest counts of a trial; None where it tells nothing of waiting."""
    progress = trial.progress
    if progress is None or progress.cpu_seconds is None or progress.cpu_wait is None:
        return None
    if trial.phase is not Phase.RUNNING and before is not None:
        return before
    now = Counted(trial.attempt, progress.at, _sensible(progress.cpu_seconds), _sensible(progress.cpu_wait))
    if before is None or before.attempt != trial.attempt:
        return now
    return _counted_since(before, now, progress)


def _sensible(seconds: float) -> float:
    """Return what a trial counts, bounded: anybody may log anything, and all that follows from it stays finite."""
    return min(max(seconds, 0.0), MOST_S)


def _counted_since(before: Counted, now: Counted, progress: Progress) -> Counted:
    seconds = progress.at - before.at
    used, waited = now.cpu_seconds - before.cpu_seconds, now.cpu_wait - before.cpu_wait
    if used < 0 or waited < 0:
        return now
    if seconds < LEAST_APART_S or used + waited == 0:
        return before  # some tell of CPU seconds only now and then
    return replace(now, since=before.at, used=used / seconds, waited=waited / seconds)


def _update_supply(
    node: Node, trials: Sequence[Trial], counts: Mapping[TrialId, Counted], now: float, seconds: float, known: Supplied
) -> Supplied:
    names = tuple(sorted(trial.id for trial in trials))
    left_at = known.left_at if set(known.trials) <= set(names) else now
    after = replace(known, trials=names, left_at=left_at)
    told = _part_given(node, trials, counts, now, left_at)
    if told is None:
        return replace(after, part=_nearer(known.part, 1.0, seconds, known.forgotten_s))
    part = _nearer(known.part, told, seconds, SETTLES_S)
    patience = known.forgotten_s
    if known.whole and part < NEARLY_ALL:
        patience = min(MOST_FORGOTTEN_S, 2 * patience) if known.lacked else patience
    elif told >= NEARLY_ALL:
        patience = _nearer(patience, FORGOTTEN_S, seconds, MOST_FORGOTTEN_S)
    return replace(after, part=part, forgotten_s=patience, lacked=known.lacked or part < NEARLY_ALL)


def _part_given(
    node: Node, trials: Sequence[Trial], counts: Mapping[TrialId, Counted], now: float, since: float
) -> float | None:
    """Return the part of ``node`` that its trials get as they tell it; None where they do not."""
    used = waited = 0.0
    for trial in trials:
        counted = counts.get(trial.id)
        if counted is None or counted.used is None or not counted.fresh(now, since):
            return None
        here = trial.nodes.count(node.name) / len(trial.nodes)
        used += here * counted.used
        waited += here * counted.waited
    if not trials or node.cpu <= 0:
        return None
    part = min(1.0, used / node.cpu)
    lack = node.cpu - used
    return part if part >= NEARLY_ALL or waited >= EXPLAINED * lack else None


def _nearer(value: float, aim: float, seconds: float, constant_s: float) -> float:
    """Return ``value`` after it went towards ``aim`` for ``seconds``."""
    return aim + (value - aim) * math.exp(-min(seconds, 1e6) / constant_s)
