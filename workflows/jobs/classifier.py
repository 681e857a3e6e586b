"""The steps of ``workflows/pipeline.py``: a linear classifier learns handwritten digits, with scikit-learn.

python -m workflows.jobs.classifier prepare --out data.json
python -m workflows.jobs.classifier train --data "$(cat data.json)" --lr 0.01 --alpha 0.0001
python -m workflows.jobs.classifier retrain --data "$(cat data.json)" --params '{"lr": 0.01, "alpha": 1e-4}' --out uri
python -m workflows.jobs.classifier register --model "$(cat uri)" --name digits --value 0.2
"""

import argparse
import json
from pathlib import Path
from typing import Any, Final

import numpy as np
from sklearn.linear_model import SGDClassifier
from sklearn.metrics import log_loss

from mlflow_hooks import trial
from mlflow_hooks.sklearn import fit_in_steps
from workflows.jobs.data import DIGITS, Array, digit_images

STEPS: Final = 20
"""Passes over the data of a trial."""


def prepare(out: Path) -> None:
    """Write what every later step scales its pixels by."""
    pixels = digit_images().train.inputs
    out.write_text(json.dumps({"mean": round(float(pixels.mean()), 6), "spread": round(float(pixels.std()), 6)}))


def scaled(pixels: Array, data: str) -> Array:
    """Return the pixels as ``prepare`` says."""
    told = json.loads(data)
    scaled_pixels: Array = (pixels - told["mean"]) / told["spread"]
    return scaled_pixels


def classifier(lr: float, alpha: float) -> Any:  # noqa: ANN401 - scikit-learn ships no types
    """Return a classifier that has learned nothing."""
    return SGDClassifier(loss="log_loss", learning_rate="constant", eta0=lr, alpha=alpha, random_state=1)


def train(data: str, lr: float, alpha: float) -> None:
    """Train one trial, and log the validation loss of each pass."""
    digits = digit_images()
    train_pixels, valid_pixels = scaled(digits.train.inputs, data), scaled(digits.valid.inputs, data)
    with trial() as t:
        model = classifier(lr, alpha)
        for _ in fit_in_steps(t, model, train_pixels, digits.train.targets, steps=STEPS):
            told = model.predict_proba(valid_pixels)
            t.log(loss=float(log_loss(digits.valid.targets, told, labels=range(DIGITS))))


def retrain(data: str, params: str, out: Path) -> None:
    """Train on all examples with the best hyperparameters, log the model, and write where it is."""
    import mlflow  # noqa: PLC0415 - takes a second, and the trials need none

    digits, chosen = digit_images(), json.loads(params)
    pixels = scaled(np.concatenate([digits.train.inputs, digits.valid.inputs]), data)
    targets = np.concatenate([digits.train.targets, digits.valid.targets])
    model = classifier(chosen["lr"], chosen["alpha"])
    for _ in range(STEPS):
        model.partial_fit(pixels, targets, classes=range(DIGITS))
    mlflow.set_experiment("pipeline-models")
    with mlflow.start_run() as run:
        mlflow.log_params(chosen)
        mlflow.sklearn.log_model(model, name="model")
    out.write_text(f"runs:/{run.info.run_id}/model")


def register(model: str, name: str, value: float) -> None:
    """Make the model a version in MLflow's registry, with the loss that its hyperparameters had."""
    import mlflow  # noqa: PLC0415 - see retrain()

    version = mlflow.register_model(model, name, tags={"validation_loss": f"{value:.6g}"})
    mlflow.MlflowClient().set_registered_model_alias(name, "candidate", version.version)


def main() -> None:
    """Run one step."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    steps = parser.add_subparsers(dest="step", required=True)
    of_prepare, of_train, of_retrain, of_register = (
        steps.add_parser(step.__name__, help=step.__doc__) for step in (prepare, train, retrain, register)
    )
    of_prepare.add_argument("--out", type=Path, required=True)
    of_train.add_argument("--lr", type=float, required=True)
    of_train.add_argument("--alpha", type=float, required=True)
    of_retrain.add_argument("--params", required=True, help="JSON")
    of_retrain.add_argument("--out", type=Path, required=True)
    for part in (of_train, of_retrain):
        part.add_argument("--data", required=True, help="JSON, as prepare writes it")
    of_register.add_argument("--model", required=True)
    of_register.add_argument("--name", required=True)
    of_register.add_argument("--value", type=float, required=True)
    given = vars(parser.parse_args())
    {step.__name__: step for step in (prepare, train, retrain, register)}[given.pop("step")](**given)


if __name__ == "__main__":
    main()
