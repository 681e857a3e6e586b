"""The folder of a large run that goes on: hundreds of trials, eight at a time on two nodes."""

import json
import math
from itertools import count
from pathlib import Path
from typing import Final

from controllers.record.timeline import EventKind, TimelineEvent, TimelineFile

NODES: Final = ("node-1", "node-2")
_PLACES: Final = 8
_REPORTS: Final = 25
_EVERY_S: Final = 2.0


def write_large_run(state_dir: Path, trials: int = 500, ended: int = 400, name: str = "large-1") -> Path:
    """Write the folder of a run of ``trials`` trials, and return it: ``ended`` have ended, eight run, others wait."""
    part = state_dir / "runs" / name / "00-ahead"
    part.mkdir(parents=True)
    about = {
        "name": name,
        "file": "sweep.py",
        "policies": ["ahead"],
        "nodes": 2,
        "objective": "loss",
        "direction": "minimize",
    }
    (part.parent / "run.json").write_text(json.dumps(about))
    TimelineFile(part / "timeline.jsonl").append(large_timeline(trials, ended))
    (part / "ledger.json").write_text("{}")
    return part.parent


def large_timeline(trials: int, ended: int) -> list[TimelineEvent]:
    """Return what happened so far, in order."""
    names = [f"large.t{number:03}" for number in range(trials)]
    events = [TimelineEvent(0.0, EventKind.PHASE, name, phase="pending", attempt=0, cpu=1.0) for name in names]
    free = [0.0] * _PLACES
    for number, name in zip(range(ended + _PLACES), names, strict=False):
        place = min(range(_PLACES), key=free.__getitem__)
        node, begun, length = NODES[place % 2], free[place], _EVERY_S * (_REPORTS - number % 7)
        events.append(TimelineEvent(begun, EventKind.PHASE, name, phase="running", node=node, attempt=1, cpu=1.0))
        for step in count():
            at = begun + _EVERY_S * (step + 1)
            if at >= begun + length:
                break
            value = 0.1 + (number % 13) / 40 + 2 * math.exp(-step / 6)
            events.append(TimelineEvent(at, EventKind.REPORT, name, value=value, step=step, steps_total=_REPORTS))
            events.append(TimelineEvent(at, EventKind.USAGE, name, value=0.9, node=node))
        if number < ended:
            events.append(
                TimelineEvent(begun + length, EventKind.PHASE, name, phase="succeeded", node=node, attempt=1, cpu=1.0)
            )
        free[place] = begun + length
    return sorted(events, key=lambda event: event.at)
