"""Odds: how likely each trial is to end as the best of its sweep, by a model that was learnt from other sweeps. Pure.

The model is a logistic regression over the features of a sweep (see ``features``), each taken as it is and once more
compressed. It says how likely a trial that has not ended is to end more than 1 % above the best one that has, in units
of what separates that from the middle of the sweep. ``python -m benchmarks.train_promote`` makes its weights.

A model that was learnt elsewhere can be wrong here. So each time that a trial goes on, what the model said of it is
kept, and held against what came: where the sweep surprises the model, all of its odds are shifted (``correction``).
"""

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Final

import numpy as np

from controllers.core.model import TrialId
from controllers.policies.kit.weights_file import read_weights, write_weights
from controllers.policies.promote.curves import PARTS, Curve
from controllers.policies.promote.features import NAMES, Floats, features

SHIPPED: Final = Path(__file__).with_name("weights.safetensors")
FEATURES_VERSION: Final = "1"
COMPRESSION: Final = 10.0
"""Of each feature x, ``arcsinh(COMPRESSION x)`` is taken too: it tells small values apart and bounds great ones."""
TRUST: Final = 1.0
"""How far the model may be off elsewhere, as a standard deviation of its log odds."""
_MOST_SHIFT: Final = 3.0
_STEPS: Final = 8
_MOST_SCORE: Final = 30.0


@dataclass(frozen=True)
class OddsModel:
    """``weights`` are those of the features as they are, then those of their compressed form."""

    weights: Floats
    bias: float

    def of(self, found: Floats) -> Floats:
        """Return the odds of trials with features ``found``, of shape (trials, ``len(NAMES)``)."""
        score = both_forms(found) @ self.weights + self.bias
        return np.asarray(1.0 / (1.0 + np.exp(-np.clip(score, -_MOST_SCORE, _MOST_SCORE))))


def both_forms(found: Floats) -> Floats:
    """Return features as they are, and compressed beside them."""
    return np.concatenate([found, np.arcsinh(COMPRESSION * found)], axis=1)


@lru_cache(maxsize=4)
def read(path: Path = SHIPPED) -> OddsModel:
    """Read a file of weights.

    Raises:
        BadWeightsError: It is not there, is too large, damaged, or of other features.
    """
    shapes = {"weights": (2 * len(NAMES),), "bias": (1,)}
    found = read_weights(path, FEATURES_VERSION, shapes, np.float64, "python -m benchmarks.train_promote")
    return OddsModel(found["weights"], float(found["bias"][0]))


def write(path: Path, model: OddsModel, told: Mapping[str, str]) -> None:
    """Write ``model`` to ``path``, with what is ``told`` of the training."""
    write_weights(path, {"weights": model.weights, "bias": np.array([model.bias])}, FEATURES_VERSION, told)


def odds_of(
    curves: Mapping[TrialId, Curve], completed: Sequence[Curve], noise: float, model: OddsModel
) -> dict[TrialId, float]:
    """Return how likely each trial is to end more than 1 % above the best completed one.

    Args:
        curves: Those of trials that have not ended and have come to a first part.
        completed: Those of trials that have trained to their end, one at least.
        noise: How far a reported value is off by chance: a standard deviation.
        model: What was learnt.
    """
    if not curves:
        return {}
    known = np.zeros((len(curves), PARTS))
    for row, curve in zip(known, curves.values(), strict=True):
        row[: len(curve)] = curve
    parts = np.array([len(curve) for curve in curves.values()])
    found = model.of(features(known, parts, np.array(completed), noise))
    return dict(zip(curves, found.tolist(), strict=True))


def risk_left(odds: Collection[float]) -> float:
    """Return how likely it is that any trial of these ``odds`` ends more than 1 % above the best completed one."""
    return 1.0 - math.prod(1.0 - one for one in odds)


def correction(said: Sequence[float], came: Sequence[float]) -> float:
    """Return by how much the log odds of the model are off in a sweep.

    It is the likeliest shift, by what the model ``said`` of trials that went on and what ``came`` (1 where one was
    better, 0 where not, its odds now where it waits), if shifts are normal with a deviation of ``TRUST``.
    """
    shift, wanted, before = 0.0, sum(came), np.array(said)
    for _ in range(_STEPS):
        now = shifted(before, shift)
        slope = wanted - float(now.sum()) - shift / TRUST**2
        shift += slope / (float((now * (1 - now)).sum()) + 1 / TRUST**2)
        shift = max(-_MOST_SHIFT, min(_MOST_SHIFT, shift))
    return shift


def shifted(odds: Floats, shift: float) -> Floats:
    """Return ``odds`` with their logarithms shifted."""
    ratio = odds / np.maximum(1e-12, 1 - odds) * math.exp(shift)
    return np.asarray(ratio / (1 + ratio))
