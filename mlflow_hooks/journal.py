"""Every point that a trial logged, on its disk: the truth that MLflow gets a copy of.

``points.jsonl`` only grows, by whole writes of whole lines, so a killed process loses nothing it
logged. ``points.sent`` holds how many of its bytes MLflow has acknowledged.
"""

import errno
import json
import math
import os
import time
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Final

from mlflow_hooks import contract
from mlflow_hooks.fence import Fence
from mlflow_hooks.state_folder import report, sendable, write_whole

POINTS = "points.jsonl"
SENT = "points.sent"
KEPT = "points.kept"
"""How many bytes of the journal a store of objects holds, where there is one: MLflow gets no more than these."""
MOST_STEP: Final = 2**63
"""MLflow keeps steps in 64 bits."""
ONCE: Final = frozenset({contract.METRIC_OBJECTIVE_FIRST, contract.METRIC_STEPS_BACK, contract.METRIC_STEPS_TOTAL})
"""What a trial logs one time over all its attempts."""
_OURS: Final = "specon."


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


@dataclass(slots=True)
class _Rise:
    """Steps of a key that grew: the ``last`` of them, and how many ``times`` it was logged at that.

    ``start`` is how many bytes the journal had before it, None where another trial logged it.
    """

    last: int
    times: int
    start: int | None


@dataclass(frozen=True, slots=True)
class _Stamp:
    """The step and the time of the newest point of a key, and whether its steps ever went back."""

    step: int
    timestamp: int
    goes_back: bool


