"""Names and the values that follow them in one line, with what stands around each. Pure, and linear in the line."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from mlflow_hooks.printed.numbers import number

_TOKEN: Final = re.compile(
    r"""
    (?P<gap>\s{2,}|\t)
    |(?P<space>\s)
    |(?P<limit><=|>=|!=)
    |(?P<sign>:=|==|=>|->|→|[:=])
    |(?P<quote>["'`])
    |(?P<bar>\|)
    |(?P<comma>[,;])
    |(?P<open>[(\[{<])
    |(?P<close>[)\]}>])
    |(?P<number>
        (?:[+-]?\d{1,3}(?:[ ]\d{3}){1,5}[.,]\d|\#?[+-]?\.?\d|[+-](?:nan|inf|∞)|∞)
        (?:[^\s,:;|()\[\]{}<>"'=]|[,:'\u00a0\u2009\u202f](?=\d))*
        (?:[ ]?[x\u00d7*·][ ]?10(?:\^|\*\*|⁻)[^\s,;|]*)?)
    |(?P<word>[^\W\d](?:[\w./@^%\#-]|'(?=\w))*)
    |(?P<other>[^\s,:;|()\[\]{}<>"'=]+)
    """,
    re.VERBOSE | re.IGNORECASE,
)
"""What may belong to a number is part of it, so that no part of it is taken for it: thousands between spaces or
apostrophes, and powers of ten."""
_ARROWS: Final = frozenset({"->", "=>", "→"})
_THOUSANDS: Final = re.compile(r"[+-]?\d{1,3}(?: \d{3})*", re.ASCII)
_NEXT_THOUSANDS: Final = re.compile(r"\d{3}", re.ASCII)
_POWER: Final = re.compile(r"e[+-]?\d+|/", re.ASCII | re.IGNORECASE)
"""What makes another number of the one that stands a space before it."""
_OF_OTHERS: Final = frozenset({"best", "lowest", "highest", "min", "max", "minimum", "maximum", "previous"})
"""Words that, with a colon, make another metric of the one after them: ``best: loss 0.01``."""
_CUT_BEFORE: Final = frozenset({"start", "cut"})
_MISSING: Final = frozenset({"na", "n/a", "none", "null", "nil", "missing", "undefined"})
"""Words that stand where a value is missing."""
_MISSING_ALONE: Final = frozenset({"NA", "N/A", "None"})
"""Those of them that are no word of a sentence."""


@dataclass(slots=True)
class Pair:
    """A name, a value, and how they stand.

    Attributes:
        words: of the name.
        text: the value as printed.
        joint: what is between them: ``sign``, ``bar``, ``gap``, ``space`` or ``open``, a bracket.
        before: what is before the name: ``start`` of the line, ``cut`` as by a comma, ``value`` of another pair, or
            ``other``.
        after: what is after the value: ``cut`` or ``word``, after one space.
    """

    words: list[str]
    text: str
    joint: str
    before: str
    after: str = "cut"


class _Scan:
    """Goes through the tokens of a line."""

    def __init__(self) -> None:
        self.pairs: list[Pair] = []
        self._words: list[str] = []
        self._joint = ""
        self._glued = False
        """Whether an equals sign is the last that came: the word after it is a value, as in ``level=info``."""
        self._before = "start"
        self._open: Pair | None = None
        """The newest pair, until it is known what follows it."""

    def take(self, kind: str, text: str) -> None:
        """Take the next token."""
        glued, self._glued = self._glued, text == "="
        if self._belongs_to_the_open(kind, text):
            return
        if kind == "word" and glued and not _is_value(text):
            self._cut("cut")
        elif kind == "word":
            self._word(text)
        elif kind == "number":
            self._value(text)
        elif kind == "sign" and self._open is not None and text in _ARROWS:
            self._open.text += text  # from this value to another one
        elif kind in {"gap", "space"}:
            self._joint = self._joint if self._joint in {"sign", "bar", "open"} else kind
            if kind == "gap":
                self._open = None
        elif kind in {"sign", "bar", "open"} and self._words:
            self._joint = kind if self._joint != "sign" or kind == "open" else "sign"
            self._open = None
        elif kind == "other" and self._words and self._joint == "sign":
            self._value(text)  # no number, where a value should be
        elif kind != "quote":
            # A bullet is none of the words of a sentence.
            self._cut("other" if kind == "other" and any(map(str.isalnum, text)) else "cut")

    def _belongs_to_the_open(self, kind: str, text: str) -> bool:
        """Return whether a token is a part of the value before it, one space before, which then is no number."""
        if self._open is None or self._joint != "space" or self._words:
            return False
        thousands = kind == "number" and _NEXT_THOUSANDS.fullmatch(text) and _THOUSANDS.fullmatch(self._open.text)
        if not thousands and not _POWER.fullmatch(text):
            return False
        self._open.text += f" {text}"
        self._joint = ""
        return True

    def _word(self, text: str) -> None:
        if number(text) is not None or text in _MISSING_ALONE or (self._joint == "sign" and _is_value(text)):
            self._value(text)
            return
        if self._open is not None:
            self._open.after = "word"
            self._open = None
        if self._words and self._joint not in {"", "space"} and self._words[-1].casefold() not in _OF_OTHERS:
            self._cut("cut")
        if not self._words and self._joint == "gap":
            self._before = "cut"
        self._words.append(text.rstrip(".-"))
        self._joint = ""

    def _value(self, text: str) -> None:
        if self._open is not None:
            self._open.after = "word"
        self._open = None
        if self._words and self._joint:
            self._open = Pair(self._words, text, self._joint, self._before)
            self.pairs.append(self._open)
        self._words, self._joint = [], ""
        self._before = "value" if self._open else "other"

    def _cut(self, before: str) -> None:
        if self._open is not None and before == "other":
            self._open.after = "word"
        self._words, self._joint, self._before, self._open = [], "", before, None


def _is_value(word: str) -> bool:
    return word.casefold() in _MISSING or number(word) is not None


def pairs_of(line: str) -> list[Pair]:
    """Return all pairs in a line, whether or not a value is a number."""
    scan = _Scan()
    for token in _TOKEN.finditer(line):
        scan.take(token.lastgroup or "other", token[0])
    return scan.pairs


def told(pairs: list[Pair], most_words: int) -> Iterator[Pair]:
    """Yield the pairs that are meant as such: signed ones, and others alone in the line, between cuts or in a row."""
    alone_after = [False] * (len(pairs) + 1)
    for at in reversed(range(len(pairs))):
        goes_on = at + 1 < len(pairs) and pairs[at + 1].before == "value" and alone_after[at + 1]
        alone_after[at] = pairs[at].joint == "sign" or pairs[at].after == "cut" or goes_on
    alone_before = False
    for at, pair in enumerate(pairs):
        alone_before = pair.joint == "sign" or pair.before in _CUT_BEFORE or (pair.before == "value" and alone_before)
        short = len(pair.words) <= most_words or pair.joint == "sign"
        if alone_before and alone_after[at] and short:
            yield pair
