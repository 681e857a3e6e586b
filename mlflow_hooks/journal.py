"""Every point that a trial logged, on its disk: the truth that MLflow gets a copy of.

``points.jsonl`` only grows, by whole writes of whole lines, so a killed process loses nothing it
logged. ``points.sent`` holds how many of its bytes MLflow has acknowledged.
"""

import errno
import json
import math
import os
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Final

from mlflow_hooks.fence import Fence
from mlflow_hooks.state_folder import report, sendable, write_whole

POINTS = "points.jsonl"
SENT = "points.sent"
MOST_STEP: Final = 2**63
"""MLflow keeps steps in 64 bits."""


@dataclass(frozen=True, slots=True)
class Point:
    """One logged value. ``timestamp`` is in milliseconds since 1970, as MLflow wants it."""

    key: str
    value: float
    step: int
    timestamp: int

    def encode(self) -> bytes:
        """Return the point as a line; NaN and infinities are written as Python's json does."""
        value = repr(self.value) if math.isfinite(self.value) else json.dumps(self.value)
        line = f'{{"key": {_quoted(self.key)}, "value": {value}, "step": {self.step}, "timestamp": {self.timestamp}}}\n'
        return line.encode()

    @classmethod
    def decode(cls, line: bytes) -> "Point | None":
        """Read a line back; None where it holds no point."""
        try:
            fields = json.loads(line)
            point = cls(sendable(fields["key"]), float(fields["value"]), int(fields["step"]), int(fields["timestamp"]))
        except (ValueError, TypeError, KeyError, OverflowError):
            return None
        # An older version journalled any step, and one that MLflow cannot keep would hold up all points after it.
        return point if point.step < MOST_STEP else None


@lru_cache(maxsize=1024)
def _quoted(key: str) -> str:
    return json.dumps(key)


class Journal:
    """The points of one trial, open for one attempt.

    ``high_water`` holds the highest step of each key that earlier attempts logged, ``latest`` the
    value there, ``stride`` how far it is from the step before. Steps of a key are expected to grow.

    An attempt that was replaced and does not know it yet writes nothing more: the next one takes the fence before it
    reads.

    Args:
        folder: of the trial.
        owned: whether this attempt still owns it.
    """

    def __init__(self, folder: Path, owned: Callable[[], bool] = lambda: True) -> None:
        self.path = folder / POINTS
        self._handle = os.open(self.path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
        self._fence = Fence(folder, self._handle)
        self._owned = owned
        self._unwritten = b""
        self._complained = False
        self.high_water: dict[str, int] = {}
        self.latest: dict[str, float] = {}
        self.stride: dict[str, int] = {}
        with self._fence.taken():
            data = self.path.read_bytes()
            whole = data.rfind(b"\n") + 1
            if whole < len(data):
                report(f"{self.path} ended in half a line, as after a crash: {len(data) - whole} bytes cut off")
                os.truncate(self.path, whole)
            for point in _read_all(self.path):
                before = self.high_water.get(point.key)
                if before is not None and point.step > before:
                    self.stride[point.key] = point.step - before
                if before is None or point.step >= before:
                    self.high_water[point.key] = point.step
                    self.latest[point.key] = point.value

    def is_new(self, key: str, step: int) -> bool:
        """Return whether no earlier attempt logged ``key`` at ``step`` or beyond."""
        return step > self.high_water.get(key, -1)

    def ours(self) -> bool:
        """Return whether no later attempt has begun, however late this one sees what others write."""
        with self._fence.held() as ours:
            return ours

    def missing(self, key: str, step: int) -> range:
        """Return the steps before ``step`` at which ``key`` was due after what earlier attempts logged of it.

        Empty where they logged too little of it to tell.
        """
        stride = self.stride.get(key)
        return range(self.high_water[key] + stride, step, stride) if stride else range(0)

    def append(self, points: Iterable[Point]) -> None:
        """Add ``points`` in one write; a full disk is reported once and tried again next time."""
        self._unwritten += b"".join(point.encode() for point in points)
        if self._handle < 0:
            self._complain(OSError(errno.EBADF, "the trial has ended"))
            return
        with self._fence.held() as ours:
            if not (ours and self._owned()):
                self._unwritten = b""
                return
            try:
                # What a full disk cut off goes first next time, so that lines stay whole.
                self._unwritten = self._unwritten[os.write(self._handle, self._unwritten) :]
            except OSError as error:
                self._complain(error)

    def sync(self) -> None:
        """Have the disk keep what is written, also over a loss of power."""
        try:
            os.fsync(self._handle)
        except OSError as error:
            self._complain(error)

    def close(self) -> None:
        """Let the file go; what is appended later is reported, not written."""
        self._fence.close()
        os.close(self._handle)
        self._handle = -1

    def _complain(self, error: OSError) -> None:
        if not self._complained:
            report(f"cannot write metrics to {self.path} ({error}); the training continues")
        self._complained = True


def _read_all(path: Path) -> Iterator[Point]:
    with path.open("rb") as lines:
        yield from filter(None, map(Point.decode, lines))


def read_unsent(folder: Path, limit: int) -> tuple[list[Point], int]:
    """Return up to ``limit`` points that MLflow has not acknowledged, and the offset after them."""
    points: list[Point] = []
    offset = sent_bytes(folder)
    for line in _unsent_lines(folder, offset):
        offset += len(line)
        point = Point.decode(line)
        if point:
            points.append(point)
        if len(points) == limit:
            break
    return points, offset


def count_unsent(folder: Path) -> int:
    """Return how many logged points MLflow has not acknowledged."""
    return sum(1 for _ in _unsent_lines(folder, sent_bytes(folder)))


def _unsent_lines(folder: Path, offset: int) -> Iterator[bytes]:
    path = folder / POINTS
    if not path.exists():
        return
    with path.open("rb") as lines:
        lines.seek(offset)
        yield from (line for line in lines if line.endswith(b"\n"))  # half a line may still be on its way


def sent_bytes(folder: Path) -> int:
    """Return how many bytes MLflow has acknowledged; 0 where the count is missing or cannot be right."""
    try:
        sent = int((folder / SENT).read_text())
        return sent if 0 <= sent <= (folder / POINTS).stat().st_size else 0
    except (OSError, ValueError):
        return 0


def mark_sent(folder: Path, offset: int) -> None:
    """Record that MLflow has acknowledged the first ``offset`` bytes."""
    write_whole(folder / SENT, str(offset))
