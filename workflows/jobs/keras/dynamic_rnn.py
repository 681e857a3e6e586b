"""RNN over sequences of different lengths: digits with 4 to 8 rows scanned. Loss: softmax."""

from collections.abc import Sequence

import keras

from workflows.jobs.data import PADDING, partial_digit_rows
from workflows.jobs.keras.loop import classifier, fit
from workflows.jobs.settings import TrainingSettings, parse_settings

DEFAULTS = TrainingSettings(lr=2e-3, steps=100, hidden=64, batch_size=64, work=6)


def main(argv: Sequence[str] | None = None) -> None:
    """Train one trial."""
    settings = parse_settings(DEFAULTS, argv)
    keras.utils.set_random_seed(settings.seed)
    # Masked rows leave the state as it is: each sequence ends where it ends.
    model = classifier(keras.layers.Masking(PADDING), keras.layers.LSTM(settings.hidden), settings=settings)
    fit(model, partial_digit_rows(), settings)


if __name__ == "__main__":
    main()
