"""Gated recurrent units that forecast next year's sunspots. Loss: quadratic (variances of the series)."""

from collections.abc import Sequence

import keras

from workflows.jobs.data import sunspot_windows
from workflows.jobs.keras.loop import fit
from workflows.jobs.settings import TrainingSettings, parse_settings

DEFAULTS = TrainingSettings(lr=2e-3, steps=150, hidden=32, batch_size=32, work=4)


def main(argv: Sequence[str] | None = None) -> None:
    """Train one trial."""
    settings = parse_settings(DEFAULTS, argv)
    keras.utils.set_random_seed(settings.seed)
    model = keras.Sequential([keras.layers.GRU(settings.hidden), keras.layers.Dense(1)])
    model.compile(keras.optimizers.Adam(settings.lr), "mean_squared_error")
    fit(model, sunspot_windows(), settings)


if __name__ == "__main__":
    main()
