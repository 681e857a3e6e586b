"""Six kinds of real training for judging ``promote``: a hundred and twenty configurations are trained side by side.

Small transformers on this project's own pages, fine-tuning, reinforcement learning, boosted trees, autoencoders, and
classifiers with wrong labels whose evaluation is noisy. All but the trees are trained with three schedules of the
learning rate. The networks of a task are one network with one more dimension, so that a task takes minutes on one core.
"""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from pathlib import Path
from typing import Final

import numpy as np
import torch
from sklearn.datasets import load_breast_cancer, load_diabetes, load_digits
from sklearn.ensemble import GradientBoostingClassifier, GradientBoostingRegressor
from sklearn.metrics import log_loss, mean_squared_error
from torch import Tensor
from torch.nn.functional import cross_entropy

CONFIGURATIONS: Final = 120
REPORTS: Final = 50
WORST: Final = 1000.0
"""The loss of what has diverged."""
WRONG: Final = 0.3
"""The part of labels that are wrong where evaluation is noisy."""
SCHEDULES: Final = ("constant", "cosine", "one-cycle")
Floats = np.ndarray[tuple[int, int], np.dtype[np.float32]]
"""Losses by configuration and report; smaller is better."""
Parameters = dict[str, Tensor]
"""Each with the configuration as its first dimension."""


@dataclass(frozen=True)
class Drawn:
    """Hyperparameters of each configuration, each of shape (configurations, 1, ...) as ``of`` makes them."""

    rate: Tensor
    decay: Tensor
    momentum: Tensor
    adam: Tensor
    dropout: Tensor
    width: Tensor
    scale: Tensor

    @classmethod
    def by_chance(cls, seed: int, low: float, high: float) -> "Drawn":
        """Return hyperparameters drawn by chance, learning rates from ``low`` to ``high``."""
        draw = torch.Generator().manual_seed(seed)

        def even(least: float, most: float) -> Tensor:
            return least + (most - least) * torch.rand(CONFIGURATIONS, generator=draw)

        return cls(
            rate=even(math.log(low), math.log(high)).exp(),
            decay=even(math.log(1e-6), math.log(1e-1)).exp(),
            momentum=even(0.5, 0.98),
            adam=even(0, 1) < 0.6,  # noqa: PLR2004 - three of five
            dropout=even(0, 0.5),
            width=even(math.log(0.1), 0.0).exp(),
            scale=even(math.log(0.3), math.log(3)).exp(),
        )


def rate_at(schedule: str, part: float) -> float:
    """Return the factor of the learning rate after ``part`` of a training."""
    if schedule == "constant":
        return 1.0
    if schedule == "cosine":
        return 0.5 * (1 + math.cos(math.pi * part))
    warm = 0.3
    return part / warm if part < warm else 0.5 * (1 + math.cos(math.pi * (part - warm) / (1 - warm)))


def _like(values: Tensor, other: Tensor) -> Tensor:
    return values.view(-1, *([1] * (other.dim() - 1)))


@dataclass
class Optimizer:
    """SGD with momentum or Adam, by configuration."""

    drawn: Drawn
    schedule: str
    steps: int

    def __post_init__(self) -> None:
        self._done = 0
        self._first: Parameters = {}
        self._second: Parameters = {}

    @torch.no_grad()
    def step(self, parameters: Parameters) -> None:
        """Change ``parameters`` by their gradients."""
        factor = rate_at(self.schedule, self._done / self.steps)
        self._done += 1
        for name, values in parameters.items():
            gradient = values.grad.nan_to_num(0, 0, 0).clamp(-10, 10) if values.grad is not None else None
            if gradient is None:
                continue
            first = self._first.setdefault(name, torch.zeros_like(values))
            second = self._second.setdefault(name, torch.zeros_like(values))
            momentum = _like(self.drawn.momentum, values)
            first.mul_(momentum).add_(gradient * (1 - momentum))
            second.mul_(0.99).addcmul_(gradient, gradient, value=0.01)
            bias = 1 - 0.99**self._done
            adam = first / (1 - momentum**self._done) / ((second / bias).sqrt() + 1e-8)
            change = torch.where(_like(self.drawn.adam, values), adam, 10 * first)
            rate = factor * _like(self.drawn.rate, values)
            values.mul_(1 - rate * _like(self.drawn.decay, values)).sub_(rate * change)
            values.grad = None


def _layers(sizes: list[int], drawn: Drawn, seed: int) -> Parameters:
    draw = torch.Generator().manual_seed(seed)
    made = {}
    for number, (into, out) in enumerate(pairwise(sizes)):
        weight = torch.randn(CONFIGURATIONS, into, out, generator=draw) / math.sqrt(into)
        made[f"w{number}"] = (weight * _like(drawn.scale, weight)).requires_grad_()
        made[f"b{number}"] = torch.zeros(CONFIGURATIONS, 1, out).requires_grad_()
    return made


