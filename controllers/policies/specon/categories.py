"""Algorithm 3 of the thesis: how fast one trial still grows."""

from dataclasses import dataclass, replace

from controllers.core.model import Category, Trial
from controllers.core.progress import Normalise, growth, mark, recategorised, reported_since, usable
from controllers.policies.specon.state import TrialMemo


@dataclass(frozen=True, slots=True)
class Threshold:
    """Below which gain a trial slows, how gains are measured, and the age (seconds) of a report that still counts."""

    alpha: float
    normalise: Normalise
    stale_after: float


def categorised(trial: Trial, memo: TrialMemo, threshold: Threshold, now: float) -> TrialMemo:
    """Return the memo after one categorisation interval; without a new, usable report it stays as it is.

    The first report is only remembered, and the first gain has no gain before it to fall below.
    """
    progress = usable(trial.progress, now, threshold.stale_after)
    if progress is None or (memo.mark and not reported_since(progress, memo.mark)):
        return memo
    if memo.mark is None:
        return replace(memo, mark=mark(progress))
    gain = growth(progress, memo.mark, trial.direction, threshold.normalise)
    category = _next_category(memo, gain, threshold.alpha)
    since = memo.converged_at if memo.category is Category.CONVERGED else now
    converged_at = since if category is Category.CONVERGED else None
    return replace(memo, mark=mark(progress), growth=gain, category=category, converged_at=converged_at)


def went_on_declining(before: TrialMemo, after: TrialMemo) -> bool:
    """Return whether a trial that had converged gained still less: the time to ask for a move."""
    if before.category is not Category.CONVERGED or after.category is not Category.CONVERGED:
        return False
    return after.growth is not None and _declined(before.growth, after.growth)


def _next_category(memo: TrialMemo, gain: float, alpha: float) -> Category:
    return recategorised(memo.category, fast=gain >= alpha, slowing=_declined(memo.growth, gain))


def _declined(before: float | None, gain: float) -> bool:
    """Return whether a gain fell, or is none at all.

    The listing asks for a smaller gain than before. Its |dE| is never quite 0; ours is, whenever a trial
    gets no better, and a trial that stands still for good would stay WATCHING for ever.
    """
    return before is not None and (gain < before or gain == 0)
