"""Eight small tunings for ``benchmarks.warm_start``: real models on the data that scikit-learn brings along.

In each, something has changed since the earlier sweep, as it does between the sweeps of a project: the rows, the
people, the classes, the whole data, the resolution, or the space.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final

import numpy as np
from sklearn.datasets import load_breast_cancer, load_diabetes, load_digits, load_wine
from sklearn.kernel_ridge import KernelRidge
from sklearn.linear_model import ElasticNet
from sklearn.neighbors import KNeighborsRegressor
from sklearn.preprocessing import PolynomialFeatures
from sklearn.svm import SVR

from controllers.search import Dimension, NumberRange, Options

Values = Mapping[str, Any]
Array = np.ndarray[Any, np.dtype[np.float64]]
STEPS: Final = 100
BATCH: Final = 32


@dataclass(frozen=True)
class Split:
    """Rows to train on and rows to judge by; targets are numbers, or a column of 0 and 1 for each class."""

    x: Array
    y: Array
    valid_x: Array
    valid_y: Array


@dataclass(frozen=True)
class Tuning:
    """A model with its hyperparameters on some data; ``loss`` is what a trial with some values comes to."""

    space: tuple[Dimension, ...]
    loss: Callable[[Values], float]


@dataclass(frozen=True)
class Task:
    """What is tuned, what has changed since the earlier sweep, and both sweeps."""

    title: str
    changed: str
    earlier: Tuning
    new: Tuning


def _log(name: str, low: float, high: float, *, whole: bool = False) -> Dimension:
    return Dimension(name=name, domain=NumberRange(low=low, high=high, log=True, whole=whole))


def _even(name: str, low: float, high: float) -> Dimension:
    return Dimension(name=name, domain=NumberRange(low=low, high=high))


KERNEL: Final = (_log("alpha", 1e-6, 10), _log("gamma", 1e-5, 1))
VECTORS: Final = (_log("C", 1e-2, 1e3), _log("gamma", 1e-4, 1), _even("epsilon", 0, 1))
NET: Final = (_log("lr", 1e-3, 1), _even("momentum", 0, 0.98), _log("width", 4, 64, whole=True))
DECAY: Final = _log("decay", 1e-6, 0.3)
ELASTIC: Final = (_log("alpha", 1e-4, 1), _even("l1_ratio", 0.01, 1))
WIDER: Final = (_log("alpha", 1e-5, 10), _even("l1_ratio", 0.01, 1))
NEIGHBOURS: Final = (
    _log("neighbours", 1, 60, whole=True),
    Dimension(name="p", domain=Options(options=(1, 2))),
    Dimension(name="weights", domain=Options(options=("uniform", "distance"))),
)


def _split(x: Array, y: Array, seed: int, most: int = 300) -> Split:
    """Return rows in an order by chance, two of three to train on; numbers are standardised by these."""
    order = np.random.default_rng(seed).permutation(len(x))[:most]
    train, valid = order[: 2 * len(order) // 3], order[2 * len(order) // 3 :]
    mean, deviation = x[train].mean(axis=0), x[train].std(axis=0)
    scale = np.where(deviation > 0, deviation, 1.0)
    low, spread = (y[train].mean(), y[train].std()) if y.ndim == 1 else (0.0, 1.0)
    standard, target = (x - mean) / scale, (y - low) / spread
    return Split(standard[train], target[train], standard[valid], target[valid])


def _classes(labels: Array) -> Array:
    """Return a column of 0 and 1 for each class."""
    return np.asarray(labels[:, None] == np.unique(labels)[None, :], dtype=np.float64)


def _judged(model: Any, split: Split) -> float:  # noqa: ANN401 - any estimator of scikit-learn's
    """Return the root of the mean squared error of a fitted model."""
    told = model.fit(split.x, split.y).predict(split.valid_x)
    return float(np.sqrt(np.mean((told - split.valid_y) ** 2)))


def kernel_ridge(split: Split) -> Callable[[Values], float]:
    """Return the loss of a ridge regression over a Gaussian kernel."""
    return lambda given: _judged(KernelRidge(alpha=given["alpha"], gamma=given["gamma"], kernel="rbf"), split)


def support_vectors(split: Split) -> Callable[[Values], float]:
    """Return the loss of a regression by support vectors."""
    return lambda given: _judged(SVR(C=given["C"], gamma=given["gamma"], epsilon=given["epsilon"]), split)


def elastic_net(split: Split) -> Callable[[Values], float]:
    """Return the loss of a linear regression over all products of two columns."""
    products = PolynomialFeatures(2, include_bias=False).fit(split.x)
    wide = Split(products.transform(split.x), split.y, products.transform(split.valid_x), split.valid_y)
    return lambda given: _judged(
        ElasticNet(alpha=given["alpha"], l1_ratio=given["l1_ratio"], max_iter=200, tol=1e-3), wide
    )


def neighbours(split: Split) -> Callable[[Values], float]:
    """Return the loss of the nearest neighbours."""
    return lambda given: _judged(
        KNeighborsRegressor(int(given["neighbours"]), p=given["p"], weights=given["weights"]), split
    )


def network(split: Split) -> Callable[[Values], float]:
    """Return the cross entropy of a network of one layer after a short training with momentum."""

    def loss(given: Values) -> float:
        chance, width = np.random.default_rng(0), int(given["width"])
        shapes = [(split.x.shape[1], width), (width,), (width, split.y.shape[1]), (split.y.shape[1],)]
        weights = [chance.normal(0, 1 / np.sqrt(shape[0]), shape) * (len(shape) > 1) for shape in shapes]
        speeds = [np.zeros_like(weight) for weight in weights]
        for _ in range(STEPS):
            rows = chance.integers(len(split.x), size=BATCH)
            hidden, told = _forward(weights, split.x[rows])
            wrong = (told - split.y[rows]) / BATCH
            back = (wrong @ weights[2].T) * (hidden > 0)
            slopes = [split.x[rows].T @ back, back.sum(axis=0), hidden.T @ wrong, wrong.sum(axis=0)]
            pulls = [slope + given.get("decay", 0.0) * weight for slope, weight in zip(slopes, weights, strict=True)]
            speeds = [given["momentum"] * speed - given["lr"] * pull for speed, pull in zip(speeds, pulls, strict=True)]
            weights = [weight + speed for weight, speed in zip(weights, speeds, strict=True)]
        told = _forward(weights, split.valid_x)[1]
        return float(-np.mean(np.log(np.clip((told * split.valid_y).sum(axis=1), 1e-12, 1))))

    return loss


def _forward(weights: list[Array], x: Array) -> tuple[Array, Array]:
    hidden = np.maximum(x @ weights[0] + weights[1], 0)
    scores = hidden @ weights[2] + weights[3]
    likely = np.exp(scores - scores.max(axis=1, keepdims=True))
    return hidden, likely / likely.sum(axis=1, keepdims=True)


@lru_cache(maxsize=1)
def tasks() -> tuple[Task, ...]:
    """Return all eight, in an order that stays."""
    x, y = load_diabetes(return_X_y=True)
    women = x[:, 1] > 0
    images, digit = load_digits(return_X_y=True)
    coarse = images.reshape(-1, 4, 2, 4, 2).sum(axis=(2, 4)).reshape(-1, 16)
    small, cancer, wine = digit < 5, load_breast_cancer(return_X_y=True), load_wine(return_X_y=True)  # noqa: PLR2004 - half of them
    first, later = _split(x[:221], y[:221], 1), _split(x[221:], y[221:], 2)
    low, high = (_split(images[of], _classes(digit[of]), 3) for of in (small, ~small))
    health, drink = _split(cancer[0], _classes(cancer[1]), 5), _split(wine[0], _classes(wine[1]), 6)
    rough, fine = (_split(images[of], _classes(digit[of]), 8) for of in (slice(0, 200), slice(200, 700)))
    blurred, sharp = (_split(of, _classes(digit), 7) for of in (coarse, images))
    return (
        Task("kernel ridge, diabetes", "later rows", *(Tuning(KERNEL, kernel_ridge(of)) for of in (first, later))),
        Task(
            "support vectors, diabetes",
            "men, not women",
            *(Tuning(VECTORS, support_vectors(_split(x[of], y[of], 4))) for of in (women, ~women)),
        ),
        Task("network, digits", "5 to 9, not 0 to 4", *(Tuning(NET, network(of)) for of in (low, high))),
        Task("network, breast cancer", "was tuned on wine", *(Tuning(NET, network(of)) for of in (drink, health))),
        Task(
            "elastic net, diabetes",
            "later rows, a wider space",
            Tuning(ELASTIC, elastic_net(first)),
            Tuning(WIDER, elastic_net(later)),
        ),
        Task(
            "network, digits",
            "5 to 9, and a new hyperparameter",
            Tuning(NET, network(low)),
            Tuning((*NET, DECAY), network(high)),
        ),
        Task("neighbours, digits", "more rows", *(Tuning(NEIGHBOURS, neighbours(of)) for of in (rough, fine))),
        Task(
            "kernel ridge, digits",
            "sharper images",
            *(Tuning(KERNEL, kernel_ridge(of)) for of in (blurred, sharp)),
        ),
    )
