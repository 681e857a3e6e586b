"""The data the jobs learn from: all of it is measured, and all of it comes inside a Python package.

Every function returns the same arrays on every call: what a trial sees depends on its settings only.
Validation examples are the last ones in the source's own order, so that no series is validated on its
past and the digits are validated mostly on writers the model has not seen.
"""

import importlib.util
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]

PADDING: Final = -1.0
"""What stands in the rows of a digit that have not been read yet; real pixels are in [0, 1]."""
DIGITS: Final = 10
"""Classes of `digit_images` and of the functions that cut them into sequences."""
TAGS: Final = 3
"""Tags of `nino_months`: 0 La Nina, 1 neutral, 2 El Nino."""

_VALIDATION_SHARE: Final = 0.2
_NINO_KELVIN: Final = 0.5
_NINO_MONTHS: Final = 5


@dataclass(frozen=True, slots=True)
class Examples:
    """Inputs (float32, examples first) and their targets (one per example, or one per place of a sequence)."""

    inputs: Array
    targets: Array

    def __len__(self) -> int:
        return len(self.inputs)


@dataclass(frozen=True, slots=True)
class Dataset:
    """What to learn from and what to be judged on."""

    train: Examples
    valid: Examples


def digit_images() -> Dataset:
    """Return the 1797 handwritten digits of scikit-learn as rows of 64 pixels in [0, 1], with their class."""
    table = _packaged("sklearn", "datasets/data/digits.csv.gz")
    return _split(table[:, :-1] / np.float32(16), table[:, -1].astype(np.int64))


def digit_rows(columns: int = 8) -> Dataset:
    """Return the digits as sequences that read ``columns`` pixels at a time, from the top left.

    Args:
        columns: pixels per place of the sequence; a divisor of 64.
    """
    images = digit_images()
    return Dataset(*(Examples(_cut(part.inputs, columns), part.targets) for part in (images.train, images.valid)))


def partial_digit_rows(shortest: int = 4) -> Dataset:
    """Return the digits as a scanner shows them part way: 8 rows of 8 pixels, the last of them `PADDING`.

    Between ``shortest`` and 8 rows have been read, in turn over the examples.
    """
    rows = digit_rows()
    return Dataset(*(Examples(_unread(part.inputs, shortest), part.targets) for part in (rows.train, rows.valid)))


def sunspot_windows(years: int = 22) -> Dataset:
    """Return yearly sunspot numbers 1700-2008 (statsmodels) as windows, and the year after each window.

    Args:
        years: length of a window; 22 years are two solar cycles.

    Returns:
        Inputs (examples, years, 1) and targets (examples, 1), in standard deviations of the training years.
    """
    series = _standardise(_packaged("statsmodels", "datasets/sunspots/sunspots.csv", header=1)[:, 1])
    windows = np.lib.stride_tricks.sliding_window_view(series, years + 1)[..., None]
    return _split(windows[:, :-1], windows[:, -1])


def nino_months(months: int = 36) -> Dataset:
    """Return windows of sea surface temperature off Peru, 1950-2010 (statsmodels), each month tagged.

    The tags follow the rule of the Oceanic Nino Index: a month is El Nino (La Nina) where the three-month mean of
    its temperature anomaly stays at or above +0.5 K (at or below -0.5 K) for at least five months. The model sees
    one month's temperature and the season at a time; it has to find the anomaly, the mean and the persistence.

    Args:
        months: length of a window.

    Returns:
        Inputs (examples, months, 3): temperature in standard deviations, sine and cosine of the season; and
        targets (examples, months) in 0..2.
    """
    table = _packaged("statsmodels", "datasets/elnino/elnino.csv", header=1)[:, 1:]
    anomaly = (table - table.mean(axis=0)).ravel()
    season = 2 * np.pi * np.arange(table.size) / 12
    features = np.stack([_standardise(table.ravel()), np.sin(season), np.cos(season)], axis=1).astype(np.float32)
    return _windows(features, _nino_tags(anomaly), months)


def tumours() -> Dataset:
    """Return the 569 breast tumours of scikit-learn (Wisconsin): 30 measures of nuclei, malignant 0 or benign 1."""
    table = _shuffled(_packaged("sklearn", "datasets/data/breast_cancer.csv", header=1))
    return _split(_in_deviations(table[:, :-1]), table[:, -1].astype(np.int64))


