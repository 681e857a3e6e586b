"""Hyperparameters as they are written on a command line: ``lr=log:1e-4:1e-1 hidden=32,64,128 epochs=3``. Pure."""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from hera_specon.errors import SpaceError
from hera_specon.settings import check_hyperparameter, is_finite, is_whole
from hera_specon.space import (
    Choice,
    Distribution,
    Value,
    check_space,
    choice,
    integer,
    log_uniform,
    uniform,
    value_text,
)

ASSIGNMENT: Final = re.compile(r"(?P<name>[A-Za-z_][\w.-]*)=(?P<values>.*)", re.DOTALL)
"""A word that sets a hyperparameter. A path has a slash or begins with a dot where its name has an equals sign."""
FORMS: Final = (
    "lr=log:1e-4:1e-1 for a log-uniform range, dropout=0:0.5 for a uniform one, hidden=32:256:32 for one with steps, "
    "act=relu,tanh for a choice, epochs=3 for one value"
)
_WHOLE: Final = re.compile(r"[+-]?(0|[1-9]\d*)", re.ASCII)
_NUMBER: Final = re.compile(r"[+-]?((0|[1-9]\d*)(\.\d*)?|\.\d+)([eE][+-]?\d+)?", re.ASCII)
_LONGEST_NUMBER: Final = 400
"""The greatest number that a program can hold has 309 digits."""
_TRUTH: Final = {"true": True, "True": True, "false": False, "False": False}
_TAGGED: Final = re.compile(r"tag\(\s*log\s*,\s*interval\((?P<inside>[^()]*)\)\s*\)")
_CALLED: Final = re.compile(r"(?P<call>[a-z]*)(?:\[(?P<square>[^\[\]]*)\]|\((?P<round>[^()]*)\))")
_LOG: Final = "log"
_BOUNDS: Final = 2
_BOUNDS_AND_STEP: Final = 3


@dataclass(frozen=True)
class Assignments:
    """What the assignments of a command line say.

    ``space`` has the hyperparameters that take several values, ``fixed`` those that take one. ``texts`` tells how
    values were written that ``value_text`` writes differently, as ``1.10``: a program gets what was written.
    """

    space: Mapping[str, Distribution] = field(default_factory=dict)
    fixed: Mapping[str, Value] = field(default_factory=dict)
    texts: Mapping[str, Mapping[Value, str]] = field(default_factory=dict)

    @property
    def truths(self) -> tuple[str, ...]:
        """The hyperparameters that are true or false."""
        options = {name: values.options for name, values in self.space.items() if isinstance(values, Choice)}
        options |= {name: (value,) for name, value in self.fixed.items()}
        return tuple(name for name, values in options.items() if all(isinstance(value, bool) for value in values))


def read_assignments(words: Sequence[str]) -> Assignments:
    """Return what ``words`` assign, each as ``NAME=VALUES``.

    ``VALUES`` is ``a,b,c`` for a choice, ``LOW:HIGH`` for a uniform range, ``LOW:HIGH:STEP`` for one with steps,
    ``log:LOW:HIGH`` for a log-uniform one, or a single value. A range between whole numbers has whole numbers only.
    The forms of Guild AI and Hydra are understood too: ``[a,b]``, ``choice(a,b)``, ``range(1,10)``,
    ``interval(0,0.5)``, ``tag(log,interval(1e-4,1e-1))``, ``uniform[0:0.5]``, ``loguniform[1e-4:1e-1]``.

    Raises:
        SpaceError: A word is no assignment, sets a name that is none or was set before, or its values make no sense.
    """
    space: dict[str, Distribution] = {}
    fixed: dict[str, Value] = {}
    texts: dict[str, Mapping[Value, str]] = {}
    for word in words:
        assignment = ASSIGNMENT.fullmatch(word)
        if assignment is None:
            problem = f"{word!r} is not NAME=VALUES; write {FORMS}"
            raise SpaceError(problem)
        name = check_hyperparameter(assignment["name"])
        if name in space or name in fixed:
            problem = f"{name!r} is set twice"
            raise SpaceError(problem)
        try:
            values = _values(assignment["values"].strip())
        except SpaceError as error:
            problem = f"{word!r}: {error}"
            raise SpaceError(problem) from error
        if isinstance(values, Distribution):
            space[name] = values
        elif isinstance(values, _Listed):
            texts |= {name: values.texts} if values.texts else {}
            if values.fixed:
                (fixed[name],) = values.values.options
            else:
                space[name] = values.values
    if space:
        check_space({**space, **{name: choice(value) for name, value in fixed.items()}})
    return Assignments(space, fixed, texts)


def value_of(text: str) -> Value:
    """Return the whole number, number, truth value or text that a person means by ``text``.

    What no program can hold as a number is text.
    """
    if text in _TRUTH:
        return _TRUTH[text]
    if len(text) > _LONGEST_NUMBER or not _NUMBER.fullmatch(text):
        return text
    number = int(text) if _WHOLE.fullmatch(text) else float(text)
    return number if is_finite(number) else text


