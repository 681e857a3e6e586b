"""What a trial in another tool's study reports when: a line of JSON each, in a file for each trial."""

import json
import time
from pathlib import Path
from typing import Final

from benchmarks.best_model.curves import Curve
from controllers.core.results import TrialResult

SWEEP: Final = "best-model"


class Notes:
    """Those of one trial, written as it trains, since the tool may end its process at any time."""

    def __init__(self, folder: Path, number: int) -> None:
        self._file = (folder / f"trial-{number:03}.jsonl").open("w")
        self._note({"number": number})

    def report(self, value: float) -> None:
        """Note what the trial's objective is after one more step."""
        self._note({"value": value})

    def _note(self, what: dict[str, float]) -> None:
        self._file.write(json.dumps({"at": time.time(), **what}) + "\n")
        self._file.flush()


def read_notes(folder: Path, started: float, steps: int) -> tuple[tuple[TrialResult, ...], dict[str, Curve]]:
    """Return how the trials went, and their reports, in seconds since ``started``.

    Args:
        folder: with their files.
        started: when their study began, in Unix seconds.
        steps: of a whole training; a trial that reported fewer was pruned.
    """
    curves: dict[str, Curve] = {}
    results = []
    for path in sorted(folder.glob("trial-*.jsonl")):
        first, *lines = [json.loads(line) for line in path.read_text("utf-8").splitlines()]
        name = f"{SWEEP}.t{first['number']:03}"
        curves[name] = reports = [(line["at"] - started, line["value"]) for line in lines]
        results.append(
            TrialResult(
                *(name, 0.0, (lines or [first])[-1]["at"] - started, "all", 0, 1),
                final_metric=reports[-1][1] if reports else None,
                stopped="" if len(reports) == steps else "pruned",
            )
        )
    return tuple(results), curves
