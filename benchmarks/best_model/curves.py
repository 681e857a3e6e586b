"""What the trials of the runs reported when, in a file beside that of the runs."""

import json
from collections.abc import Mapping
from pathlib import Path

from benchmarks.payoff.plan import Task
from controllers.record.timeline import EventKind, read_timeline
from controllers.worlds.local.jobs import write_whole
from hera_specon.records.run_folder import find_run, parts_of

Curve = list[tuple[float, float]]
"""Seconds since the sweep began, and the value reported then."""


def curves_of(state_dir: Path) -> dict[str, Curve]:
    """Return what the trials of the newest run under ``state_dir`` reported."""
    (part,) = parts_of(find_run(None, state_dir))
    found: dict[str, Curve] = {}
    for event in read_timeline(part / "timeline.jsonl"):
        if event.kind is EventKind.REPORT and event.value is not None:
            found.setdefault(event.trial, []).append((event.at, event.value))
    return found


class CurveFile:
    """The reports of each run; a run that was made again replaces the one before."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._known: dict[str, dict[str, Curve]] = json.loads(path.read_text("utf-8")) if path.exists() else {}

    def keep(self, task: Task, curves: Mapping[str, Curve]) -> None:
        """Keep those of one run, to a hundredth of a second and six digits."""
        self._known[_key(task)] = {
            name: [(round(at, 2), float(f"{value:.6g}")) for at, value in curve] for name, curve in curves.items()
        }
        write_whole(self._path, json.dumps(self._known).encode())

    def of(self, task: Task) -> Mapping[str, Curve]:
        """Return those of one run."""
        return self._known[_key(task)]


def _key(task: Task) -> str:
    return f"{task.sweep} {task.seed} {task.policy}"
