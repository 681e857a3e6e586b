"""Saves and uploads all the time, so that a kill at any moment hits one of these. It checks what it goes on from."""

import os
import sys
import time
from pathlib import Path

from mlflow_hooks import checkpoints, trial, uploads

_PARTS = 3
_BYTES = 200_000


class Total:
    """A sum, in several files that each have all of it."""

    def __init__(self) -> None:
        self.value = 0

    def save(self, folder: Path) -> None:
        for number in range(_PARTS):
            (folder / f"part-{number}").write_text(f"{self.value}\n" + "x" * _BYTES)

    def load(self, folder: Path) -> None:
        (self.value,) = {int((folder / f"part-{number}").read_text().split("\n")[0]) for number in range(_PARTS)}


def main() -> None:
    # As often as the store takes them; else most kills would hit a thread that waits.
    uploads.LEAST_COMMIT_S = uploads.CHECKPOINT_S = 0.02  # type: ignore[misc]
    checkpoints.SAVING_SHARE = 1.0  # type: ignore[misc]
    total = Total()
    with trial(checkpoint_every_s=0.05) as t:
        t.track(total)
        first = t.next_step
        if total.value != sum(range(first)):
            message = f"step {first} with {total.value}"
            raise AssertionError(message)
        sys.stdout.write(f"start {first}\n")
        sys.stdout.flush()
        for step in t.steps(int(os.environ["JOB_STEPS"])):
            time.sleep(0.002)
            total.value += step
            t.log(total=total.value)


main()
