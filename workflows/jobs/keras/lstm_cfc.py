"""LSTM classifier that reads a digit in strips of four pixels. Loss: softmax.

The thesis abbreviates it CFC and says no more; a classifier is what its softmax loss makes of it.
"""

from collections.abc import Sequence

import keras

from workflows.jobs.data import digit_rows
from workflows.jobs.keras.loop import classifier, fit
from workflows.jobs.settings import TrainingSettings, parse_settings

DEFAULTS = TrainingSettings(lr=3e-3, steps=100, hidden=48, batch_size=64, work=6)


def main(argv: Sequence[str] | None = None) -> None:
    """Train one trial."""
    settings = parse_settings(DEFAULTS, argv)
    keras.utils.set_random_seed(settings.seed)
    model = classifier(keras.layers.LSTM(settings.hidden), settings=settings)
    fit(model, digit_rows(columns=4), settings)


if __name__ == "__main__":
    main()
