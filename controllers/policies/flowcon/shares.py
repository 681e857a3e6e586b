"""From growth efficiencies to limits, and from limits to shares, on one node."""

from collections.abc import Mapping, Sequence

from controllers.core.model import Category, TrialId
from controllers.policies.flowcon.state import TrialMemo


def limits(memos: Mapping[TrialId, TrialMemo], beta: float) -> dict[TrialId, float]:
    """Return each trial's soft limit as a share of the node (Algorithm 1, lines 14-26).

    A trial that was never measured gets 1, and counts in ``sum G`` as if it grew as efficiently as the
    best trial of the node ever did. All completing: every limit is 1.
    """
    if all(memo.category is Category.CONVERGED for memo in memos.values()):
        return dict.fromkeys(memos, 1.0)
    fastest = max((memo.peak for memo in memos.values()), default=0.0)
    guesses = [fastest if memo.efficiency is None else memo.efficiency for memo in memos.values()]
    floor = 1 / (beta * len(memos))
    return {trial: _limit(memo, _part(memo.efficiency, guesses), floor) for trial, memo in memos.items()}


def _limit(memo: TrialMemo, part: float, floor: float) -> float:
    if memo.category is Category.WATCHING or memo.stale:
        return memo.limit
    return 1.0 if memo.efficiency is None else max(part, floor)


def _part(efficiency: float | None, everyone: Sequence[float]) -> float:
    # Against the largest first, so that a sum of huge values stays finite.
    largest = max(everyone)
    if efficiency is None or largest <= 0:
        return 0.0
    return efficiency / largest / sum(other / largest for other in everyone)


def fair_shares(caps: Mapping[TrialId, float]) -> dict[TrialId, float]:
    """Split 1 max-min fairly under ``caps``: nobody can get more without one who has less getting less.

    Caps that sum to less than 1 are scaled up to 1, as what one trial does not use, others may.
    """
    total = sum(caps.values())
    if total <= 1:
        return {trial: cap / total for trial, cap in caps.items()}
    shares: dict[TrialId, float] = {}
    left, waiting = 1.0, len(caps)
    for trial in sorted(caps, key=lambda trial: (caps[trial], trial)):
        shares[trial] = min(caps[trial], left / waiting)
        left, waiting = left - shares[trial], waiting - 1
    return shares
