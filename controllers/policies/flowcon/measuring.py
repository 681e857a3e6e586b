"""What FlowCon remembers of each trial and node, and how it measures how efficiently a trial grows."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from operator import attrgetter
from typing import Final

from controllers.core.actions import Assessment
from controllers.core.model import Category, NodeName, Snapshot, Trial, TrialId
from controllers.core.policy import CLOCK_SLACK
from controllers.core.progress import (
    Mark,
    growth,
    growth_efficiency,
    is_stale,
    mark,
    recategorise,
    reported_since,
    usable,
)
from controllers.policies.kit.settings import Threshold

_ID: Final = attrgetter("id")


@dataclass(frozen=True)
class FlowConMemo:
    """One trial: its list, its growth efficiency now and at its best, and its soft limit (share of a node).

    ``stale`` says that its newest report was too old to decide on when its node was last looked at.
    """

    category: Category = Category.PROGRESSING
    mark: Mark | None = None
    growth: float | None = None
    efficiency: float | None = None
    peak: float = 0.0
    limit: float = 1.0
    stale: bool = False

    @cached_property
    def assessment(self) -> Assessment:
        """What is shown to people."""
        return Assessment(self.category, self.growth)


@dataclass(frozen=True, slots=True)
class NodeMemo:
    """One node: the trials that shared it last, the present interval (seconds), and when to run next."""

    members: tuple[TrialId, ...]
    interval: float
    due_at: float

    def rests(self, members: Iterable[Trial], now: float) -> bool:
        """Return whether the node is not due at ``now`` and still shared by the same trials."""
        return now < self.due_at - CLOCK_SLACK and self.members == tuple(map(_ID, members))


@dataclass(frozen=True, slots=True)
class FlowConState:
    """Memos of the trials that have not ended and of the nodes that have trials, by name."""

    trials: Mapping[TrialId, FlowConMemo] = field(default_factory=dict)
    nodes: Mapping[NodeName, NodeMemo] = field(default_factory=dict)


_UNKNOWN: Final = FlowConMemo()


def recall(snapshot: Snapshot, state: FlowConState) -> dict[TrialId, FlowConMemo]:
    """Return the memos to go on with: of every live trial, and of those that were live and have not ended."""
    return {
        trial.id: state.trials.get(trial.id, _UNKNOWN)
        for trial in snapshot.unended
        if trial.live or trial.id in state.trials
    }


def measure(trial: Trial, memo: FlowConMemo, threshold: Threshold, now: float) -> FlowConMemo:
    """Return the memo after a look at the trial's newest report (Algorithm 1, lines 2-13).

    Without a new, usable report, or where the CPU it used is unknown or near 0, its list stays. Alpha is a share of the
    trial's own peak efficiency.
    """
    known = trial.progress
    stale = known is not None and is_stale(known, now, threshold.stale_after)
    memo = memo if memo.stale == stale else replace(memo, stale=stale)
    progress = usable(known, now, threshold.stale_after)
    if progress is None or (memo.mark and not reported_since(progress, memo.mark)):
        return memo
    if memo.mark is None or memo.mark.cpu_seconds is None:
        return replace(memo, mark=mark(progress))
    gain = growth(progress, memo.mark, trial.direction, threshold.normalise)
    efficiency = growth_efficiency(gain, progress, memo.mark)
    if efficiency is None:
        return memo
    peak = max(memo.peak, efficiency)
    fast = efficiency > 0 and efficiency >= threshold.alpha * peak
    category = recategorise(memo.category, fast=fast, slowing=True)
    return replace(memo, category=category, mark=mark(progress), growth=gain, efficiency=efficiency, peak=peak)
