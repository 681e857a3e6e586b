"""Features: what is known of each trial of a sweep that has not ended, as numbers without units. Pure.

All losses are taken by the scale of the sweep: how far its best completed trial is above the middle. So a feature says
the same of an accuracy, a cross-entropy and a reward.
"""

from typing import Any, Final

import numpy as np

from controllers.policies.promote.curves import PARTS

Floats = np.ndarray[Any, np.dtype[np.float64]]
Whole = np.ndarray[Any, np.dtype[np.int64]]
NAMES: Final = (
    "completed",
    "empirical",
    "octaves_short",
    "gap",
    "need",
    "need_by_most_gain",
    "spread",
    "most_gain",
    "rank",
    "part",
    "noise",
    "need_by_noise",
    "late",
    "alike",
    "unended",
    "close",
    "unsettled",
)
_LEAST: Final = 1e-12
"""Below this, values of a sweep do not differ."""
_NEAR: Final = 0.1
"""Trials that have to gain less than this part of the scale are close to the best."""


def features(curves: Floats, parts: Whole, completed: Floats, least: float, noise: float) -> Floats:
    """Return the features of trials that have not ended, of shape (trials, ``len(NAMES)``).

    Args:
        curves: Best losses so far by part, of shape (trials, ``PARTS``). Each trial has made the first ``parts``;
            what follows is not read.
        parts: How many each has made, one at least.
        completed: Best losses by part of those that have trained to their end, of shape (completed, ``PARTS``).
        least: The least loss of all that have trained to their end. It may be of one whose curve nobody knows: that
            raises the level to beat, and says nothing of gains.
        noise: How far a reported value is off by chance: a standard deviation.
    """
    trials = np.arange(len(parts))
    loss = curves[trials, parts - 1]
    best = completed[completed[:, -1].argmin()]
    level = min(least, float(best[-1]))
    every = np.sort(np.concatenate([loss, completed[:, -1]]))
    middle = float(np.median(every))
    scale = max(_LEAST, middle - level)
    high = every[len(every) - 1 - min(len(every) - 1, int(0.9 * len(every)))]
    need = np.clip((loss - level) / scale, -5, 10)
    gains = (completed[:, parts - 1] - completed[:, -1:]) / scale
    most_gain = np.clip(gains.max(axis=0), -1, 10)
    noise = min(noise / scale, 10.0)
    rank, alike = _ranks(curves, parts, completed)
    half = (completed[:, PARTS // 2 - 1] - completed[:, -1]) / scale
    columns = (
        np.full(len(parts), float(len(completed))),
        (gains >= need).sum(axis=0) / (len(completed) + 1),
        np.clip(need - _expected_gain(curves, parts) / scale, -20, 10),
        np.clip((loss - best[parts - 1]) / scale, -10, 10),
        need,
        np.clip(need / np.maximum(_LEAST, most_gain + 0.02), -5, 20),
        np.full(len(parts), np.log(max(0.0, middle - high) / scale + 0.001)),
        most_gain,
        rank,
        parts / PARTS,
        np.full(len(parts), np.log(noise + 0.001)),
        np.clip(need / (noise + 0.01), -5, 20),
        np.full(len(parts), np.clip(np.median(half), 0, 10)),
        alike,
        np.full(len(parts), np.log(len(parts))),
        np.full(len(parts), np.log1p((need < _NEAR).sum())),
        np.clip((curves[trials, np.maximum(parts - 3, 0)] - loss) / scale, 0, 10),
    )
    return np.stack(columns, axis=1)


def _ranks(curves: Floats, parts: Whole, completed: Floats) -> tuple[Floats, Floats]:
    """Return by trial the share of others that were better where it is, and how like the order there is to the end's.

    That is the correlation of ranks among the completed ones; 0 where there are fewer than four.
    """
    rank, alike = np.empty(len(parts)), np.zeros(len(parts))
    ends = _standardised(completed[:, -1].argsort().argsort())
    for part in np.unique(parts):
        here = parts == part
        there = np.sort(np.concatenate([curves[parts >= part, part - 1], completed[:, part - 1]]))
        rank[here] = np.searchsorted(there, curves[here, part - 1]) / len(there)
        if len(completed) >= 4:  # noqa: PLR2004 - told above
            alike[here] = float(_standardised(completed[:, part - 1].argsort().argsort()) @ ends) / len(completed)
    return rank, alike


def _standardised(ranks: Whole) -> Floats:
    off = ranks - ranks.mean()
    return np.asarray(off / max(_LEAST, float(np.sqrt((off**2).mean()))))


def _expected_gain(curves: Floats, parts: Whole) -> Floats:
    """Return how much each gains to its end if each doubling of its training brings as much less as the last two."""
    trials = np.arange(len(parts))
    at = curves[trials, parts - 1]
    half = curves[trials, np.maximum(1, parts // 2) - 1]
    quarter = curves[trials, np.maximum(1, parts // 4) - 1]
    newer, older = half - at, quarter - half
    ratio = np.where(older <= 0, 1.0, np.clip(newer / np.where(older <= 0, 1.0, older), 0.0, 1.2))
    doublings = np.log2(PARTS / parts)
    same = np.abs(ratio - 1.0) < 1e-9  # noqa: PLR2004 - rounding
    series = np.where(same, doublings, ratio * (1 - ratio**doublings) / np.where(same, 1.0, 1 - ratio))
    return np.asarray(newer * series)