def marriages() -> Dataset:
    """Return 6366 answers to a survey of 1974 (Fair, in statsmodels): 8 facts, and whether there was an affair."""
    table = _shuffled(_packaged("statsmodels", "datasets/fair/fair.csv", header=1))
    return _split(_in_deviations(table[:, :-1]), (table[:, -1] > 0).astype(np.int64))


def doctor_visits(people: int = 5000) -> Dataset:
    """Return people of the RAND health insurance experiment (statsmodels): 9 facts, and the logarithm of their visits.

    Args:
        people: how many of the 20,190.
    """
    table = _shuffled(_packaged("statsmodels", "datasets/randhie/randhie.csv", header=1))[:people]
    return _split(_in_deviations(table[:, 1:]), np.log1p(table[:, :1]))


def diabetes() -> Dataset:
    """Return the 442 diabetes patients of scikit-learn: 10 measures, and how far the disease had come a year later."""
    inputs = _packaged("sklearn", "datasets/data/diabetes_data_raw.csv.gz", delimiter=" ")
    targets = _packaged("sklearn", "datasets/data/diabetes_target.csv.gz")
    table = _shuffled(np.column_stack([inputs, targets]))
    return _split(_in_deviations(table[:, :-1]), _in_deviations(table[:, -1:]))


def _shuffled(table: Array) -> Array:
    """Return the rows in another order, always the same: some tables are sorted by what is to be found out."""
    return table[np.random.default_rng(0).permutation(len(table))]


def _in_deviations(table: Array) -> Array:
    past = table[: _border(len(table))]
    scaled: Array = (table - past.mean(axis=0)) / past.std(axis=0)
    return scaled


def _packaged(package: str, file: str, header: int = 0, delimiter: str = ",") -> Array:
    """Read numbers from a file of an installed package, without importing the package.

    The import takes two CPU seconds (pandas, scipy), and a trial pays for it again after every move.
    """
    spec = importlib.util.find_spec(package)
    if spec is None or spec.origin is None:
        message = f"the data is part of {package}, which is not installed"
        raise ModuleNotFoundError(message, name=package)
    path = Path(spec.origin).parent / file
    return np.loadtxt(path, delimiter=delimiter, skiprows=header, dtype=np.float32)


def _nino_tags(anomaly: Array) -> Array:
    mean = np.convolve(np.pad(anomaly, 1, mode="edge"), np.ones(3) / 3, mode="valid")
    return 1 + _lasting(mean >= _NINO_KELVIN).astype(np.int64) - _lasting(mean <= -_NINO_KELVIN)


def _lasting(flags: Array) -> Array:
    """Keep the runs of true that are at least `_NINO_MONTHS` long."""
    kept = np.zeros(len(flags), dtype=np.int64)
    edges = np.flatnonzero(np.diff(np.concatenate([[False], flags, [False]])))
    for start, end in edges.reshape(-1, 2):
        kept[start:end] = end - start >= _NINO_MONTHS
    return kept


def _windows(features: Array, tags: Array, length: int) -> Dataset:
    """Cut into windows; those that validate share no month with those that train."""
    border = _border(len(features))
    parts = ((features[:border], tags[:border]), (features[border:], tags[border:]))
    return Dataset(*(Examples(_slide(x, length), _slide(y, length)) for x, y in parts))


def _slide(values: Array, length: int) -> Array:
    windows = np.lib.stride_tricks.sliding_window_view(values, length, axis=0)
    return np.ascontiguousarray(np.moveaxis(windows, -1, 1))


def _cut(images: Array, columns: int) -> Array:
    if columns < 1 or images.shape[1] % columns:
        message = f"columns must divide {images.shape[1]}, got {columns}"
        raise ValueError(message)
    return images.reshape(len(images), -1, columns)


def _unread(rows: Array, shortest: int) -> Array:
    read = shortest + np.arange(len(rows)) % (rows.shape[1] - shortest + 1)
    unread = np.arange(rows.shape[1]) >= read[:, None]
    return np.where(unread[..., None], np.float32(PADDING), rows)


def _standardise(series: Array) -> Array:
    past = series[: _border(len(series))]
    scaled: Array = (series - past.mean()) / past.std()
    return scaled


def _split(inputs: Array, targets: Array) -> Dataset:
    border = _border(len(inputs))
    return Dataset(Examples(inputs[:border], targets[:border]), Examples(inputs[border:], targets[border:]))


def _border(count: int) -> int:
    return round(count * (1 - _VALIDATION_SHARE))
