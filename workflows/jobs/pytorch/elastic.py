"""Fully connected classifier of handwritten digits, which one or several workers train. Loss: cross entropy.

Also by hand: ``torchrun --nproc-per-node=2 -m workflows.jobs.pytorch.elastic --steps=20``.
"""

from collections.abc import Sequence

import torch
from torch import Tensor, nn
from torch.optim import Adam

from mlflow_hooks import trial
from mlflow_hooks.data_parallel import data_parallel
from mlflow_hooks.pytorch import torch_state
from workflows.jobs.data import DIGITS, digit_images
from workflows.jobs.pytorch.loop import Classifier, tensors, validate
from workflows.jobs.settings import TrainingSettings, parse_settings

# Batches as large as this pay for a second worker; for smaller ones they tell each other more than they compute.
DEFAULTS = TrainingSettings(lr=1e-3, steps=100, hidden=512, batch_size=1024, work=4)


class DigitLayers(Classifier):
    """Two layers of ``hidden`` units. Without dropout, so that its batches can be split."""

    def __init__(self, hidden: int) -> None:
        super().__init__()
        self.layers = nn.Sequential(
            nn.Linear(64, hidden), nn.ReLU(), nn.Linear(hidden, hidden), nn.ReLU(), nn.Linear(hidden, DIGITS)
        )

    def forward(self, images: Tensor) -> Tensor:
        """Return class scores (examples, 10) of images (examples, 64)."""
        scores: Tensor = self.layers(images)
        return scores


def main(argv: Sequence[str] | None = None) -> None:
    """Train one trial, as one of its workers."""
    settings = parse_settings(DEFAULTS, argv)
    torch.manual_seed(settings.seed)
    data = digit_images()
    (images, labels), valid = tensors(data.train), tensors(data.valid)
    model = DigitLayers(settings.hidden)
    optimizer = Adam(model.parameters(), lr=settings.lr)

    def losses(net: nn.Module, rows: Tensor) -> Tensor:
        return nn.functional.cross_entropy(net(images[rows]), labels[rows], reduction="none")

    with trial() as t:
        training = data_parallel(t, model, rows=len(images), batch_size=settings.batch_size, seed=settings.seed)
        t.track(torch_state(model, optimizer))
        for step in t.steps(settings.steps):
            for minibatch in range(step * settings.work, (step + 1) * settings.work):
                training.backward(losses, minibatch)
                optimizer.step()
            if t.gang.rank == 0:
                t.log(validate(model, valid))


if __name__ == "__main__":
    main()