@dataclass(frozen=True)
class _Listed:
    """Values that were written one by one: what they mean, and how those were written that are written differently."""

    values: Choice
    texts: Mapping[Value, str]
    fixed: bool = False


def _listed(parts: Sequence[str], *, fixed: bool = False) -> _Listed:
    """Return the values that ``parts`` write.

    Where two are equal, as 3.1 and 3.10, all are texts: they differ for the program. Beside a text, a number that is
    written differently is a text as well.

    Raises:
        SpaceError: A hyperparameter may not have one of them, or one comes twice.
    """
    values = [value_of(part) for part in parts]
    if len(set(values)) < len(values):
        values = list(parts)
    elif any(isinstance(value, str) for value in values):
        values = [
            value if isinstance(value, bool) or value_text(value) == part else part
            for value, part in zip(values, parts, strict=True)
        ]
    texts = {value: part for value, part in zip(values, parts, strict=True) if value_text(value) != part}
    return _Listed(choice(*values), texts, fixed)


def _values(text: str) -> Distribution | _Listed:
    if tagged := _TAGGED.fullmatch(text):
        return _log(tagged["inside"], _parts(tagged["inside"], ","))
    if called := _CALLED.fullmatch(text):
        inside = called["square"] if called["round"] is None else called["round"]
        return _call(called["call"], inside)
    if "," in text:
        return _listed(_parts(text, ","))
    return _range(text) if ":" in text else _listed(_parts(text, ","), fixed=True)


def _call(name: str, inside: str) -> Distribution | _Listed:
    """Return what ``name(inside)`` or ``name[inside]`` means."""
    if name in {"", "choice"} and ":" not in inside:
        return _listed(_parts(inside, ","))
    separator = ":" if ":" in inside else ","
    parts = _parts(inside, separator)
    calls: Mapping[str, Callable[[], Distribution | _Listed]] = {
        "": lambda: _range(inside),
        "interval": lambda: uniform(*_two_numbers(inside, parts)),
        "uniform": lambda: uniform(*_two_numbers(inside, parts)),
        "loguniform": lambda: _log(inside, parts),
        "range": lambda: _python_range(inside, parts),
    }
    if name not in calls:
        problem = f"there is no {name}(); write {FORMS}"
        raise SpaceError(problem)
    return calls[name]()


def _range(text: str) -> Distribution | _Listed:
    """Return the range that colons make; text in which they are no range, such as an address, is a value."""
    head, *rest = parts = text.split(":")
    if head == _LOG:
        return _log(text, rest)
    if not _NUMBER.fullmatch(head):
        return _listed([text], fixed=True)
    numbers = _numbers(text, parts)
    if len(numbers) not in {_BOUNDS, _BOUNDS_AND_STEP}:
        problem = f"{text!r} is no LOW:HIGH or LOW:HIGH:STEP"
        raise SpaceError(problem)
    whole = [number for number in numbers if is_whole(number)]
    if len(whole) == len(numbers):
        low, high, step = (*whole, 1)[:_BOUNDS_AND_STEP]
        return integer(low, high, step=step)
    return uniform(*numbers[:_BOUNDS], step=numbers[_BOUNDS] if len(numbers) > _BOUNDS else None)


def _log(text: str, parts: Sequence[str]) -> Distribution:
    low, high = _two_numbers(text, parts)
    return integer(low, high, log=True) if is_whole(low) and is_whole(high) else log_uniform(low, high)


def _python_range(text: str, parts: Sequence[str]) -> Distribution:
    """Return the whole numbers of ``range(start, stop)``, which leaves ``stop`` out, as Python and Hydra do."""
    numbers = [number for number in _numbers(text, parts) if is_whole(number)]
    if len(numbers) != len(parts) or len(numbers) not in {_BOUNDS, _BOUNDS_AND_STEP} or not all(numbers[_BOUNDS:]):
        problem = "range() takes whole numbers, as in range(1,10); write LOW:HIGH:STEP for others"
        raise SpaceError(problem)
    values = range(*numbers)
    return choice(*values) if len(values) <= 1 else integer(values[0], values[-1], step=values.step)


def _two_numbers(text: str, parts: Sequence[str]) -> tuple[float, float]:
    numbers = _numbers(text, parts)
    if len(numbers) != _BOUNDS:
        problem = f"{text!r} is no LOW and HIGH"
        raise SpaceError(problem)
    return numbers[0], numbers[1]


def _numbers(text: str, parts: Sequence[str]) -> list[int | float]:
    values = [value_of(part.strip()) for part in parts]
    numbers = [value for value in values if isinstance(value, int | float) and not isinstance(value, bool)]
    if len(numbers) != len(values):
        wrong = next(part for part, value in zip(parts, values, strict=True) if isinstance(value, str | bool))
        problem = f"{wrong!r} in {text!r} is no number"
        raise SpaceError(problem)
    return numbers


def _parts(text: str, separator: str) -> list[str]:
    parts = [part.strip() for part in text.split(separator)]
    if not all(parts):
        problem = f"a value is missing in {text!r}; write {FORMS}"
        raise SpaceError(problem)
    return parts
