"""Has a job write each of its checkpoints beside the training, however small, as ``JOB_BESIDE`` asks for."""

import os

from mlflow_hooks import checkpoints, saving


def write_beside() -> None:
    """Do so; where ``JOB_BESIDE`` is ``always``, a checkpoint begins as soon as the one before is there."""
    if how := os.environ.get("JOB_BESIDE"):
        saving.BESIDE_BYTES = 0  # type: ignore[misc]
        if how == "always":
            checkpoints.SAVING_SHARE = 1.0  # type: ignore[misc]
