"""What a local run keeps of its engine: the newest state in one file, what its owner asks for in another."""

import json
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from controllers.core.asks import AsksInText, asks_written
from controllers.core.errors import SpeconError
from controllers.core.model import Ask
from controllers.worlds.local.jobs import write_whole
from mlflow_hooks.foreign_json import parsed

_CLOCK = "clock.json"


class StateFile:
    """Keeps ``engine.json``: the newest state, and how much of the sweep's time had passed.

    While the state stays the same, only the time is kept, in ``clock.json``: a large sweep's state is megabytes. When
    the sweep began is kept as it is by the machine's clock of the moment, so that setting that clock while the sweep
    runs makes no interruption.

    Args:
        folder: of the run under one policy.
        now: seconds on the sweep's clock.
    """

    def __init__(self, folder: Path, now: Callable[[], float]) -> None:
        self._file = folder / "engine.json"
        self._now = now
        self._kept: str | None = None
        began = _newest(folder).get("began_epoch_s")
        self.interrupted_s = 0.0 if began is None else max(0.0, time.time() - float(began) - now())
        """Seconds since the sweep first began in which no controller drove it; the sweep's clock stood still."""

    def load(self) -> str | None:
        """Return the state saved last, None at the first start."""
        state = _read(self._file).get("state")
        return None if state is None else str(state)

    def save(self, state: Callable[[], str], *, urgent: bool) -> None:
        """Keep ``state`` together with the time on the sweep's clock; a file is cheap enough for every tick."""
        del urgent
        newest, now = state(), self._now()
        clock = {"elapsed_s": now, "began_epoch_s": time.time() - now - self.interrupted_s}
        if newest == self._kept:
            write_whole(self._file.with_name(_CLOCK), json.dumps(clock).encode())
            return
        write_whole(self._file, json.dumps({**clock, "state": newest}).encode())
        self._kept = newest


class AskedFile:
    """``asked.json`` of a run under one policy: what its owner asks of its trials, from another process.

    Args:
        folder: of the run under one policy.
    """

    def __init__(self, folder: Path) -> None:
        self._file = folder / "asked.json"
        self._asks = AsksInText()

    def asked(self) -> Mapping[str, Ask]:
        """Return what is asked by the short id of each trial."""
        self._asks.take(self._file.read_text(encoding="utf-8") if self._file.exists() else "")
        return self._asks.asked()

    def ask(self, asks: Mapping[str, Ask]) -> None:
        """Ask for that from now on, and for nothing else."""
        write_whole(self._file, asks_written(asks).encode())


class PolicyFile:
    """``set-policy`` of a run under one policy: what its owner wants to steer it from now on, from another process.

    Args:
        folder: of the run under one policy.
    """

    def __init__(self, folder: Path) -> None:
        self._file = folder / "set-policy"

    def read(self) -> str:
        """Return the spec string of the policy, empty where nobody asked for another."""
        return self._file.read_text(encoding="utf-8") if self._file.exists() else ""

    def write(self, spec: str) -> None:
        """Ask for the policy of the spec string ``spec`` from now on."""
        write_whole(self._file, spec.encode())


def elapsed_before(folder: Path) -> float:
    """Return the seconds of the sweep's clock that an earlier controller of this run had driven."""
    return _elapsed(_newest(folder))


def _newest(folder: Path) -> dict[str, Any]:
    """Return what was kept last of the sweep's time."""
    return max((_read(folder / name) for name in ("engine.json", _CLOCK)), key=_elapsed)


def _elapsed(kept: Mapping[str, Any]) -> float:
    return float(kept.get("elapsed_s", 0.0))


def _read(path: Path) -> dict[str, Any]:
    try:
        kept = parsed(path.read_text(encoding="utf-8")) if path.exists() else {}
    except ValueError as error:
        message = f"{path} is no JSON ({error}): put back what was there, or start a new run with --fresh"
        raise SpeconError(message) from error
    return kept if isinstance(kept, dict) else {}
