"""A training job of several workers that counts, in step with each other, and logs from one of them."""

import os
import sys
from pathlib import Path

import mlflow

sys.path.insert(0, str(Path(__file__).parents[2]))

from tests.contract.trial_program import main


def log(step: int) -> None:
    """Tell MLflow of ``step``."""
    mlflow.log_metric("loss", 1 / (step + 1), step=step)


if __name__ == "__main__":
    if os.environ.get("RANK", "0") == "0":
        mlflow.start_run()
    sys.exit(main(*(int(word) for word in sys.argv[1:5]), log=log))
