"""One sender for all trials of a run on this machine: it brings to MLflow what they journal, while they train.

No trial waits for MLflow, not even at its end: what it logged is on the disk, and another may have its place at once.
What is left when all have ended is brought by the ``Courier``.
"""

import threading
import time
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Final

from controllers.worlds.local.jobs import LocalJob
from mlflow_hooks import contract
from mlflow_hooks.delivery import DeletedRunError, Delivery, end_untold
from mlflow_hooks.journal import POINTS
from mlflow_hooks.state_folder import read_ending, read_identity
from mlflow_hooks.tracking_server import TrackingServer

EVERY_S: Final = 5.0
LONGEST_PAUSE_S: Final = 30.0
_REST: Final = 12.0
"""Each round is followed by a rest of so many times its length: what the server writes down takes CPU from trials."""
_MOST_FAILURES: Final = 2
"""Trials for which a round fails until MLflow is taken to be away."""


class Postman:
    """Makes rounds over the trials on a thread of its own; an MLflow that is away only makes them rarer.

    Args:
        root: where trials keep their state, each in a folder by its id.
        parents: the run of each sweep, by its id.
        server: where all is sent to.
    """

    def __init__(self, root: Path, parents: Mapping[str, str], server: TrackingServer) -> None:
        self._root = root
        self._parents = parents
        self._server = server
        self._jobs: tuple[LocalJob, ...] = ()
        self._settled: set[str] = set()
        self._deliveries: dict[str, Delivery] = {}
        self._sizes: dict[str, int] = {}
        self._experiments: dict[str, str] = {}
        self._failed: set[str] = set()
        self._stop = threading.Event()
        self._hurry = threading.Event()
        self._thread = threading.Thread(target=self._run, name="postman", daemon=True)

    def start(self) -> None:
        """Begin to make rounds."""
        self._thread.start()

    def note(self, jobs: Iterable[LocalJob]) -> None:
        """Take note of the trials as they are now; return at once."""
        self._jobs = tuple(job for job in jobs if job.trial and job.attempt and job.trial not in self._settled)

    def has_brought(self, jobs: Iterable[LocalJob]) -> bool:
        """Return whether MLflow has all that trials which are over journalled; if not, the next round begins now."""
        brought = all(job.trial in self._settled or read_identity(self._root / job.trial) is None for job in jobs)
        if not brought:
            self._hurry.set()
        return brought

    def close(self, within_s: float) -> None:
        """Begin no other request, and wait until that which is under way is through."""
        self._stop.set()
        self._hurry.set()
        self._thread.join(within_s)

    def _run(self) -> None:
        failed = 0
        while not self._stop.is_set():
            began = time.monotonic()
            failed = failed + 1 if self._round() else 0
            took = time.monotonic() - began
            pause = max(EVERY_S, _REST * took)
            self._hurry.wait(min(pause * 2.0 ** min(failed, 5), LONGEST_PAUSE_S))
            if self._hurry.is_set() and failed:
                self._stop.wait(EVERY_S)
            self._hurry.clear()

    def _round(self) -> bool:
        """Bring what is new of each trial; return whether MLflow took nothing of some."""
        failed = set[str]()
        # It may be that MLflow takes nothing for those alone that failed before: all others come first.
        for job in sorted(self._jobs, key=lambda job: job.trial in self._failed):
            if self._stop.is_set() or len(failed) == _MOST_FAILURES:
                break
            try:
                self._bring(job)
            except DeletedRunError:
                self._settled.add(job.trial)  # the courier tells of it at the end
            except Exception:  # noqa: BLE001 - whatever MLflow's client raises, the next round may work
                failed.add(job.trial)
        self._failed = failed
        return bool(failed)

    def _bring(self, job: LocalJob) -> None:
        folder, over = self._root / job.trial, job.phase.ended
        if job.trial in self._settled:
            return
        size = _size(folder / POINTS)
        known = self._deliveries.get(job.trial)
        if known is not None and size == self._sizes.get(job.trial) and not over:
            return
        if read_identity(folder) is None:
            return  # no hooks, or not yet
        if over:
            end_untold(folder, succeeded=job.exit_code == 0)
        elif read_ending(folder) is not None:
            return  # its next attempt has not begun
        if known is None:
            parent = self._parents.get(job.step.env.get(contract.ENV_SWEEP_ID, ""))
            known = Delivery(folder, self._goes_on, self._server, parent, alone=True, experiments=self._experiments)
            self._deliveries[job.trial] = known
        known.over = over
        known.deliver()
        self._sizes[job.trial] = size
        if over and self._goes_on():
            self._settled.add(job.trial)
            del self._deliveries[job.trial]

    def _goes_on(self) -> bool:
        return not self._stop.is_set()


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:
        return 0
