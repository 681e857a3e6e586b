"""Metrics in what a script prints, as a person reads them: ``loss: 0.31``, ``epoch 3 loss 0.31``, tables. Pure."""

import posixpath
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from mlflow_hooks.bounds import MOST_VALUES
from mlflow_hooks.printed.numbers import number, unwrapped, whole
from mlflow_hooks.printed.pairs import Pair, pairs_of, told
from mlflow_hooks.printed.printed_tables import Tables

NOT_IN_NAMES: Final = re.compile(r"[^\w.\- :/]")
"""Characters that MLflow takes in no metric's name."""
ONLY_PRINTED: Final = frozenset("@^%#'")
"""Those of them that a printed name may hold all the same."""
_LONGEST_NAME: Final = 250
_LONGEST_LINE: Final = 4096
_LONGEST_TOLD: Final = 200
_LEVELS: Final = frozenset({"TRACE", "DEBUG", "INFO", "NOTICE", "WARN", "WARNING", "ERROR", "CRITICAL"})
_LEAD: Final = frozenset({"a", "an", "the", "and", "with", "at", "got", "has", "now", "new", "current"})
"""Words before a metric's name that make it no other metric: ``finished with loss 0.31``."""
_STEPS: Final = frozenset({"epoch", "ep", "step", "iter", "iteration", "round", "episode", "generation"})
_OF_STEPS: Final = frozenset({"train", "training", "val", "validation", "global", "current", "cur", "boosting"})
_NO_STEPS: Final = frozenset({"best", "last", "max", "total", "num", "every", "per", "until", "from"})
_COUNTERS: Final = frozenset(
    {
        *("epochs", "steps", "iters", "iterations", "batch", "batches", "seed", "time", "elapsed", "eta", "took"),
        *("total", "rank", "port", "pid", "line", "version", "device", "lr", "progress", "timesteps", "episodes"),
        *("rounds", "remaining", "data", "dur", "dataloader", "workers", "gpu", "fps"),
    }
)
_RATES: Final = frozenset({"s", "sec", "second", "it"})
_NO_NAME_ENDS: Final = frozenset({"in", "on", "to", "for", "from", "after", "at", "of", "with", "by", "than", "is"})
_BARE_WORDS: Final = 3
_SIGNED_WORDS: Final = 8
_LOOKS: Final = str.maketrans("│┃║┆┇┊┋\u2212\u2019", "|||||||-'")
"""Signs that look like others: bars of boxes, the minus and the apostrophe of a typesetter."""
_OF_HOW_MANY: Final = re.compile(r"[ /].*")
_SPACES: Final = re.compile(r"\s{3,}")
_ONE_IN_BRACKETS: Final = re.compile(r"([=:] ?|[^\W\d] )\[ ?([+-]?(?:\.?\d|nan|inf)[^\s,()\[\]]*) ?\]", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class NamedLine:
    """What a line tells: metrics, the step where it names one, and values of the wanted metric that are no numbers."""

    values: tuple[tuple[str, float], ...] = ()
    step: int | None = None
    odd: tuple[str, ...] = ()


NOTHING: Final = NamedLine()


class NamedReader:
    """Reads the lines of one stream, one after the other: a table's rows follow its head.

    Args:
        wanted: a metric that somebody has named: it counts wherever its name stands before a number.
        alone: whether no other metric is read.
    """

    def __init__(self, wanted: str = "", *, alone: bool = False) -> None:
        self._wanted = _known(wanted)
        self._alone = alone
        # The longest part that is the same as printed: of `Acc_1` that may be `acc`.
        self._sign = max(re.findall(r"[^\W_]+", self._wanted), key=len, default="")
        self._tables = Tables(_STEPS)

    def read(self, line: str) -> NamedLine:
        """Return what a line tells; no counter such as ``epoch`` is a metric."""
        if self._alone and not self._tables.begun and self._sign not in line.casefold():
            return NOTHING
        line = line[:_LONGEST_LINE].translate(_LOOKS)
        row = self._tables.row(line)
        if row is not None:
            return self._line([(name, text) for name, text in row.cells if not self._is_counter(name)], row.step)
        pairs = pairs_of(_ONE_IN_BRACKETS.sub(r"\1\2", unwrapped(_SPACES.sub("  ", line))))
        counts = (_OF_HOW_MANY.sub("", pair.text).lstrip("#") for pair in pairs if _tells_step(pair.words))
        step = next((step for step in map(whole, counts) if step is not None), _first_number(line))
        return self._line(self._metrics(pairs), step)

    def _line(self, found: list[tuple[str, str]], step: int | None) -> NamedLine:
        values: list[tuple[str, float]] = []
        odd: list[str] = []
        for name, text in found[:MOST_VALUES]:
            value, wanted = number(text), self._is_wanted(name)
            if value is None and wanted:
                odd.append(text)
            elif value is not None and (wanted or not self._alone):
                values.append((name, value))
        return NamedLine(tuple(values), step, tuple(odd)) if values or odd or step is not None else NOTHING

    def _metrics(self, pairs: list[Pair]) -> list[tuple[str, str]]:
        """Return the names and values that are metrics, in the order of the line."""
        meant = {id(pair) for pair in told(pairs, _BARE_WORDS)}
        found: list[tuple[str, str]] = []
        for pair in (pair for pair in pairs if pair.joint != "open"):
            words = _without_level(pair.words)
            wanted = (name for name in map(" ".join, (words, _after_lead(words))) if self._is_wanted(name))
            if name := next(wanted, None):
                found.append((name, pair.text))
            elif id(pair) in meant and _is_offered(pair, words) and not self._is_counter(" ".join(words)):
                found.append((" ".join(words), pair.text))
        return found

    def _is_wanted(self, name: str) -> bool:
        return bool(self._wanted) and _known(name) == self._wanted

    def _is_counter(self, name: str) -> bool:
        if self._is_wanted(name):
            return False
        rate = "/" in name and not _RATES.isdisjoint(name.casefold().split("/")[1:])
        words = name.casefold().split()
        return rate or words[-1] in _STEPS or name.casefold() in _COUNTERS or _tells_step(words)


def no_number(name: str, text: str, line: str) -> str:
    """Return in words that what stands where a metric has its value is no number."""
    return f"{name}={text[:_LONGEST_TOLD]!r} is no number and counts as none, in the line {line[:_LONGEST_TOLD]!r}"


def kept_name(name: str) -> str:
    """Return the nearest name that MLflow takes: ``Acc_1`` for ``Acc@1``."""
    kept = NOT_IN_NAMES.sub("_", name[:_LONGEST_NAME])
    return kept if posixpath.normpath(kept) == kept else kept.replace("/", "_")


def printed_metrics(*lines: str) -> Iterator[tuple[str, float]]:
    """Yield the names and values of the metrics that lines of one program tell of; no counters such as ``epoch``."""
    reader = NamedReader()
    return (found for line in lines for found in reader.read(line).values)


def _known(name: str) -> str:
    return kept_name(name).casefold() if name else ""


def _without_level(words: list[str]) -> list[str]:
    first = next((at for at, word in enumerate(words) if word not in _LEVELS), len(words) - 1)
    return words[first:]


def _after_lead(words: list[str]) -> list[str]:
    leads = [at + 1 for at, word in enumerate(words[:-1]) if word.casefold() in _LEAD]
    return words[leads[-1] if leads else 0 :]


def _is_offered(pair: Pair, words: list[str]) -> bool:
    if pair.joint == "sign":
        return len(words) <= _SIGNED_WORDS
    return words[-1].casefold() not in _NO_NAME_ENDS


def _tells_step(words: list[str]) -> bool:
    """Return whether a number after ``words`` is the step: ``Train Epoch``, ``global_step``, ``Starting epoch``."""
    parts = words[-1].casefold().split("_")
    said = {word.casefold() for word in words}
    return parts[-1] in _STEPS and _OF_STEPS.issuperset(parts[:-1]) and _NO_STEPS.isdisjoint(said)


_FIRST: Final = re.compile(r"(?:\[(\d{1,18})\]|(\d{1,18}):)\s+(?=[^\W\d])")
"""``[7]`` or ``7:`` before a name at the beginning of a line, as boosting libraries print their rounds."""


def _first_number(line: str) -> int | None:
    found = _FIRST.match(line)
    return int(found[1] or found[2]) if found else None
