"""A small transformer that guesses the next letter of the help texts that come with Python.

python -m benchmarks.best_model.jobs.letters --lr=0.003 --width=32
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from pydoc_data.topics import topics
from typing import Final

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy
from torch.optim import SGD, Adam, Optimizer

from benchmarks.best_model.jobs.options import parsed
from mlflow_hooks import trial
from mlflow_hooks.pytorch import torch_state

_LETTERS: Final = "abcdefghijklmnopqrstuvwxyz .,`-()\n"
"""All others count as the first."""
_CONTEXT: Final = 32
_VALID: Final = 12_000
"""The last letters of the text, which nothing is trained on."""


@dataclass(frozen=True, slots=True)
class Settings:
    """A step is ``work`` minibatches and one validation; the width is that of an embedding."""

    lr: float = 0.003
    width: int = 32
    layers: int = 1
    heads: int = 2
    batch_size: int = 16
    weight_decay: float = 1e-5
    dropout: float = 0.0
    optimizer: str = "adam"
    momentum: float = 0.9
    steps: int = 50
    work: int = 20


class Model(nn.Module):
    """Embeddings of letters and places, blocks of attention that look back alone, and a guess at each place."""

    def __init__(self, given: Settings) -> None:
        super().__init__()
        width = given.width
        self.letters = nn.Embedding(len(_LETTERS), width)
        self.places = nn.Parameter(torch.randn(_CONTEXT, width) / math.sqrt(width))
        block = nn.TransformerEncoderLayer(
            width, given.heads, 2 * width, given.dropout, batch_first=True, norm_first=True
        )
        self.blocks = nn.TransformerEncoder(block, given.layers, enable_nested_tensor=False)
        self.guess = nn.Linear(width, len(_LETTERS))
        self.register_buffer("hidden", torch.ones(_CONTEXT, _CONTEXT).triu(1).bool(), persistent=False)

    def forward(self, rows: Tensor) -> Tensor:
        """Return the scores (row, place, letter) of what follows each letter of ``rows`` (row, place)."""
        guessed: Tensor = self.guess(self.blocks(self.letters(rows) + self.places, mask=self.hidden))
        return guessed


class Training:
    """One training, step by step: what a step does follows from the settings and its number alone."""

    def __init__(self, given: Settings) -> None:
        torch.manual_seed(0)
        self._given, self._text = given, _text()
        self.model = Model(given)
        self.optimizer = _optimizer(given, self.model)

    def step(self, number: int) -> None:
        """Take the minibatches of a step, which count from 0."""
        given = self._given
        torch.manual_seed(1 + number)
        self.model.train()
        for minibatch in range(number * given.work, (number + 1) * given.work):
            part = minibatch / (given.steps * given.work)
            for group in self.optimizer.param_groups:
                group["lr"] = given.lr * (1 + math.cos(math.pi * part)) / 2
            starts = torch.randint(0, len(self._text) - _VALID - _CONTEXT, (given.batch_size,))
            self.optimizer.zero_grad()
            self._loss(starts).backward()  # type: ignore[no-untyped-call]  # of PyTorch's
            self.optimizer.step()

    @torch.no_grad()
    def validate(self) -> dict[str, float]:
        """Return the loss on letters that nothing was trained on."""
        self.model.eval()
        first = len(self._text) - _VALID
        return {"loss": self._loss(torch.arange(first, len(self._text) - _CONTEXT, 60)).item()}

    def _loss(self, starts: Tensor) -> Tensor:
        rows = self._text[starts.unsqueeze(1) + torch.arange(_CONTEXT + 1)]
        return cross_entropy(self.model(rows[:, :-1]).flatten(0, 1), rows[:, 1:].flatten())


@lru_cache(maxsize=1)
def _text() -> Tensor:
    text = "".join(topics[name] for name in sorted(topics)).lower()[:200_000]
    return torch.tensor([max(0, _LETTERS.find(letter)) for letter in text])


def _optimizer(given: Settings, model: nn.Module) -> Optimizer:
    if given.optimizer == "sgd":
        return SGD(model.parameters(), lr=10 * given.lr, momentum=given.momentum, weight_decay=given.weight_decay)
    return Adam(model.parameters(), lr=given.lr, betas=(given.momentum, 0.999), weight_decay=given.weight_decay)


def parse(argv: Sequence[str] | None = None) -> Settings:
    """Read settings such as ``--lr=0.003``."""
    return parsed(Settings, argv)


def main() -> None:
    """Train one trial."""
    given = parse()
    training = Training(given)
    with trial() as t:
        t.track(torch_state(training.model, training.optimizer))
        for step in t.steps(given.steps):
            training.step(step)
            t.log(training.validate())


if __name__ == "__main__":
    main()
