"""LSTM with a conditional random field on top, which tags each month as El Nino, neutral or La Nina.

Loss: negative log-likelihood of the whole tag sequence, in nats per month. (The thesis's table says squared
loss; a conditional random field is trained by likelihood.)
"""

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from workflows.jobs.data import TAGS, nino_months
from workflows.jobs.pytorch.crf import LinearChainCRF
from workflows.jobs.pytorch.loop import Model, fit
from workflows.jobs.settings import TrainingSettings, parse_settings

DEFAULTS = TrainingSettings(lr=5e-3, steps=120, hidden=24, batch_size=32, work=9)


class LstmCrf(Model):
    """Bidirectional LSTM scores each month's tags; the field scores each step from tag to tag."""

    def __init__(self, hidden: int) -> None:
        super().__init__()
        self.cells = nn.LSTM(3, hidden, batch_first=True, bidirectional=True)
        self.head = nn.Linear(2 * hidden, TAGS)
        self.crf = LinearChainCRF(TAGS)

    def forward(self, months: Tensor) -> Tensor:
        """Return tag scores (examples, months, 3) of features (examples, months, 3)."""
        states, _ = self.cells(months)
        scores: Tensor = self.head(states)
        return scores

    def loss(self, inputs: Tensor, targets: Tensor) -> Tensor:
        """Return the negative log-likelihood per month."""
        return -self.crf.log_likelihood(self(inputs), targets).mean() / targets.shape[1]

    def metrics(self, inputs: Tensor, targets: Tensor) -> dict[str, float]:
        """Return the loss and the share of months tagged right by the likeliest sequence."""
        scores = self(inputs)
        loss = -self.crf.log_likelihood(scores, targets).mean() / targets.shape[1]
        right = (self.crf.decode(scores) == targets).float().mean()
        return {"loss": loss.item(), "accuracy": right.item()}


def main(argv: Sequence[str] | None = None) -> None:
    """Train one trial."""
    settings = parse_settings(DEFAULTS, argv)
    torch.manual_seed(settings.seed)
    fit(LstmCrf(settings.hidden), nino_months(), settings)


if __name__ == "__main__":
    main()
