"""Odds: how likely each trial is to end as the best of its sweep, by a model that was learnt from other sweeps. Pure.

The model is a logistic regression over the features of a sweep (see ``features``), each taken as it is and once more
compressed. It says how likely a trial that has not ended is to end more than 1 % above the best one that has, in units
of what separates that from the middle of the sweep. ``python -m benchmarks.train_promote`` makes its weights.

Sweeps with a noisy metric were among those that it learnt from, and how noisy this one's is counts: where it is, the
best value of many is luck, and the odds say so.
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
    curves: Mapping[TrialId, Curve], completed: Sequence[Curve], least: float, noise: float, model: OddsModel
) -> dict[TrialId, float]:
    """Return how likely each trial is to end more than 1 % above the best completed one.

    Where values are too large to compute with, nobody can tell: then a trial counts as certain to, and none is stopped.

    Args:
        curves: Those of trials that have not ended and have come to a first part.
        completed: Those of trials that have trained to their end, one at least.
        least: The least loss of all that have trained to their end, also where nobody knows the curve.
        noise: How far a reported value is off by chance: a standard deviation.
        model: What was learnt.
    """
    if not curves:
        return {}
    known = np.zeros((len(curves), PARTS))
    for row, curve in zip(known, curves.values(), strict=True):
        row[: len(curve)] = curve
    parts = np.array([len(curve) for curve in curves.values()])
    with np.errstate(over="ignore", invalid="ignore"):
        found = model.of(features(known, parts, np.array(completed), least, noise))
    return dict(zip(curves, np.nan_to_num(found, nan=1.0).tolist(), strict=True))


def risk_left(odds: Collection[float]) -> float:
    """Return how likely it is that any trial of these ``odds`` ends more than 1 % above the best completed one."""
    return 1.0 - math.prod(1.0 - one for one in odds)
