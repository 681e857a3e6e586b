"""Variational autoencoder of digits. Loss: reconstruction loss (nats per image)."""

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from workflows.jobs.data import digit_images
from workflows.jobs.pytorch.loop import Model, fit
from workflows.jobs.settings import TrainingSettings, parse_settings

DEFAULTS = TrainingSettings(lr=2e-3, steps=300, hidden=256, batch_size=64, work=24)


class VAE(Model):
    """Gaussian latent code of 16 numbers; Bernoulli pixels; trained on the evidence lower bound."""

    def __init__(self, hidden: int, pixels: int = 64, code: int = 16) -> None:
        super().__init__()
        self.encoder = nn.Sequential(nn.Linear(pixels, hidden), nn.ReLU(), nn.Linear(hidden, hidden), nn.ReLU())
        self.mean, self.log_variance = nn.Linear(hidden, code), nn.Linear(hidden, code)
        self.decoder = nn.Sequential(
            nn.Linear(code, hidden), nn.ReLU(), nn.Linear(hidden, hidden), nn.ReLU(), nn.Linear(hidden, pixels)
        )

    def parts(self, images: Tensor) -> tuple[Tensor, Tensor]:
        """Return reconstruction loss and KL divergence, each in nats per image. Without noise in evaluation."""
        features = self.encoder(images)
        mean, log_variance = self.mean(features), self.log_variance(features)
        noise = torch.randn_like(mean) if self.training else torch.zeros_like(mean)
        pixels = self.decoder(mean + noise * (0.5 * log_variance).exp())
        reconstruction = nn.functional.binary_cross_entropy_with_logits(pixels, images, reduction="sum")
        divergence = -0.5 * (1 + log_variance - mean**2 - log_variance.exp()).sum()
        return reconstruction / len(images), divergence / len(images)

    def loss(self, inputs: Tensor, targets: Tensor) -> Tensor:  # noqa: ARG002 - an autoencoder's target is its input
        """Return the negative evidence lower bound."""
        return torch.stack(self.parts(inputs)).sum()

    def metrics(self, inputs: Tensor, targets: Tensor) -> dict[str, float]:  # noqa: ARG002 - as above
        """Return the reconstruction loss as ``loss``, and the divergence beside it."""
        reconstruction, divergence = self.parts(inputs)
        return {"loss": reconstruction.item(), "divergence": divergence.item()}


def main(argv: Sequence[str] | None = None) -> None:
    """Train one trial."""
    settings = parse_settings(DEFAULTS, argv)
    torch.manual_seed(settings.seed)
    fit(VAE(settings.hidden), digit_images(), settings)


if __name__ == "__main__":
    main()
