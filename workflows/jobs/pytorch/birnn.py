"""Bidirectional RNN that reads a digit row by row, from the top and from the bottom. Loss: softmax."""

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from workflows.jobs.data import DIGITS, digit_rows
from workflows.jobs.pytorch.loop import Classifier, fit
from workflows.jobs.settings import TrainingSettings, parse_settings

DEFAULTS = TrainingSettings(lr=3e-3, steps=150, hidden=64, batch_size=64, work=20)


class BiRNN(Classifier):
    """LSTM cells in both directions; the two last states give the class."""

    def __init__(self, hidden: int) -> None:
        super().__init__()
        self.cells = nn.LSTM(8, hidden, batch_first=True, bidirectional=True)
        self.head = nn.Linear(2 * hidden, DIGITS)

    def forward(self, rows: Tensor) -> Tensor:
        """Return class scores (examples, 10) of digits (examples, 8, 8)."""
        _, (last, _) = self.cells(rows)
        scores: Tensor = self.head(torch.cat([last[0], last[1]], dim=1))
        return scores


def main(argv: Sequence[str] | None = None) -> None:
    """Train one trial."""
    settings = parse_settings(DEFAULTS, argv)
    torch.manual_seed(settings.seed)
    fit(BiRNN(settings.hidden), digit_rows(), settings)


if __name__ == "__main__":
    main()
