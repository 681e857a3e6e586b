"""Finds, among amounts in a row, the first that holds another amount, without a look at all of them. Pure.

A tree over the row knows of each part of it the most that there is of each resource. So a search costs the logarithm
of the row's length, as long as one resource decides; where several do, parts are looked at that have enough of each,
though no place has enough of all. ``looks`` counts them, for who must bound that.
"""

import math
from typing import Final

from controllers.policies.arbiter.demands import SLACK, Amount

_NONE: Final = -math.inf


class FirstFit:
    """A row of amounts.

    Args:
        length: how many places there are at most; a place that was never put holds nothing.
    """

    def __init__(self, length: int) -> None:
        self._size = 1 << max(0, length - 1).bit_length()
        self._cpu = [_NONE] * (2 * self._size)
        self._memory = [_NONE] * (2 * self._size)
        self._devices: dict[str, list[float]] = {}
        self.looks = 0
        """Parts of the row that were looked at."""

    def put(self, index: int, amount: Amount) -> None:
        """Have the place hold ``amount`` from now on."""
        self._raise(self._cpu, index, amount.cpu)
        self._raise(self._memory, index, amount.memory)
        for kind, _ in amount.devices.counts:
            self._devices.setdefault(kind, [0.0] * (2 * self._size))
        for kind, most in self._devices.items():
            self._raise(most, index, amount.devices.count(kind))

    def first(self, wanted: Amount, begin: int = 0) -> int | None:
        """Return the first place from ``begin`` on that holds ``wanted``, None where there is none."""
        bounds = [(self._cpu, wanted.cpu - SLACK)]
        if wanted.memory:
            bounds.append((self._memory, wanted.memory))
        for kind, number in wanted.devices.counts:
            if number > 0 and kind not in self._devices:
                return None
            if kind in self._devices:
                bounds.append((self._devices[kind], number))
        # Each part is named by its place in the tree, and the first place of the row that it holds, and how many.
        parts = [(1, 0, self._size)]
        while parts:
            part, first, length = parts.pop()
            self.looks += 1
            if first + length <= begin or any(most[part] < least for most, least in bounds):
                continue
            if length == 1:
                return first
            half = length // 2
            parts += ((2 * part + 1, first + half, half), (2 * part, first, half))
        return None

    def _raise(self, most: list[float], index: int, value: float) -> None:
        part = index + self._size
        if most[part] == value:
            return
        most[part] = value
        while part > 1:
            part //= 2
            greater = max(most[2 * part], most[2 * part + 1])
            if most[part] == greater:
                return
            most[part] = greater
