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

from mlflow_hooks.bounds import LONGEST_LINE, MOST_VALUES
from mlflow_hooks.foreign_json import parsed
from mlflow_hooks.printed.form import MOST_NAMES, NOT_THEIRS, STEPS, PrintedForm, compile_pattern
from mlflow_hooks.printed.lines import ENDS, clean
from mlflow_hooks.printed.named import NamedReader, kept_name, no_number
from mlflow_hooks.printed.numbers import number, whole, whole_of

BURST: Final = 1000.0
"""Lines with values that are read at once, however fast they come."""
PER_SECOND: Final = 100.0
"""Such lines that are read a second in the long run: of a program that prints more, only the newest count. MLflow takes
0.7 ms of CPU for each value."""
_OTHER_LINE: Final = 0.02
"""What a line without values costs, in such lines, where each has to be looked at by itself."""
_IN_PRICE: Final = 10
"""Values of a line that cost no more than the line; so many more cost as much as another line."""
_HELD: Final = 2**14
"""Bytes of lines that wait to be read where they come too fast; older ones are left out."""
_NO_JSON: Final = re.compile(rb"(?<=[:\s,\[])[+-]?(?:nan|inf(?:inity)?)(?=[\s,}\]])", re.IGNORECASE)
"""NaN and infinities as C, R and Go print them."""
_LONGEST_TOLD: Final = 200

