"""What an attempt logs once more, as it repeats what came after its checkpoint, and what of that is new. Pure."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from mlflow_hooks.points import OURS, Point


@dataclass(slots=True)
class _Rise:
    """Steps of a key that grew: the ``last`` of them, and how many ``times`` it was logged at that.

    ``start`` is how many bytes the journal had before it, None where another trial logged it.
    """

    last: int
    times: int
    start: int | None


class Repeats:
    """Tells what is new of the points that an attempt logs.

    A step that an earlier attempt went beyond is not. In the last step of that attempt, the first values are not, as
    many as it logged: it may have been killed in the middle, and what comes after these is new. Where the steps of a
    key went back, as in a second phase, each rise of them is repeated by itself.

    Args:
        latest: the value that earlier attempts logged last, by key.
    """

    def __init__(self, latest: Mapping[str, float]) -> None:
        self._latest = latest
        self._from: int | None = None
        self._rises: dict[str, list[_Rise]] = {}
        self._held: dict[str, Point] = {}

    def begin_at(self, offset: int) -> None:
        """Expect what stands beyond ``offset`` bytes of the journal, and no more: the checkpoint was made there."""
        self._from = offset
        self._rises.clear()

    def expect(self, point: Point, offset: int | None) -> None:
        """Expect a point of an earlier attempt, which stands at ``offset``, once more; None for one of another trial.

        As long as nobody knows where the checkpoint was made, only the newest rise of a key is expected.
        """
        if self._from is not None and offset is not None and offset < self._from:
            return
        rises = self._rises.setdefault(point.key, [])
        if not rises or point.step < rises[-1].last:
            if self._from is None:
                rises.clear()
            rises.append(_Rise(point.step, 1, offset))
        elif point.step == rises[-1].last:
            rises[-1].times += 1
        else:
            rises[-1].last, rises[-1].times = point.step, 1

    @property
    def going_on(self) -> bool:
        """Whether something that the script logged is still to be repeated."""
        return bool(self._starts)

    @property
    def begun_at(self) -> int | None:
        """The offset of the first point that is still to be repeated; None where that is not known."""
        known = [start for start in self._starts if start is not None]
        return min(known) if known and len(known) == len(self._starts) else None

    @property
    def _starts(self) -> list[int | None]:
        return [rises[0].start for key, rises in self._rises.items() if rises and not key.startswith(OURS)]

    def fresh(self, points: Iterable[Point]) -> list[Point]:
        """Return what is new of ``points``, which the attempt logs, and what has become so with them."""
        return [new for point in points for new in self._new_with(point)]

    def finished(self) -> list[Point]:
        """Return what is new as a repeated step is finished: its last values, where there were to be more of them."""
        return [point for key in list(self._held) if (point := self._let_go(key)) is not None]

    def _new_with(self, point: Point) -> list[Point]:
        held = self._held.get(point.key)
        became = self._let_go(point.key) if held is not None and held.step != point.step else None
        before = [] if became is None else [became]
        rises = self._rises.get(point.key)
        if not rises or point.step > rises[0].last:
            self._rises.pop(point.key, None)
            return [*before, point]
        if point.step == rises[0].last:
            rises[0].times -= 1
            self._held[point.key] = point
            if not rises[0].times:
                self._let_go(point.key)
        return before

    def _let_go(self, key: str) -> Point | None:
        """Expect no more of the step that is repeated; return its last value, if it is not the one that is there."""
        rise, held = self._rises[key].pop(0), self._held.pop(key)
        return held if rise.times and held.value != self._latest[key] else None
