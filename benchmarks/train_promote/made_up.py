"""Made-up learning curves for training ``promote``: eight kinds, none of them used for judging.

Each sweep draws how its trials differ (in where they end, how fast they get there, how that goes together), how the
schedule bends their curves, how noisy an evaluation is and how coarse. The kinds are what broke a promise before:
noise, late gains, trials close together, plateaus, coarse metrics, overfitting, and sweeps in which few trials learn at
all.
"""

from typing import Final

import numpy as np
from numpy.random import Generator

from controllers.policies.promote.curves import PARTS
from controllers.policies.promote.features import Floats

KINDS: Final = ("plain", "noisy", "late", "close", "plateaus", "coarse", "overfits", "few-learn")


def sweep(kind: str, seed: int, trials: int) -> Floats:
    """Return losses by trial and part of a made-up sweep of ``kind``."""
    chance = np.random.default_rng([seed, KINDS.index(kind)])
    ends = _ends(chance, trials, kind)
    values = ends[:, None] + _heights(chance, ends)[:, None] * _shapes(chance, ends, kind)
    values += _late(chance, trials, kind)
    if kind == "overfits" or chance.random() < 0.2:  # noqa: PLR2004 - one of five
        values += _overfitting(chance, trials)
    spread = max(1e-9, float(np.median(values[:, -1]) - values[:, -1].min()))
    noise = _noise(chance, kind) * spread
    if noise:
        each = noise * np.exp(chance.normal(0, 0.3, (trials, 1)))
        values = values + each * chance.standard_t(6, values.shape) * 0.8
    if kind == "coarse" or chance.random() < 0.15:  # noqa: PLR2004 - about one of seven
        grain = spread * np.exp(chance.uniform(np.log(0.01), np.log(0.2)))
        values = np.round(values / grain) * grain
    return np.asarray(values)


def _ends(chance: Generator, trials: int, kind: str) -> Floats:
    """Return what trials would come to without an end: a few good ones, a tail of bad ones."""
    if kind == "close":
        return np.asarray(chance.gamma(chance.uniform(4, 20), 1.0, trials) / chance.uniform(4, 20))
    quality = chance.gamma(np.exp(chance.uniform(np.log(0.6), np.log(5))), 1.0, trials)
    if kind == "few-learn":
        quality = np.where(chance.random(trials) < chance.uniform(0.3, 0.8), quality.max() + quality / 20, quality)
    return np.asarray(quality / max(1e-9, float(np.median(quality))))


def _heights(chance: Generator, ends: Floats) -> Floats:
    """Return how far above its end each begins."""
    start = ends.max() * np.exp(chance.uniform(np.log(0.8), np.log(4)))
    heights = np.maximum(0.02, start * np.exp(chance.normal(0, 0.1, len(ends))) - ends)
    return np.asarray(heights)


def _shapes(chance: Generator, ends: Floats, kind: str) -> Floats:
    """Return how much of its height each has left after each part: power laws, exponentials and steps between."""
    part = (np.arange(PARTS) + 1)[None, :] / PARTS
    together = chance.uniform(-0.6, 0.8)
    ranks = (ends.argsort().argsort() / max(1, len(ends) - 1) - 0.5) * np.sqrt(12)
    drawn = -together * ranks + np.sqrt(1 - together**2) * chance.normal(0, 1, len(ends))
    speed = np.exp(chance.uniform(1.0, 3.4) + 0.6 * drawn)[:, None]
    power = (1 + speed * part) ** -np.exp(chance.uniform(np.log(0.4), np.log(2.0)))
    exponential = np.exp(-speed / 3 * part)
    mixed = chance.uniform(0, 1)
    shape = mixed * power + (1 - mixed) * exponential
    if kind == "plateaus" or chance.random() < 0.2:  # noqa: PLR2004 - one of five
        begins = chance.beta(1.5, 4, (len(ends), 1)) * chance.uniform(0.3, 1)
        waits = chance.random((len(ends), 1)) < chance.uniform(0.2, 0.9)
        later = 1 / (1 + np.exp((part - begins) * chance.uniform(15, 60)))
        shape = np.where(waits, np.maximum(shape, later * np.minimum(1, shape + 0.9)), shape)
    return np.asarray(shape)


def _late(chance: Generator, trials: int, kind: str) -> Floats:
    """Return what the schedule of the learning rate takes away late: a part of each trial's own."""
    part = (np.arange(PARTS) + 1)[None, :] / PARTS
    if kind not in {"late", "close"} and chance.random() < 0.5:  # noqa: PLR2004 - half
        return np.zeros((trials, PARTS))
    most = np.exp(chance.uniform(np.log(0.05), np.log(1.0 if kind == "late" else 0.4)))
    own = most * np.exp(chance.normal(0, chance.uniform(0.1, 0.8), (trials, 1)))
    bend = {0: 0.5 * (1 + np.cos(np.pi * part)), 1: 1 - part ** chance.uniform(1, 6)}[int(chance.integers(2))]
    return np.asarray(own * bend)


def _overfitting(chance: Generator, trials: int) -> Floats:
    part = (np.arange(PARTS) + 1)[None, :] / PARTS
    begins = chance.uniform(0.05, 1.2, (trials, 1))
    return np.asarray(np.maximum(0, part - begins) * np.exp(chance.normal(-1.5, 1, (trials, 1))))


def _noise(chance: Generator, kind: str) -> float:
    """Return the noise of an evaluation, by how far the best is above the middle."""
    if kind in {"noisy", "close"}:
        return float(np.exp(chance.uniform(np.log(0.02), np.log(0.5))))
    return float(np.exp(chance.uniform(np.log(0.001), np.log(0.1)))) if chance.random() < 0.5 else 0.0  # noqa: PLR2004
