"""Values in what a program prints, as it comes: in pieces, of any length, at any rate. Pure but for its clock."""

import heapq
import json
import math
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from operator import itemgetter
from typing import Any, Final

from mlflow_hooks.printed.form import MOST_NAMES, NOT_THEIRS, STEPS, PrintedForm, compile_pattern
from mlflow_hooks.printed.named import printed_metrics

LONGEST_LINE: Final = 2**16
"""Bytes of a line that are read: the last ones."""
BURST: Final = 1000.0
"""Lines with values that are read at once, however fast they come."""
PER_SECOND: Final = 100.0
"""Such lines that are read a second in the long run: of a program that prints more, only the newest count. MLflow takes
0.7 ms of CPU for each value."""
_OTHER_LINE: Final = 0.02
"""What a line without values costs, in such lines, where each has to be looked at by itself."""
_HELD: Final = 2**14
"""Bytes of lines that wait to be read where they come too fast; older ones are left out."""
_ENDS: Final = re.compile(rb"[\r\n]")
_OF_C: Final = re.compile(rb"(?<=[:\s,\[])(-?)(?:nan|inf)(?=[\s,}\]])")
_AFTER_NUMBERS: Final = ".,;:"
"""What a sentence may have after a number, and a pattern such as ``[-+0-9.e]+`` takes with it."""
_MOST_STEP: Final = 2**63

Raw = tuple[int, Mapping[str, object]]
"""Where the line of a finding begins, and what it tells, by name."""


@dataclass(frozen=True, slots=True)
class PrintedValues:
    """Metrics of one line: ``step`` is None where nothing tells it; a value that is no number is left as it stands."""

    values: Mapping[str, object]
    step: int | None


