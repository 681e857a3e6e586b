"""What is said of each of many trials, as one text: a JSON object of trial, or of a list of trials, to a word.

Trials are named by their short ids, such as ``vae.t007``. A list names those of one sweep: in ``vae.t000:t011,t020``
``:`` stands between the first and the last of trials that are numbered one after the other. What is read may have been
written by anybody, so it is bounded. Pure.
"""

import itertools
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from mlflow_hooks.foreign_json import parsed

MOST_TRIALS: Final = 20_000
"""Trials that a text names at most: as many as are read of a workflow."""
_MOST_PLAIN: Final = 32 * 1024
"""Characters up to which each trial is written by itself, as versions without lists read it."""
_RUN: Final = 3
"""Trials one after the other from which on the first and the last stand for all."""
_NUMBERED: Final = re.compile(r"(.*?)(\d{1,9})")


def write(said: Mapping[str, str]) -> str:
    """Return the text that ``read`` understands."""
    plain = json.dumps(dict(sorted(said.items())))
    return plain if len(plain) <= _MOST_PLAIN else json.dumps(_lists(said))


def read(text: str, most: int) -> dict[str, str]:
    """Return what ``text`` says of each trial; nothing where it makes no sense.

    Args:
        text: Anything may be amiss in it.
        most: Characters that it may have; of a longer one nothing is read.
    """
    try:
        said = parsed(text) if 0 < len(text) <= most else {}
    except ValueError:
        return {}
    words = said.items() if isinstance(said, dict) else ()
    named = ((trial, word) for key, word in words if isinstance(word, str) for trial in _trials(key))
    # Counted as they are named: one list may name the same trials again and again.
    return dict(itertools.islice(named, MOST_TRIALS))


def _lists(said: Mapping[str, str]) -> dict[str, str]:
    of_word: dict[tuple[str, str], list[str]] = {}
    alone = {}
    for trial, word in sorted(said.items()):
        sweep, dot, number = trial.partition(".")
        if dot:
            of_word.setdefault((sweep, word), []).append(number)
        else:
            alone[trial] = word
    return alone | {f"{sweep}.{','.join(_runs(numbers))}": word for (sweep, word), numbers in of_word.items()}


def _runs(numbers: Sequence[str]) -> Iterator[str]:
    """Yield numbers of trials in their order, with those that follow each other as one."""
    run: list[str] = []
    for number in (*numbers, None):
        if number is not None and run and number == _after(run[-1]):
            run.append(number)
            continue
        yield from [f"{run[0]}:{run[-1]}"] if len(run) >= _RUN else run
        run = [] if number is None else [number]


def _after(number: str) -> str | None:
    match = _NUMBERED.fullmatch(number)
    return None if match is None else f"{match[1]}{int(match[2]) + 1:0{len(match[2])}}"


def _trials(key: str) -> Iterator[str]:
    sweep, dot, numbers = key.partition(".")
    for part in numbers.split(",") if dot else ():
        first, colon, last = part.partition(":")
        yield from (f"{sweep}.{number}" for number in (_between(first, last) if colon else (part,)))
    if not dot:
        yield key


def _between(first: str, last: str) -> Iterator[str]:
    """Yield the numbers from the first to the last, none where that is no sequence."""
    begin, end = _NUMBERED.fullmatch(first), _NUMBERED.fullmatch(last)
    if begin is None or end is None or (begin[1], len(begin[2])) != (end[1], len(end[2])):
        return
    for number in range(int(begin[2]), int(end[2]) + 1):
        yield f"{begin[1]}{number:0{len(begin[2])}}"