Raw = tuple[int, Mapping[str, object], int | None]
"""Where the line of a finding begins, what it tells, by name, and the step where it has no name."""


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
        notes: what a person is to know of the lines, each once, the newest last.
    """

    form: PrintedForm
    objective: str
    clock: Callable[[], float]
    dropped: int = 0
    odd_step: str = ""
    notes: list[str] = field(default_factory=list)
    _patterns: list[Any] = field(init=False)
    _rest: dict[int, bytes] = field(init=False, default_factory=dict)
    _held: bytes = field(init=False, default=b"")
    _names: set[str] = field(init=False, default_factory=set)
    _noted: set[str] = field(init=False, default_factory=set)
    _by_name: NamedReader = field(init=False)
    _step: int | None = field(init=False, default=None)
    _room: float = field(init=False, default=BURST)
    _at: float = field(init=False, default=-math.inf)

    def __post_init__(self) -> None:
        self._patterns = [compile_pattern(pattern) for pattern in self.form.patterns]
        self._by_name = NamedReader(self.objective)

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
        lines, now = clean(lines), self.clock()
        self._room = min(BURST, self._room + max(0.0, now - self._at) * PER_SECOND)
        self._at, self._held, line, in_line = now, b"", -1, 0
        for begins, told, step in self._found(lines):
            if begins != line:
                if self._room < 1:
                    self._hold(lines[begins:])
                    return
                line = begins
                self._room -= 1
                in_line = 0
            in_line += len(told)
            self._room -= len(told) / _IN_PRICE if in_line > _IN_PRICE else 0
            values = self._of_theirs(told, step, lines, begins)
            if values is not None:
                yield values

    def _hold(self, lines: bytes) -> None:
        self._held = lines[-_HELD:]
        if len(lines) > _HELD:
            first = ENDS.search(self._held)
            self._held = self._held[first.end() :] if first else b""
        self.dropped += len(lines) - len(self._held)

    def _of_theirs(
        self, told: Mapping[str, object], named_step: int | None, lines: bytes, begins: int
    ) -> PrintedValues | None:
        step_name = self.form.step or next((name for name in STEPS if name in told and self._patterns), "")
        said = told.get(step_name)
        step = named_step if said is None else _step(said)
        if said is not None and step is None:
            words = said.decode(errors="replace") if isinstance(said, bytes) else str(said)
            self.odd_step = self.odd_step or words[:100]
            return None
        given = {name: value for name, value in told.items() if name != step_name and value is not None}
        if not given:
            self._step = step if step is not None else self._step  # a line of its own tells it for those that follow
            return None
        values = {name: _number(value) for name, value in given.items()}
        for name in [name for name, value in values.items() if isinstance(value, str)]:
            line = ENDS.split(lines[begins : begins + _LONGEST_TOLD], maxsplit=1)[0].decode(errors="replace")
            self._note(name, no_number(name, str(values.pop(name)), line))
        for name in values.keys() - self._names:
            if len(self._names) >= MOST_NAMES or name.startswith(NOT_THEIRS):
                del values[name]
            else:
                self._names.add(name)
        return PrintedValues(values, self._step if step is None else step) if values else None

    def _note(self, name: str, note: str) -> None:
        """Note something of a metric, once; of no more names than there may be metrics."""
        if name not in self._noted and len(self._noted) < MOST_NAMES:
            self._noted.add(name)
            self.notes.append(note)

    def _found(self, lines: bytes) -> Iterator[Raw]:
        if self._patterns:
            matches = [_matches(pattern, lines) for pattern in self._patterns]
            begins = ends = taken = 0
            for at, groups in heapq.merge(*matches, key=itemgetter(0)):
                if at >= ends:
                    begins = max(lines.rfind(b"\n", 0, at), lines.rfind(b"\r", 0, at)) + 1
                    ends, taken = _end_of_line(lines, at), 0
                taken += 1
                if taken <= MOST_VALUES:
                    yield begins, groups, None
            return
        keys = [key.encode() for key in self.form.keys]
        if keys and not any(key in lines for key in keys):
            return
        begins = 0
        for line in ENDS.split(lines):
            told, step = (self._in_json(line), None) if keys else self._named(line) if line else ({}, None)
            if told:
                yield begins, told, step
            elif line and not keys:
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

    def _named(self, line: bytes) -> tuple[Mapping[str, object], int | None]:
        read = self._by_name.read(line.decode(errors="replace"))
        told: dict[str, object] = {}
        for name, value in (*((self.objective, text) for text in read.odd), *read.values):
            kept = kept_name(name)
            kept = self.objective if kept.casefold() == self.objective.casefold() else kept
            if kept_name(name) != name:
                self._note(name, f"MLflow takes no metric of the name {name!r}: it is kept as {kept!r}")
            told[kept] = value
        return told, read.step


def _matches(pattern: Any, lines: bytes) -> Iterator[tuple[int, Mapping[str, object]]]:  # noqa: ANN401 - of RE2
    """Yield where each match begins and its groups, of each line no more than values of a line are read."""
    at = ends = taken = 0
    while (match := pattern.search(lines, at)) is not None:
        begins = match.start()
        if begins >= ends:
            ends, taken = _end_of_line(lines, begins), 0
        taken += 1
        if taken <= MOST_VALUES:
            yield begins, {name: match.group(number) for name, number in pattern.groupindex.items()}
        at = max(match.end(), begins + 1) if taken < MOST_VALUES else ends
        if at > len(lines):
            return


def _end_of_line(lines: bytes, at: int) -> int:
    """Return where the line after that at ``at`` begins."""
    end = ENDS.search(lines, at)
    return end.end() if end else len(lines) + 1


def _object(text: bytes) -> object:
    """Return what JSON tells, also with numbers as C prints them, such as ``-nan``; None where it is none."""
    with suppress(ValueError):
        return parsed(text)
    with suppress(ValueError):
        return parsed(_NO_JSON.sub(lambda word: json.dumps(number(word[0].decode())).encode(), text))
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
    """Return the number that a text tells, the text itself where it tells none; anything else as it is."""
    text = value.decode(errors="replace") if isinstance(value, bytes) else value
    if not isinstance(text, str):
        return text
    found = number(text)
    return text[:_LONGEST_TOLD] if found is None else found


def _step(value: object) -> int | None:
    if isinstance(value, bytes):
        value = value.decode(errors="replace")
    return whole(value.strip()) if isinstance(value, str) else whole_of(value)
