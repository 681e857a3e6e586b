"""Plain recurrent network that reads a digit row by row. Loss: softmax."""

from collections.abc import Sequence

import keras

from workflows.jobs.data import digit_rows
from workflows.jobs.keras.loop import classifier, fit
from workflows.jobs.settings import TrainingSettings, parse_settings

DEFAULTS = TrainingSettings(lr=1e-3, steps=100, hidden=64, batch_size=64, work=6)


def main(argv: Sequence[str] | None = None) -> None:
    """Train one trial."""
    settings = parse_settings(DEFAULTS, argv)
    keras.utils.set_random_seed(settings.seed)
    model = classifier(keras.layers.SimpleRNN(settings.hidden), settings=settings)
    fit(model, digit_rows(), settings)


if __name__ == "__main__":
    main()
