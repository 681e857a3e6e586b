"""Boosted trees by XGBoost that guess how often people visit a doctor.

python -m benchmarks.best_model.jobs.trees --eta=0.1 --depth=4
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import xgboost

from benchmarks.best_model.jobs.options import parsed
from mlflow_hooks import trial
from workflows.jobs import data
from workflows.jobs.data import Examples


@dataclass(frozen=True, slots=True)
class Settings:
    """A step is ``work`` rounds and one validation; a round adds a tree."""

    eta: float = 0.1
    depth: int = 4
    min_child_weight: float = 1.0
    columns: float = 1.0
    penalty: float = 1.0
    least_gain: float = 0.0
    steps: int = 50
    work: int = 1


class Training:
    """One training, step by step."""

    def __init__(self, given: Settings) -> None:
        examples = data.doctor_visits(people=20_190)
        self._work = given.work
        self._train, self._valid = _matrix(examples.train), _matrix(examples.valid)
        settings = {
            "objective": "reg:squarederror",
            "tree_method": "exact",
            "eval_metric": "rmse",
            "eta": given.eta,
            "max_depth": given.depth,
            "min_child_weight": given.min_child_weight,
            "colsample_bytree": given.columns,
            "lambda": given.penalty,
            "gamma": given.least_gain,
            "nthread": 1,
        }
        self.booster = xgboost.Booster(settings, [self._train, self._valid])

    def step(self, number: int) -> None:
        """Add the trees of a step, which count from 0."""
        for done in range(number * self._work, (number + 1) * self._work):
            self.booster.update(self._train, done)

    def validate(self) -> dict[str, float]:
        """Return the error on people whom nothing was trained on."""
        return {"loss": float(self.booster.eval(self._valid).rpartition(":")[2])}

    def save(self, folder: Path) -> None:
        """Write all trees into ``folder``."""
        self.booster.save_model(folder / "model.ubj")

    def load(self, folder: Path) -> None:
        """Go on with the trees in ``folder``."""
        self.booster.load_model(folder / "model.ubj")


def _matrix(examples: Examples) -> xgboost.DMatrix:
    return xgboost.DMatrix(examples.inputs.reshape(len(examples), -1), examples.targets.reshape(len(examples)))


def parse(argv: Sequence[str] | None = None) -> Settings:
    """Read settings such as ``--eta=0.1``."""
    return parsed(Settings, argv)


def main() -> None:
    """Train one trial."""
    given = parse()
    training = Training(given)
    with trial() as t:
        t.track(training)
        for step in t.steps(given.steps):
            training.step(step)
            t.log(training.validate())


if __name__ == "__main__":
    main()
