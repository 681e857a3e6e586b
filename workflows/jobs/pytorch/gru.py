"""Gated recurrent units that forecast next year's sunspots. Loss: quadratic (variances of the series)."""

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from workflows.jobs.data import sunspot_windows
from workflows.jobs.pytorch.loop import Model, fit
from workflows.jobs.settings import TrainingSettings, parse_settings

DEFAULTS = TrainingSettings(lr=2e-3, steps=200, hidden=32, batch_size=32, work=20)


class GruNetwork(Model):
    """One layer of gated recurrent units; the last state gives the forecast."""

    def __init__(self, hidden: int) -> None:
        super().__init__()
        self.gru = nn.GRU(1, hidden, batch_first=True)
        self.head = nn.Linear(hidden, 1)

    def forward(self, windows: Tensor) -> Tensor:
        """Return forecasts (examples, 1) of windows (examples, years, 1)."""
        _, last = self.gru(windows)
        forecast: Tensor = self.head(last[0])
        return forecast

    def loss(self, inputs: Tensor, targets: Tensor) -> Tensor:
        """Return the mean squared error."""
        return nn.functional.mse_loss(self(inputs), targets)


def main(argv: Sequence[str] | None = None) -> None:
    """Train one trial."""
    settings = parse_settings(DEFAULTS, argv)
    torch.manual_seed(settings.seed)
    fit(GruNetwork(settings.hidden), sunspot_windows(), settings)


if __name__ == "__main__":
    main()
