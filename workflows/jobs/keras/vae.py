"""Variational autoencoder of digits. Loss: reconstruction loss (nats per image)."""

from collections.abc import Sequence
from typing import Any

import keras
from keras import layers, ops

from workflows.jobs.data import Dataset, Examples, digit_images
from workflows.jobs.keras.loop import fit
from workflows.jobs.settings import TrainingSettings, parse_settings

DEFAULTS = TrainingSettings(lr=2e-3, steps=200, hidden=256, batch_size=64, work=12)


class Code(layers.Layer):  # type: ignore[misc]  # Keras ships no types
    """Draws the latent code, and adds its divergence from the standard normal to the loss in training."""

    def __init__(self, size: int, seed: int) -> None:
        super().__init__()
        self.mean, self.log_variance = layers.Dense(size), layers.Dense(size)
        self.noise = keras.random.SeedGenerator(seed)

    def call(self, features: Any, training: bool = False) -> Any:  # noqa: ANN401, FBT001, FBT002 - Keras's own signature
        """Return one code per example; without noise outside training."""
        mean, log_variance = self.mean(features), self.log_variance(features)
        if not training:
            return mean
        divergence = -0.5 * ops.sum(1 + log_variance - mean**2 - ops.exp(log_variance), axis=1)
        self.add_loss(ops.mean(divergence))
        noise = keras.random.normal(ops.shape(mean), seed=self.noise)
        return mean + noise * ops.exp(0.5 * log_variance)


def reconstruction(images: Any, pixels: Any) -> Any:  # noqa: ANN401 - tensors of whatever backend Keras runs on
    """Return the reconstruction loss of each image."""
    return ops.sum(ops.binary_crossentropy(images, pixels), axis=1)


def vae(settings: TrainingSettings, pixels: int = 64, code: int = 16) -> keras.Model:
    """Return an encoder, a Gaussian code of 16 numbers, and a decoder to Bernoulli pixels."""

    def hidden() -> layers.Layer:
        return layers.Dense(settings.hidden, activation="relu")

    head = layers.Dense(pixels, activation="sigmoid")
    model = keras.Sequential([hidden(), hidden(), Code(code, settings.seed), hidden(), hidden(), head])
    model.compile(keras.optimizers.Adam(settings.lr), reconstruction)
    return model


def main(argv: Sequence[str] | None = None) -> None:
    """Train one trial."""
    settings = parse_settings(DEFAULTS, argv)
    keras.utils.set_random_seed(settings.seed)
    images = digit_images()
    parts = (Examples(part.inputs, part.inputs) for part in (images.train, images.valid))
    fit(vae(settings), Dataset(*parts), settings)


if __name__ == "__main__":
    main()
