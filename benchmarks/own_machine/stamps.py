"""What the trials of every tool note by themselves: when each began, made its first step and ended."""

import argparse
import json
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Final, Self

_BEGAN: Final = "began"
_STEPPED: Final = "stepped"
_LEFT: Final = "left"
_ENDED: Final = "ended"


class Stamps:
    """Those of one attempt of a trial, added to its file at once, since any process may be killed at any time.

    The context is the attempt. One that ends the context without ``ended`` has left, to go on later.
    """

    def __init__(self, folder: Path, name: str) -> None:
        self._file = folder / f"{name}.jsonl"
        self._steps = 0
        self._over = False
        self._cpu = 0.0

    @classmethod
    def of(cls, given: argparse.Namespace) -> Self:
        """Return those of the trial with these options: its hyperparameters are its name, whichever tool runs it."""
        return cls(given.stamps, f"lr={given.lr}-work={given.work}")

    def stepped(self) -> None:
        """Note the first step; later calls do nothing."""
        if not self._steps:
            self._note(_STEPPED)
        self._steps += 1

    def ended(self, loss: float) -> None:
        """Note that the whole training is over, and what it came to."""
        self._over = True
        self._note(_ENDED, loss=loss, cpu_s=time.process_time() - self._cpu)

    def __enter__(self) -> Self:
        self._cpu = time.process_time()
        self._note(_BEGAN)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if not self._over:
            self._note(_LEFT, cpu_s=time.process_time() - self._cpu)

    def _note(self, what: str, **figures: float) -> None:
        with self._file.open("a", encoding="utf-8") as file:
            file.write(json.dumps({"what": what, "at": time.time(), **figures}) + "\n")


@dataclass(frozen=True, slots=True)
class Trial:
    """What a trial did over all its attempts, in seconds since the command began.

    ``stepped`` and ``ended`` are None where it never made a step or never came to its end. ``killed`` counts the
    attempts that neither ended nor left. ``cpu_s`` is without what those used.
    """

    name: str
    began: float
    stepped: float | None
    ended: float | None
    attempts: int
    killed: int
    cpu_s: float
    loss: float | None


def read_stamps(folder: Path, since: float) -> list[Trial]:
    """Return what all trials noted in ``folder``; the command began at ``since``, in Unix seconds."""
    return list(_trials(folder, since))


def _trials(folder: Path, since: float) -> Iterator[Trial]:
    for path in sorted(folder.glob("*.jsonl")):
        lines = [json.loads(line) for line in path.read_text("utf-8").splitlines()]
        if not lines:
            continue  # killed before it noted anything
        at = {what: [line["at"] - since for line in lines if line["what"] == what] for what in (_BEGAN, _STEPPED)}
        (*_, last) = lines
        attempts = len(at[_BEGAN])
        yield Trial(
            name=path.stem,
            began=at[_BEGAN][0],
            stepped=min(at[_STEPPED], default=None),
            ended=last["at"] - since if last["what"] == _ENDED else None,
            attempts=attempts,
            killed=attempts - sum(line["what"] in {_LEFT, _ENDED} for line in lines),
            cpu_s=sum(line.get("cpu_s", 0.0) for line in lines),
            loss=last.get("loss"),
        )
