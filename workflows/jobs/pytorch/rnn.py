"""Plain recurrent network that reads a digit row by row. Loss: softmax."""

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from workflows.jobs.data import DIGITS, digit_rows
from workflows.jobs.pytorch.loop import Classifier, fit
from workflows.jobs.settings import TrainingSettings, parse_settings

DEFAULTS = TrainingSettings(lr=1e-3, steps=150, hidden=64, batch_size=64, work=30)


class RNN(Classifier):
    """One layer of tanh units; the last state gives the class."""

    def __init__(self, hidden: int) -> None:
        super().__init__()
        self.cells = nn.RNN(8, hidden, batch_first=True)
        self.head = nn.Linear(hidden, DIGITS)

    def forward(self, rows: Tensor) -> Tensor:
        """Return class scores (examples, 10) of digits (examples, 8, 8)."""
        _, last = self.cells(rows)
        scores: Tensor = self.head(last[0])
        return scores


def main(argv: Sequence[str] | None = None) -> None:
    """Train one trial."""
    settings = parse_settings(DEFAULTS, argv)
    torch.manual_seed(settings.seed)
    fit(RNN(settings.hidden), digit_rows(), settings)


if __name__ == "__main__":
    main()
