"""Fits the model of the odds to what decisions of simulated sweeps saw.

Two things are wanted of it: that the odds of each trial are right, and that what is left adds up to the right risk. The
second is what is promised, so it has a loss of its own: the odds are multiplied to the risk that any trial of a
decision is better, and that is held against whether one was.
"""

from collections.abc import Mapping, Sequence
from typing import Final

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import binary_cross_entropy_with_logits, softplus

from benchmarks.train_promote.sweeps import Seen
from controllers.policies.promote.odds import OddsModel, both_forms

DECISIONS: Final = 10
"""Of each sweep, evenly chosen."""
REAL: Final = 3.0
"""A family of real curves counts as much as so many made-up ones."""
SMALL: Final = 1e-3
"""What the squares of the weights cost."""
SINGLE: Final = 0.5
"""What the odds of single trials count beside the risk of all."""


def fit(seen: Mapping[str, Sequence[Sequence[Seen]]]) -> OddsModel:
    """Return the model that suits what was ``seen``, by family and sweep; all families count alike."""
    rows, better, decision, weights = [], [], [], []
    any_better, counts = list[float](), list[float]()
    for family, sweeps in seen.items():
        chosen = [one for sweep in sweeps for one in sweep[:: max(1, len(sweep) // DECISIONS)]]
        weight = (1.0 if family.startswith("made:") else REAL) / max(1, len(chosen))
        for one in chosen:
            rows.append(one.features)
            better.append(one.better)
            decision.append(np.full(len(one.better), len(counts)))
            weights.append(np.full(len(one.better), weight / len(one.better)))
            any_better.append(float(one.better.any()))
            counts.append(weight)
    known = both_forms(np.concatenate(rows))
    middle, spread = known.mean(axis=0), known.std(axis=0) + 1e-6
    scaled = torch.tensor((known - middle) / spread, dtype=torch.float32)
    slopes = _fitted(
        scaled,
        torch.tensor(np.concatenate(better), dtype=torch.float32),
        torch.tensor(np.concatenate(decision)),
        torch.tensor(np.concatenate(weights), dtype=torch.float32),
        torch.tensor(any_better),
        torch.tensor(counts),
    )
    plain = slopes[:-1].double().numpy() / spread
    return OddsModel(plain, float(slopes[-1]) - float(plain @ middle))


def _fitted(x: Tensor, better: Tensor, decision: Tensor, weights: Tensor, any_better: Tensor, counts: Tensor) -> Tensor:
    """Return the weights of scaled features, and the bias last."""
    slopes = torch.zeros(x.shape[1] + 1)
    slopes[-1] = -4.0
    slopes.requires_grad_()
    weights, counts = 100 * weights / weights.sum(), counts / counts.sum()
    optimizer = torch.optim.LBFGS([slopes], max_iter=120, history_size=20, line_search_fn="strong_wolfe")

    def loss() -> Tensor:
        optimizer.zero_grad()
        score = (x @ slopes[:-1] + slopes[-1]).clamp(-25, 25)
        single = binary_cross_entropy_with_logits(score, better, weight=weights, reduction="sum")
        none_better = torch.zeros(len(counts)).index_add(0, decision, -softplus(score))
        risk = (1 - none_better.exp()).clamp(1e-6, 1 - 1e-6)
        whole = -(counts * (any_better * risk.log() + (1 - any_better) * none_better.clamp(min=-30))).sum()
        total = SINGLE * single + whole + SMALL * slopes[:-1].square().sum()
        torch.autograd.backward(total)
        return total

    optimizer.step(loss)  # type: ignore[no-untyped-call,unused-ignore]
    return slopes.detach()
