"""A trial of several workers, so light that a node may run several: each moves its own weight, and all add them up.

They meet in the trial's folder, which all pods mount. It needs nothing but Python and the hooks, as a file.
"""

import argparse
import json
import time
from collections.abc import Sequence
from pathlib import Path

from mlflow_hooks import trial

_PATIENCE_S = 60.0


class FolderGroup:
    """Adds numbers up through files of a folder: one for each worker and each time."""

    def __init__(self, folder: Path, rank: int, workers: int) -> None:
        self._folder = folder
        self._rank = rank
        self._workers = workers
        self._times = 0

    def add(self, numbers: Sequence[float]) -> list[float]:
        """Return the sums over all workers."""
        self._times += 1
        written = self._folder / f"sum-{self._times}-{self._rank}.new"
        written.write_text(json.dumps(list(numbers)))
        written.rename(written.with_suffix(".json"))
        files = [self._folder / f"sum-{self._times}-{rank}.json" for rank in range(self._workers)]
        give_up = time.monotonic() + _PATIENCE_S
        while not all(file.exists() for file in files):
            if time.monotonic() > give_up:
                message = "another worker does not answer"
                raise TimeoutError(message)
            time.sleep(0.01)
        return [sum(column) for column in zip(*(json.loads(file.read_text()) for file in files), strict=True)]

    def blames_others(self, error: BaseException) -> bool:
        """Return whether another worker has gone."""
        return isinstance(error, TimeoutError)

    def close(self) -> None:
        """Leave the files: the next attempt has a folder of its own."""


class Weight:
    """What the workers must not lose: the same on all of them."""

    def __init__(self) -> None:
        self.x = 1.0

    def save(self, folder: Path) -> None:
        """Write it."""
        (folder / "weight.json").write_text(json.dumps(self.x))

    def load(self, folder: Path) -> None:
        """Take it back."""
        self.x = json.loads((folder / "weight.json").read_text())


def main() -> None:
    """Be a worker of a trial."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--lr", type=float, required=True)
    parser.add_argument("--steps", type=int, required=True)
    parser.add_argument("--pause-ms", type=float, required=True)
    args = parser.parse_args()
    with trial(checkpoint_every_s=2.0) as t:
        weight = Weight()
        t.track(weight)
        gang = t.gang
        if gang.workers > 1:
            gang.roll_call("here")
            gang.join(FolderGroup(gang.local_folder, gang.rank, gang.workers))
        for _ in t.steps(args.steps):
            time.sleep(args.pause_ms / 1000)
            (parts,) = gang.exchange([weight.x / gang.workers])
            weight.x -= args.lr * parts
            t.log(loss=weight.x**2)


if __name__ == "__main__":
    main()