def _forward(parameters: Parameters, x: Tensor, drawn: Drawn, *, training: bool) -> Tensor:
    """Return the outputs (configuration, row, unit) for rows ``x``, which all share or each have their own."""
    layers = sum(name.startswith("w") for name in parameters)
    hidden = x if x.dim() > 2 else x.expand(CONFIGURATIONS, *x.shape)  # noqa: PLR2004 - a dimension of its own
    for number in range(layers):
        hidden = torch.baddbmm(parameters[f"b{number}"], hidden, parameters[f"w{number}"])
        if number < layers - 1:
            units = torch.arange(hidden.shape[-1]) < (drawn.width * hidden.shape[-1]).ceil().unsqueeze(1)
            hidden = torch.relu(hidden) * units.unsqueeze(1)
            if training:
                kept = torch.rand_like(hidden) >= drawn.dropout.view(-1, 1, 1)
                hidden = hidden * kept / (1 - drawn.dropout.view(-1, 1, 1))
    return hidden


def _entropies(logits: Tensor, targets: Tensor) -> Tensor:
    """Return the mean cross-entropy of each configuration."""
    wanted = targets if targets.dim() > 1 else targets.expand(CONFIGURATIONS, -1)
    return cross_entropy(logits.flatten(0, 1), wanted.flatten(), reduction="none").view(CONFIGURATIONS, -1).mean(1)


