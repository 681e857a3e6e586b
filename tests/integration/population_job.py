"""A softmax regression on the digits of scikit-learn, by gradient descent with momentum; it saves what it needs."""

import argparse
import sys
import time

import numpy as np
from sklearn.datasets import load_digits

from mlflow_hooks import trial

parser = argparse.ArgumentParser()
parser.add_argument("--lr", type=float)
parser.add_argument("--momentum", type=float)
parser.add_argument("--steps", type=int, default=60)
parser.add_argument("--pause-ms", type=float, default=200.0)
given = parser.parse_args()

digits = load_digits()
pixels, wanted = digits.data / 16.0, np.eye(10)[digits.target]
train, held_out = slice(0, 1400), slice(1400, None)


def shares(weights: np.ndarray, rows: slice) -> np.ndarray:
    scores = np.exp(pixels[rows] @ weights - (pixels[rows] @ weights).max(axis=1, keepdims=True))
    return np.asarray(scores / scores.sum(axis=1, keepdims=True))


with trial(checkpoint_every_s=0.0) as t:
    kept = t.track_values(weights=np.zeros((64, 10)).tolist(), speed=np.zeros((64, 10)).tolist(), path=[])
    kept.path = [*kept.path, [t.settings.run_name, t.next_step, given.lr]]
    sys.stdout.write(f"path {kept.path}\n")
    sys.stdout.flush()
    weights, speed = np.array(kept.weights), np.array(kept.speed)
    for _ in t.steps(given.steps):
        time.sleep(given.pause_ms / 1000)
        slope = pixels[train].T @ (shares(weights, train) - wanted[train]) / 1400
        speed = given.momentum * speed - given.lr * slope
        weights = weights + speed
        kept.weights, kept.speed = weights.tolist(), speed.tolist()
        loss = -np.log((shares(weights, held_out) * wanted[held_out]).sum(axis=1) + 1e-12).mean()
        t.log(loss=float(loss), lr=given.lr)
