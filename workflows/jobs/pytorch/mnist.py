"""Convolutional classifier of handwritten digits. Loss: cross entropy.

The thesis trained on MNIST; scikit-learn's digits are the same task in 8x8 pixels and need no download.
"""

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from workflows.jobs.data import DIGITS, digit_images
from workflows.jobs.pytorch.loop import Classifier, fit
from workflows.jobs.settings import TrainingSettings, parse_settings

DEFAULTS = TrainingSettings(lr=1e-3, steps=150, hidden=64, batch_size=64, work=18)


class DigitNet(Classifier):
    """Two convolutions with pooling after each, dropout, and a layer of ``hidden`` units."""

    def __init__(self, hidden: int) -> None:
        super().__init__()
        self.layers = nn.Sequential(
            nn.Unflatten(1, (1, 8, 8)),
            nn.Conv2d(1, 16, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
            nn.Conv2d(16, 32, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
            nn.Flatten(), nn.Dropout(0.25),
            nn.Linear(32 * 2 * 2, hidden), nn.ReLU(), nn.Linear(hidden, DIGITS),
        )  # fmt: skip

    def forward(self, images: Tensor) -> Tensor:
        """Return class scores (examples, 10) of images (examples, 64)."""
        scores: Tensor = self.layers(images)
        return scores


def main(argv: Sequence[str] | None = None) -> None:
    """Train one trial."""
    settings = parse_settings(DEFAULTS, argv)
    torch.manual_seed(settings.seed)
    fit(DigitNet(settings.hidden), digit_images(), settings)


if __name__ == "__main__":
    main()
