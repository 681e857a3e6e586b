"""RNN over sequences of different lengths: digits with 4 to 8 rows scanned. Loss: softmax."""

from collections.abc import Sequence

import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import pack_padded_sequence

from workflows.jobs.data import DIGITS, PADDING, partial_digit_rows
from workflows.jobs.pytorch.loop import Classifier, fit
from workflows.jobs.settings import TrainingSettings, parse_settings

DEFAULTS = TrainingSettings(lr=2e-3, steps=150, hidden=64, batch_size=64, work=16)


class DynamicRNN(Classifier):
    """LSTM cells that stop at each sequence's own end; the state there gives the class."""

    def __init__(self, hidden: int) -> None:
        super().__init__()
        self.cells = nn.LSTM(8, hidden, batch_first=True)
        self.head = nn.Linear(hidden, DIGITS)

    def forward(self, rows: Tensor) -> Tensor:
        """Return class scores (examples, 10) of digits (examples, 8, 8) with padding after the last row read."""
        lengths = (rows[:, :, 0] != PADDING).sum(dim=1)
        _, (last, _) = self.cells(pack_padded_sequence(rows, lengths, batch_first=True, enforce_sorted=False))
        scores: Tensor = self.head(last[0])
        return scores


def main(argv: Sequence[str] | None = None) -> None:
    """Train one trial."""
    settings = parse_settings(DEFAULTS, argv)
    torch.manual_seed(settings.seed)
    fit(DynamicRNN(settings.hidden), partial_digit_rows(), settings)


if __name__ == "__main__":
    main()
