"""Convolutional classifier of handwritten digits (8x8, see the PyTorch job). Loss: cross entropy."""

from collections.abc import Sequence

import keras

from workflows.jobs.data import digit_images
from workflows.jobs.keras.loop import classifier, fit
from workflows.jobs.settings import TrainingSettings, parse_settings

DEFAULTS = TrainingSettings(lr=1e-3, steps=100, hidden=64, batch_size=64, work=4)


def main(argv: Sequence[str] | None = None) -> None:
    """Train one trial."""
    settings = parse_settings(DEFAULTS, argv)
    keras.utils.set_random_seed(settings.seed)
    model = classifier(
        keras.layers.Reshape((8, 8, 1)),
        keras.layers.Conv2D(16, 3, padding="same", activation="relu"),
        keras.layers.MaxPooling2D(),
        keras.layers.Conv2D(32, 3, padding="same", activation="relu"),
        keras.layers.MaxPooling2D(),
        keras.layers.Flatten(),
        keras.layers.Dense(settings.hidden, activation="relu"),
        settings=settings,
    )
    fit(model, digit_images(), settings)


if __name__ == "__main__":
    main()