class Journal:
    """The points of one trial, open for one attempt.

    ``high_water`` holds the highest step of each key that earlier attempts logged, ``latest`` the
    value that they logged last, ``stride`` how far the highest step is from the one before. Steps of a key grow, but
    for a script that counts from 0 again, as in a second phase: the value that was logged last is the one that counts.

    An attempt repeats what came after its checkpoint, and logs that once more. ``fresh`` tells what of it is new. A
    step that an earlier attempt went beyond is not. In the last step of that attempt, the first values are not, as many
    as it logged: it may have been killed in the middle, and what comes after these is new.

    An attempt that was replaced and does not know it yet writes nothing more: the next one takes the fence before it
    reads.

    Where the disk fails, points wait in memory and every call tries again. Nothing is written before it is read what
    earlier attempts logged: otherwise their points would be there twice.

    Args:
        folder: of the trial.
        owned: whether this attempt still owns it.
    """

    def __init__(self, folder: Path, owned: Callable[[], bool] = lambda: True) -> None:
        self.path = folder / POINTS
        self._handle = -1
        self._fence: Fence | None = None
        self._owned = owned
        self._waiting: list[Point] = []
        self._unwritten = b""
        self._complained = False
        self._closed = False
        self.high_water: dict[str, int] = {}
        self.latest: dict[str, float] = {}
        self.stride: dict[str, int] = {}
        self._repeats_from: int | None = None
        self._repeats: dict[str, list[_Rise]] = {}
        self._held: dict[str, Point] = {}
        self._newest: dict[str, _Stamp] = {}
        self._open()

    def _open(self) -> None:
        try:
            handle = os.open(self.path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
        except OSError as error:
            self._complain(error)
            return
        fence = Fence(self.path.parent, handle)
        try:
            with fence.taken():
                lines = _whole_lines(self.path)
        except OSError as error:
            self._complain(error)
            fence.close()
            os.close(handle)
            return
        self._handle, self._fence = handle, fence
        offset = 0
        for line in lines:
            if (point := Point.decode(line)) is not None:
                self._count(point)
                if self._repeats_from is None or offset >= self._repeats_from:
                    self._expect(point, offset)
            offset += len(line) + 1
        known = ONCE & self.high_water.keys()
        fresh = [point for point in self.fresh(self._waiting) if point.key not in known]
        self._unwritten = self._lines(fresh)
        self._waiting = []

    def _is_open(self) -> bool:
        """Return whether points can be written now; a file that could not be opened is tried again."""
        if self._handle < 0 and not self._closed and self._owned():
            self._open()
        return self._handle >= 0

    def is_new(self, key: str, step: int) -> bool:
        """Return whether no earlier attempt logged ``key`` at ``step`` or beyond."""
        return step > self.high_water.get(key, -1)

    def repeat_from(self, offset: int | None) -> None:
        """Expect this attempt to log again what stands beyond ``offset``: its checkpoint was made there.

        Where that is not known, or cannot be read, it is what came since the steps went back last.
        """
        if offset is None:
            return
        try:
            lines = list(_unsent_lines(self.path.parent, offset))
        except OSError:
            return  # a disk that fails must not end a training
        self._repeats_from = offset
        self._repeats.clear()
        for line in lines:
            if (point := Point.decode(line)) is not None:
                self._expect(point, offset)
            offset += len(line)

    def repeated_beyond(self) -> int | None:
        """Return what ``repeat_from`` takes in an attempt that goes on from now; to be asked after ``sync``.

        That is the end of the file, unless this attempt is still repeating what earlier ones logged.
        """
        starts = [rises[0].start for key, rises in self._repeats.items() if rises and not key.startswith(_OURS)]
        if not starts:
            return os.fstat(self._handle).st_size
        known = [start for start in starts if start is not None]
        return min(known) if len(known) == len(starts) else None

    def fresh(self, points: Iterable[Point]) -> list[Point]:
        """Return what is new of ``points``, which this attempt logs, and what has become so with them."""
        return [new for point in points for new in self._new_with(point)]

    def finished(self) -> list[Point]:
        """Return what is new as a repeated step is finished: its last values, where there were to be more of them."""
        return [point for key in list(self._held) if (point := self._let_go(key)) is not None]

    def _new_with(self, point: Point) -> list[Point]:
        held = self._held.get(point.key)
        became = self._let_go(point.key) if held is not None and held.step != point.step else None
        before = [] if became is None else [became]
        rises = self._repeats.get(point.key)
        if not rises or point.step > rises[0].last:
            self._repeats.pop(point.key, None)
            return [*before, point]
        if point.step == rises[0].last:
            rises[0].times -= 1
            self._held[point.key] = point
            if not rises[0].times:
                self._let_go(point.key)
        return before

    def _let_go(self, key: str) -> Point | None:
        """Expect no more of the step that is repeated; return its last value, if it is not the one that is there."""
        rise, held = self._repeats[key].pop(0), self._held.pop(key)
        return held if rise.times and held.value != self.latest[key] else None

    def ours(self) -> bool:
        """Return whether no later attempt has begun, however late this one sees what others write."""
        if self._fence is None:
            return True
        with self._fence.held() as ours:
            return ours

    def take_over(self, points: Iterable[Point]) -> None:
        """Add points that another trial logged; what was logged here at that step or beyond stays as it is."""
        new = [point for point in points if self.is_new(point.key, point.step)]
        self.append(new)
        for point in new:
            self._count(point)
            self._expect(point, None)

    def note(self, key: str, step: int, value: float) -> None:
        """Add one value of now, unless ``key`` was logged at that step or beyond."""
        self.take_over([Point(key, value, step, int(time.time() * 1000))])

    def _count(self, point: Point) -> None:
        before = self.high_water.get(point.key)
        if before is not None and point.step > before:
            self.stride[point.key] = point.step - before
        self.high_water[point.key] = point.step if before is None else max(before, point.step)
        self.latest[point.key] = point.value
        self._note_stamp(point)

    def _expect(self, point: Point, offset: int | None) -> None:
        """Expect a point of an earlier attempt, which stands at ``offset``, once more."""
        rises = self._repeats.setdefault(point.key, [])
        if not rises or point.step < rises[-1].last:
            if self._repeats_from is None:
                rises.clear()
            rises.append(_Rise(point.step, 1, offset))
        elif point.step == rises[-1].last:
            rises[-1].times += 1
        else:
            rises[-1].last, rises[-1].times = point.step, 1

    def _note_stamp(self, point: Point) -> None:
        before = self._newest.get(point.key)
        goes_back = before is not None and (before.goes_back or point.step < before.step)
        self._newest[point.key] = _Stamp(point.step, point.timestamp, goes_back)

    def _stamped(self, point: Point) -> Iterator[Point]:
        """Yield a point with a time by which it is the newest where its step alone does not tell.

        MLflow takes the newest at a step, and who reads a history that goes back takes the newest of all: the clocks of
        two machines may differ by more than a step takes, and two values may come within a millisecond.
        """
        before = self._newest.get(point.key)
        if before is not None and (before.goes_back or point.step <= before.step):
            earliest = before.timestamp + (1 if point.step <= before.step else 0)
            point = replace(point, timestamp=max(point.timestamp, earliest))
            first = contract.METRIC_STEPS_BACK not in self._newest and not point.key.startswith(_OURS)
            if first and point.step < before.step:
                marker = Point(contract.METRIC_STEPS_BACK, float(before.step), 0, point.timestamp)
                self._note_stamp(marker)
                yield marker
        self._note_stamp(point)
        yield point

    def _lines(self, points: Iterable[Point]) -> bytes:
        return b"".join(stamped.encode() for point in points for stamped in self._stamped(point))

    def missing(self, key: str, step: int) -> range:
        """Return the steps before ``step`` at which ``key`` was due after what earlier attempts logged of it.

        Empty where they logged too little of it to tell.
        """
        stride = self.stride.get(key)
        return range(self.high_water[key] + stride, step, stride) if stride else range(0)

    def append(self, points: Iterable[Point]) -> None:
        """Add ``points`` in one write; a full disk is reported once and tried again next time."""
        if self._closed:
            self._complain(OSError(errno.EBADF, "the trial has ended"))
        elif self._handle >= 0:
            self._unwritten += self._lines(points)
            self._write()
        else:
            self._waiting += points
            if self._is_open():
                self._write()

    def _write(self) -> None:
        if self._fence is None:
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

    def sync(self) -> bool:
        """Have the disk keep all points so far, also over a loss of power; return whether it does."""
        if self._is_open() and self._unwritten:
            self._write()
        if self._handle < 0 or self._unwritten:
            return False
        try:
            os.fsync(self._handle)
        except OSError as error:
            self._complain(error)
            return False
        return True

    def close(self) -> None:
        """Let the file go; what is appended later is reported, not written."""
        if self._is_open() and self._unwritten:
            self._write()
        missing = len(self._waiting) + self._unwritten.count(b"\n")
        if missing:
            report(f"{missing} points could not be written to {self.path}")
        self._closed = True
        if self._fence is not None:
            self._fence.close()
            os.close(self._handle)
        self._handle, self._fence = -1, None

    def _complain(self, error: OSError) -> None:
        if not self._complained:
            report(f"cannot write metrics to {self.path} ({error}); the training continues")
        self._complained = True


def _whole_lines(path: Path) -> list[bytes]:
    """Return the lines of a file that no one else writes now, and cut off half a line at its end."""
    data = path.read_bytes()
    whole = data.rfind(b"\n") + 1
    if whole < len(data):
        report(f"{path} ended in half a line, as after a crash: {len(data) - whole} bytes cut off")
        os.truncate(path, whole)
    return data[:whole].splitlines()


def read_unsent(folder: Path, limit: int) -> tuple[list[Point], int]:
    """Return up to ``limit`` points that MLflow has not acknowledged, and the offset after them.

    Where a store of objects keeps the journal, points that it does not hold yet are left out: an attempt that goes on
    elsewhere would log them once more.
    """
    points: list[Point] = []
    offset, kept = sent_bytes(folder), kept_bytes(folder)
    for line in _unsent_lines(folder, offset):
        if kept is not None and offset + len(line) > kept:
            break
        offset += len(line)
        point = Point.decode(line)
        if point:
            points.append(point)
        if len(points) == limit:
            break
    return points, offset


def logged_keys(folder: Path) -> frozenset[str] | None:
    """Return the keys of all points that a trial has logged; None where it has no journal, as a script without hooks.

    Raises:
        OSError: the journal cannot be read.
    """
    path = folder / POINTS
    if not path.exists():
        return None
    with path.open("rb") as lines:
        return frozenset(point.key for point in map(Point.decode, lines) if point is not None)


def count_unsent(folder: Path) -> int:
    """Return how many logged points MLflow has not acknowledged."""
    return sum(1 for _ in _unsent_lines(folder, sent_bytes(folder)))


def read_points(folder: Path, keys: Collection[str], offset: int = 0) -> tuple[list[Point], int]:
    """Return the points of ``keys`` that the trial has logged beyond ``offset``, and the offset after them.

    A journal that is shorter than that is another one: it is read from its beginning.
    """
    quoted = [_quoted(key).encode() for key in keys]
    path, points = folder / POINTS, list[Point]()
    size = path.stat().st_size if path.exists() else 0
    offset = offset if offset <= size else 0
    for line in _unsent_lines(folder, offset) if size > offset else ():
        offset += len(line)
        # Most lines may be of other keys, and decoding takes long where there are millions.
        point = Point.decode(line) if any(key in line for key in quoted) else None
        if point and point.key in keys:
            points.append(point)
    return points, offset


def points_of(folder: Path) -> Iterator[Point]:
    """Yield all points that the trial in ``folder`` has logged; its attempt may log on meanwhile."""
    yield from filter(None, map(Point.decode, _unsent_lines(folder, 0)))


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


def kept_bytes(folder: Path) -> int | None:
    """Return how many bytes of the journal a store of objects holds; None where there is no store."""
    try:
        return int((folder / KEPT).read_text())
    except (OSError, ValueError):
        return None


def mark_kept(folder: Path, offset: int | None) -> None:
    """Record that a store of objects holds the first ``offset`` bytes; None where no store is to be waited for."""
    if offset is None:
        with suppress(OSError):  # a disk that fails must not end a training
            (folder / KEPT).unlink(missing_ok=True)
    else:
        write_whole(folder / KEPT, str(offset))


def mark_sent(folder: Path, offset: int) -> None:
    """Record that MLflow has acknowledged the first ``offset`` bytes."""
    write_whole(folder / SENT, str(offset))