def _curves(
    parameters: Parameters, optimizer: Optimizer, losses: Callable[[], Tensor], judged: Callable[[], Tensor]
) -> Floats:
    """Train and return what is ``judged`` after each part."""
    curves = np.empty((CONFIGURATIONS, REPORTS), np.float32)
    for report in range(REPORTS):
        for _ in range(optimizer.steps // REPORTS):
            torch.autograd.backward(losses().nan_to_num(0, 0, 0).sum())
            optimizer.step(parameters)
        with torch.no_grad():
            curves[:, report] = judged().nan_to_num(WORST, WORST, WORST).clamp(max=WORST).numpy()
    return curves


@lru_cache(maxsize=1)
def _digits() -> tuple[Tensor, Tensor]:
    x, y = load_digits(return_X_y=True)
    order = np.random.default_rng(0).permutation(len(x))
    return torch.tensor(x[order] / 16, dtype=torch.float32), torch.tensor(y[order])


def autoencoder(schedule: str) -> Floats:
    """Return the squared errors of autoencoders of handwritten digits, on 300 that they were not trained on."""
    x, _ = _digits()
    drawn = Drawn.by_chance(11, 1e-4, 1e-1)
    parameters = _layers([64, 48, 12, 48, 64], drawn, 11)
    draw = torch.Generator().manual_seed(1)

    def losses() -> Tensor:
        rows = x[torch.randint(0, 1200, (32,), generator=draw)]
        return (_forward(parameters, rows, drawn, training=True) - rows).square().mean((1, 2))

    def judged() -> Tensor:
        return (_forward(parameters, x[1400:1700], drawn, training=False) - x[1400:1700]).square().mean((1, 2))

    return _curves(parameters, Optimizer(drawn, schedule, 600), losses, judged)


def fine_tuning(schedule: str) -> Floats:
    """Return the errors on 150 rows of digits 5 to 9, of networks that were trained on digits 0 to 4 before."""
    x, y = _digits()
    low, high = y < 5, y >= 5  # noqa: PLR2004 - half of the digits
    same = Drawn.by_chance(12, 3e-3, 3e-3)
    before = _layers([64, 64, 64, 5], same, 12)
    optimizer = Optimizer(same, "cosine", 300)
    draw = torch.Generator().manual_seed(2)
    for _ in range(300):
        rows = torch.randint(0, 600, (32,), generator=draw)
        torch.autograd.backward(_entropies(_forward(before, x[low][rows], same, training=True), y[low][rows]).sum())
        optimizer.step(before)
    drawn = Drawn.by_chance(13, 1e-5, 1e-1)
    best = int(_entropies(_forward(before, x[low][600:], same, training=False), y[low][600:]).argmin())
    parameters = {
        name: values.detach()[best : best + 1].repeat(CONFIGURATIONS, 1, 1).requires_grad_()
        for name, values in before.items()
    }
    with torch.no_grad():
        parameters["w2"].copy_(torch.randn_like(parameters["w2"]) * _like(drawn.scale, parameters["w2"]) / 8)
    whole = Drawn(**{**vars(drawn), "width": torch.ones(CONFIGURATIONS)})

    def losses() -> Tensor:
        rows = torch.randint(0, 60, (16,), generator=draw)
        return _entropies(_forward(parameters, x[high][rows], whole, training=True), y[high][rows] - 5)

    def judged() -> Tensor:
        guesses = _forward(parameters, x[high][100:250], whole, training=False).argmax(2)
        return (guesses != y[high][100:250] - 5).float().mean(1)

    return _curves(parameters, Optimizer(drawn, schedule, 500), losses, judged)


def noisy_evaluation(schedule: str) -> Floats:
    """Return the errors on 100 rows, blurred by chance each time, of networks trained with some labels wrong."""
    x, y = _digits()
    drawn = Drawn.by_chance(14, 1e-4, 1e-1)
    parameters = _layers([64, 64, 32, 10], drawn, 14)
    draw = torch.Generator().manual_seed(3)
    wrong = torch.where(torch.rand(len(y), generator=draw) < WRONG, torch.randint(0, 10, y.shape, generator=draw), y)

    def losses() -> Tensor:
        rows = torch.randint(0, 800, (32,), generator=draw)
        return _entropies(_forward(parameters, x[rows], drawn, training=True), wrong[rows])

    def judged() -> Tensor:
        rows = 1000 + torch.randint(0, 700, (CONFIGURATIONS, 100), generator=draw)
        seen = x[rows] + 0.3 * torch.randn(CONFIGURATIONS, 100, 64, generator=draw)
        return (_forward(parameters, seen, drawn, training=False).argmax(2) != y[rows]).float().mean(1)

    return _curves(parameters, Optimizer(drawn, schedule, 600), losses, judged)


@lru_cache(maxsize=1)
def _text() -> tuple[Tensor, int]:
    """Return this project's pages as numbers of letters, and how many letters there are."""
    pages = sorted(Path("docs").glob("how-to/*.md"))
    text = "".join(page.read_text("utf-8").lower() for page in pages)
    letters = sorted("abcdefghijklmnopqrstuvwxyz .,`-\n")
    return torch.tensor([letters.index(letter) if letter in letters else 0 for letter in text]), len(letters)


def transformer(schedule: str) -> Floats:
    """Return the cross-entropies of small transformers that guess the next letter of this project's pages."""
    text, letters = _text()
    size, context, drawn = 24, 24, Drawn.by_chance(15, 1e-4, 1e-1)
    draw = torch.Generator().manual_seed(4)

    def matrix(rows: int, columns: int) -> Tensor:
        made = torch.randn(CONFIGURATIONS, rows, columns, generator=draw) / math.sqrt(rows)
        return (made * _like(drawn.scale, made)).requires_grad_()

    parameters = {
        "letters": matrix(letters, size),
        "places": matrix(context, size),
        "asked": matrix(size, size),
        "keys": matrix(size, size),
        "told": matrix(size, size),
        "up": matrix(size, 48),
        "down": matrix(48, size),
        "out": matrix(size, letters),
    }
    hidden = torch.ones(context, context).triu(1).bool()
    units = torch.arange(48) < (drawn.width * 48).ceil().unsqueeze(1)

    def guessed(rows: Tensor, *, training: bool) -> Tensor:
        count = rows.shape[0]
        x = parameters["letters"][:, rows] + parameters["places"].unsqueeze(1)
        flat = torch.nn.functional.layer_norm(x, (size,)).flatten(1, 2)
        asked, keys, told = (
            (flat @ parameters[name]).view(CONFIGURATIONS, count, context, size) for name in ("asked", "keys", "told")
        )
        weights = (asked @ keys.transpose(2, 3) / math.sqrt(size)).masked_fill(hidden, -1e9).softmax(3)
        x = (x + weights @ told).flatten(1, 2)
        inner = torch.relu(torch.nn.functional.layer_norm(x, (size,)) @ parameters["up"]) * units.unsqueeze(1)
        if training:
            inner = inner * (torch.rand_like(inner) >= drawn.dropout.view(-1, 1, 1))
        x = x + inner @ parameters["down"]
        return torch.nn.functional.layer_norm(x, (size,)) @ parameters["out"]

    def losses_at(starts: Tensor, *, training: bool) -> Tensor:
        rows = text[starts.unsqueeze(1) + torch.arange(context + 1)]
        return _entropies(guessed(rows[:, :-1], training=training), rows[:, 1:].flatten())

    def losses() -> Tensor:
        return losses_at(torch.randint(0, len(text) - 9000, (8,), generator=draw), training=True)

    def judged() -> Tensor:
        return losses_at(torch.arange(len(text) - 8000, len(text) - 8000 + 32 * 200, 200), training=False)

    return _curves(parameters, Optimizer(drawn, schedule, 500), losses, judged)


def reinforcement(schedule: str) -> Floats:
    """Return how far from 200 steps a pole on a cart is held up, the mean of eight tries, by policy gradients."""
    drawn = Drawn.by_chance(16, 1e-4, 1e-1)
    parameters = _layers([4, 16, 2], drawn, 16)
    draw = torch.Generator().manual_seed(5)
    tries, longest, held = 8, 200, torch.zeros(CONFIGURATIONS)

    def losses() -> Tensor:
        state = 0.1 * torch.rand(CONFIGURATIONS, tries, 4, generator=draw) - 0.05
        alive, logs, lived = torch.ones(CONFIGURATIONS, tries), [], []
        for _ in range(longest):
            logits = _forward(parameters, state, drawn, training=False)
            choice = (torch.rand(logits.shape[:2], generator=draw) < logits.softmax(2)[..., 1]).long()
            logs.append(logits.log_softmax(2).gather(2, choice.unsqueeze(2)).squeeze(2))
            lived.append(alive)
            state = _pole_moved(state, choice)
            alive = alive * ((state[..., 0].abs() < 2.4) & (state[..., 2].abs() < 0.209)).float()  # noqa: PLR2004
            if not alive.any():
                break
        was_alive = torch.stack(lived)
        held.copy_(was_alive.sum(0).mean(1))
        to_go = was_alive.flip(0).cumsum(0).flip(0)
        worth = (to_go - to_go.mean((0, 2), keepdim=True)) / longest
        return -(torch.stack(logs) * worth * was_alive).mean((0, 2))

    return _curves(parameters, Optimizer(drawn, schedule, 100), losses, lambda: longest - held)


def _pole_moved(state: Tensor, choice: Tensor) -> Tensor:
    """Return the state of a pole on a cart 0.02 s later (Barto, Sutton and Anderson 1983)."""
    x, speed, angle, turning = state.unbind(-1)
    force = 20.0 * choice - 10.0
    pushed = (force + 0.05 * turning.square() * angle.sin()) / 1.1
    turned = (9.8 * angle.sin() - angle.cos() * pushed) / (0.5 * (4 / 3 - 0.1 * angle.cos().square() / 1.1))
    faster = pushed - 0.05 * turned * angle.cos() / 1.1
    return torch.stack(
        [x + 0.02 * speed, speed + 0.02 * faster, angle + 0.02 * turning, turning + 0.02 * turned], dim=-1
    ).detach()


def boosted_trees(data: str) -> Floats:
    """Return the losses of boosted trees by trees added, on rows that they were not trained on."""
    x, y = {"diabetes": load_diabetes, "cancer": load_breast_cancer}[data](return_X_y=True)
    chance = np.random.default_rng(17)
    order = chance.permutation(len(x))
    train, valid = order[: len(x) // 2], order[len(x) // 2 :]
    curves = np.empty((CONFIGURATIONS, REPORTS), np.float32)
    for number in range(CONFIGURATIONS):
        kind = GradientBoostingRegressor if data == "diabetes" else GradientBoostingClassifier
        model = kind(
            n_estimators=2 * REPORTS,
            learning_rate=float(np.exp(chance.uniform(np.log(0.005), np.log(0.7)))),
            max_depth=int(chance.integers(1, 8)),
            subsample=float(chance.uniform(0.3, 1)),
            min_samples_leaf=int(np.exp(chance.uniform(0, np.log(40)))),
            max_features=float(chance.uniform(0.1, 1)),
            random_state=number,
        ).fit(x[train], y[train])
        curves[number] = list(_staged(model, x[valid], y[valid]))[1::2]
    return curves


def _staged(model: GradientBoostingRegressor | GradientBoostingClassifier, x: Floats, y: Floats) -> Iterator[float]:
    if isinstance(model, GradientBoostingRegressor):
        yield from (mean_squared_error(y, guessed) / 1000 for guessed in model.staged_predict(x))
    else:
        yield from (log_loss(y, guessed) for guessed in model.staged_predict_proba(x))


KINDS: Final[dict[str, Callable[[str], Floats]]] = {
    "transformer": transformer,
    "fine-tuning": fine_tuning,
    "reinforcement": reinforcement,
    "noisy-evaluation": noisy_evaluation,
    "autoencoder": autoencoder,
    "boosted-trees": boosted_trees,
}


def tasks() -> list[tuple[str, str]]:
    """Return each kind with its schedules; of the trees, with their data."""
    return [(kind, one) for kind in KINDS for one in (("diabetes", "cancer") if kind == "boosted-trees" else SCHEDULES)]
