"""Every point that a trial logged, on its disk: the truth that MLflow gets a copy of.

``points.jsonl`` only grows, by whole writes of whole lines, so a killed process loses nothing it
logged. ``points.sent`` holds how many of its bytes MLflow has acknowledged.
"""

import errno
import os
import time
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Final

from mlflow_hooks import contract
from mlflow_hooks.bounds import MOST_OF_JOURNAL
from mlflow_hooks.fence import Fence
from mlflow_hooks.foreign_files import lines_beyond, small_text
from mlflow_hooks.no_links import open_file
from mlflow_hooks.points import Point, Times, quoted
from mlflow_hooks.repeats import Repeats
from mlflow_hooks.state_folder import report, write_whole

POINTS = "points.jsonl"
SENT = "points.sent"
KEPT = "points.kept"
"""How many bytes of the journal a store of objects holds, where there is one: MLflow gets no more than these."""
ONCE: Final = frozenset({contract.METRIC_OBJECTIVE_FIRST, contract.METRIC_STEPS_BACK, contract.METRIC_STEPS_TOTAL})
"""What a trial logs one time over all its attempts."""


class Journal:
    """The points of one trial, open for one attempt.

    ``high_water`` holds the highest step of each key that earlier attempts logged, ``latest`` the
    value that they logged last, ``stride`` how far the highest step is from the one before. Steps of a key grow, but
    for a script that counts from 0 again, as in a second phase: the value that was logged last is the one that counts.

    An attempt logs once more what came after its checkpoint: ``repeats`` tells what of that is new.

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
        self.repeats = Repeats(self.latest)
        self._times = Times()
        self._open()

    def _open(self) -> None:
        try:
            handle = open_file(self.path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
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
                self.repeats.expect(point, offset)
            offset += len(line) + 1
        known = ONCE & self.high_water.keys()
        fresh = [point for point in self.repeats.fresh(self._waiting) if point.key not in known]
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
        self.repeats.begin_at(offset)
        for line in lines:
            if (point := Point.decode(line)) is not None:
                self.repeats.expect(point, offset)
            offset += len(line)

    def repeated_beyond(self) -> int | None:
        """Return what ``repeat_from`` takes in an attempt that goes on from now; to be asked after ``sync``.

        That is the end of the file, unless this attempt is still repeating what earlier ones logged.
        """
        return self.repeats.begun_at if self.repeats.going_on else os.fstat(self._handle).st_size

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
            self.repeats.expect(point, None)

    def note(self, key: str, step: int, value: float) -> None:
        """Add one value of now, unless ``key`` was logged at that step or beyond."""
        self.take_over([Point(key, value, step, int(time.time() * 1000))])

    def _count(self, point: Point) -> None:
        before = self.high_water.get(point.key)
        if before is not None and point.step > before:
            self.stride[point.key] = point.step - before
        self.high_water[point.key] = point.step if before is None else max(before, point.step)
        self.latest[point.key] = point.value
        self._times.note(point)

    def _lines(self, points: Iterable[Point]) -> bytes:
        return b"".join(timed.encode() for point in points for timed in self._times.timed(point))

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

    Of much that holds no points, none may be returned, and an offset that is beyond it.

    Where a store of objects keeps the journal, points that it does not hold yet are left out: an attempt that goes on
    elsewhere would log them once more.
    """
    points: list[Point] = []
    offset, kept = sent_bytes(folder), kept_bytes(folder)
    for line in _unsent_lines(folder, offset, MOST_OF_JOURNAL):
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
    points = map(Point.decode, lines_beyond(path, 0, MOST_OF_JOURNAL))
    return frozenset(point.key for point in points if point is not None)


def count_unsent(folder: Path) -> int:
    """Return how many logged points MLflow has not acknowledged; of a journal without measure, those of a part of it.

    The caller wants to tell a person, who waits for it.
    """
    return sum(1 for _ in _unsent_lines(folder, sent_bytes(folder), MOST_OF_JOURNAL))


def read_points(
    folder: Path, keys: Collection[str], offset: int = 0, most: int | None = None
) -> tuple[list[Point], int]:
    """Return the points of ``keys`` that the trial has logged beyond ``offset``, and the offset after them.

    A journal that is shorter than that is another one: it is read from its beginning. After ``most`` bytes no other
    point is read.
    """
    wanted = [quoted(key).encode() for key in keys]
    points = list[Point]()
    offset = offset if offset <= journal_bytes(folder) else 0
    for line in _unsent_lines(folder, offset, most):
        offset += len(line)
        # Most lines may be of other keys, and decoding takes long where there are millions.
        point = Point.decode(line) if any(key in line for key in wanted) else None
        if point and point.key in keys:
            points.append(point)
    return points, offset


def journal_bytes(folder: Path) -> int:
    """Return how long a trial's journal is; 0 where it has none.

    Raises:
        OSError: the disk does not tell.
    """
    try:
        return (folder / POINTS).stat().st_size
    except FileNotFoundError:
        return 0


def points_of(folder: Path) -> Iterator[Point]:
    """Yield all points that the trial in ``folder`` has logged; its attempt may log on meanwhile."""
    yield from filter(None, map(Point.decode, _unsent_lines(folder, 0)))


def _unsent_lines(folder: Path, offset: int, most: int | None = None) -> Iterator[bytes]:
    path = folder / POINTS
    return lines_beyond(path, offset, most) if path.is_file() else iter(())


def sent_bytes(folder: Path) -> int:
    """Return how many bytes MLflow has acknowledged; 0 where the count is missing or cannot be right."""
    try:
        sent = int(small_text(folder / SENT))
        return sent if 0 <= sent <= (folder / POINTS).stat().st_size else 0
    except (OSError, ValueError):
        return 0


def kept_bytes(folder: Path) -> int | None:
    """Return how many bytes of the journal a store of objects holds; None where there is no store."""
    try:
        return int(small_text(folder / KEPT))
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