@dataclass(slots=True)
class PrintedReader:
    """Finds the values of one program.

    Args:
        form: what its lines look like.
        objective: the metric whose name counts in any case where ``form`` names none.
        clock: gives seconds.

    Attributes:
        dropped: bytes of lines that came too fast, and were left out.
        odd_step: a step that is no whole number, and whose line was left out; empty without one.
    """

    form: PrintedForm
    objective: str
    clock: Callable[[], float]
    dropped: int = 0
    odd_step: str = ""
    _patterns: list[Any] = field(init=False)
    _rest: dict[int, bytes] = field(init=False, default_factory=dict)
    _held: bytes = field(init=False, default=b"")
    _names: set[str] = field(init=False, default_factory=set)
    _step: int | None = field(init=False, default=None)
    _room: float = field(init=False, default=BURST)
    _at: float = field(init=False, default=-math.inf)

    def __post_init__(self) -> None:
        self._patterns = [compile_pattern(pattern) for pattern in self.form.patterns]

    def read(self, stream: int, data: bytes) -> list[PrintedValues]:
        """Return the values of the lines that ``data`` ends; what a progress bar overwrites is a line, too.

        Args:
            stream: number of the stream that it came by. Half a line waits for its other half.
            data: what was printed; may be empty.
        """
        printed = self._rest.get(stream, b"") + data
        end = max(printed.rfind(b"\n"), printed.rfind(b"\r")) + 1
        self._rest[stream] = printed[end:][-LONGEST_LINE:]
        lines = self._held + printed[:end]
        return list(self._taken(lines)) if lines else []

    def last(self) -> list[PrintedValues]:
        """Return the values of what has no end yet, and of what waits: nothing more will come."""
        self._room = max(self._room, BURST)
        lines = b"\n".join([self._held, *self._rest.values()])
        self._rest, self._held = {}, b""
        return list(self._taken(lines))

    def _taken(self, lines: bytes) -> Iterator[PrintedValues]:
        now = self.clock()
        self._room = min(BURST, self._room + max(0.0, now - self._at) * PER_SECOND)
        self._at, self._held, line = now, b"", -1
        for begins, told in self._found(lines):
            if begins != line:
                if self._room < 1:
                    self._hold(lines[begins:])
                    return
                line = begins
                self._room -= 1
            values = self._of_theirs(told)
            if values is not None:
                yield values

    def _hold(self, lines: bytes) -> None:
        self._held = lines[-_HELD:]
        if len(lines) > _HELD:
            first = _ENDS.search(self._held)
            self._held = self._held[first.end() :] if first else b""
        self.dropped += len(lines) - len(self._held)

    def _of_theirs(self, told: Mapping[str, object]) -> PrintedValues | None:
        step_name = self.form.step or next((name for name in STEPS if name in told and self._patterns), "")
        said = told.get(step_name)
        step = None if said is None else _whole(said)
        if said is not None and step is None:
            words = said.decode(errors="replace") if isinstance(said, bytes) else str(said)
            self.odd_step = self.odd_step or words[:100]
            return None
        values = {name: _number(value) for name, value in told.items() if name != step_name and value is not None}
        for name in values.keys() - self._names:
            if len(self._names) >= MOST_NAMES or name.startswith(NOT_THEIRS):
                del values[name]
            else:
                self._names.add(name)
        if not values:
            self._step = step if step is not None else self._step  # a line of its own tells it for those that follow
            return None
        return PrintedValues(values, self._step if step is None else step)

    def _found(self, lines: bytes) -> Iterator[Raw]:
        if self._patterns:
            matches = [_matches(pattern, lines) for pattern in self._patterns]
            for at, groups in heapq.merge(*matches, key=itemgetter(0)):
                yield max(lines.rfind(b"\n", 0, at), lines.rfind(b"\r", 0, at)) + 1, groups
            return
        keys = [key.encode() for key in self.form.keys]
        if keys and not any(key in lines for key in keys):
            return
        begins = 0
        for line in _ENDS.split(lines):
            told = self._in_json(line) if keys else self._named(line)
            if told:
                yield begins, told
            elif not keys:
                self._room -= _OTHER_LINE
            begins += len(line) + 1

    def _in_json(self, line: bytes) -> Mapping[str, object]:
        """Return the wanted members of a line that holds a JSON object, whatever stands before and after it."""
        begins, ends = line.find(b"{"), line.rfind(b"}") + 1
        if not 0 <= begins < ends or ends - begins > LONGEST_LINE:
            return {}
        told = _object(line[begins:ends])
        wanted = [*self.form.keys, *([self.form.step] if self.form.step else [])]
        return {name: value for name in wanted if (value := _member(told, name)) is not None}

    def _named(self, line: bytes) -> Mapping[str, object]:
        wanted = self.objective.casefold()
        found = printed_metrics(line.decode(errors="replace"))
        return {self.objective if name.casefold() == wanted else name: value for name, value in found}


def _matches(pattern: Any, lines: bytes) -> Iterator[tuple[int, Mapping[str, object]]]:  # noqa: ANN401 - of RE2
    for match in pattern.finditer(lines):
        yield match.start(), {name: match.group(number) for name, number in pattern.groupindex.items()}


def _object(text: bytes) -> object:
    """Return what JSON tells, also with numbers as C prints them, such as ``-nan``; None where it is none."""
    with suppress(ValueError, RecursionError):
        return json.loads(text)
    with suppress(ValueError, RecursionError):
        return json.loads(_OF_C.sub(lambda word: b"NaN" if b"nan" in word[0] else word[1] + b"Infinity", text))
    return None


def _member(told: object, name: str) -> object:
    """Return the member ``name`` of an object; with dots in it also one of the objects within."""
    while isinstance(told, dict):
        if name in told:
            return told[name]
        outer, _, name = name.partition(".")
        told = told.get(outer)
    return None


def _number(value: object) -> object:
    """Return the number that ``value`` is or tells; what is none is returned as it is."""
    if isinstance(value, bytes):
        value = value.decode(errors="replace")
    if not isinstance(value, str) or "_" in value:
        return value
    try:
        return float(value.strip().rstrip(_AFTER_NUMBERS))
    except ValueError:
        return value


def _whole(value: object) -> int | None:
    """Return the step that ``value`` tells, None where it is no whole number that MLflow can keep."""
    number = _number(value)
    if not isinstance(number, int | float) or isinstance(number, bool):
        return None
    return int(number) if 0 <= number < _MOST_STEP and number == int(number) else None
