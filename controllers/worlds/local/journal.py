"""The journal of a local run: the engine's state in one file, what was tried in another."""

import json
from dataclasses import asdict
from pathlib import Path

from controllers.clock import SweepClock
from controllers.model import Action
from controllers.ports import Outcome
from controllers.worlds.local.jobs import write_whole


class FileJournal:
    """Keeps ``engine.json`` (newest state, and how much of the sweep's time had passed) and ``actions.jsonl``."""

    def __init__(self, folder: Path, clock: SweepClock) -> None:
        self._state = folder / "engine.json"
        self._actions = folder / "actions.jsonl"
        self._clock = clock

    def load(self) -> str | None:
        """Return the state saved last, None at the first start."""
        return _read(self._state)[0]

    def save(self, state: str) -> None:
        """Keep ``state`` together with the time on the sweep's clock."""
        write_whole(self._state, json.dumps({"elapsed_s": self._clock.now(), "state": state}).encode())

    def acted(self, now: float, action: Action, reason: str, outcome: Outcome) -> None:
        """Append the action to the record."""
        line = {"at": now, "kind": type(action).__name__, **asdict(action), "reason": reason, **asdict(outcome)}
        with self._actions.open("a", encoding="utf-8") as file:
            file.write(json.dumps(line) + "\n")


def elapsed_before(folder: Path) -> float:
    """Return the seconds of the sweep's clock that an earlier controller of this run had driven."""
    return _read(folder / "engine.json")[1]


def _read(path: Path) -> tuple[str | None, float]:
    if not path.exists():
        return None, 0.0
    kept = json.loads(path.read_text(encoding="utf-8"))
    return str(kept["state"]), float(kept["elapsed_s"])
