"""How hyperparameters stand on the command lines of trials: what ``flags=`` of a sweep says."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from controllers.core.word_script import words_by_value, words_of_value
from hera_specon.errors import SweepError
from hera_specon.space import Conditional, Distribution, Value, value_text

Words = str | Sequence[str] | None
"""One argument, several, or none."""
FlagForm = Words | Mapping[Value, Words]
"""How a hyperparameter is passed: the same words for each value, or words of its own for each."""

_VALUE: Final = "{}"
_SPLIT: Final = "{*}"
_FORMS: Final = (
    "text with one {} for the value, as in '--optim.lr={}'; a list of words, as in ['--hidden', '{*}'], where {*} "
    "passes the words of the value one by one; a bare flag for truth values, as in '--amp'; words for each value, "
    "as in {True: '--amp', False: '--no-amp'}; or None to pass nothing"
)


@dataclass(frozen=True, slots=True)
class Flag:
    """How one hyperparameter is passed: by ``words`` that hold its value, or by those of ``by_value`` for its text."""

    words: tuple[str, ...] = ()
    by_value: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    @property
    def fixed(self) -> bool:
        """Whether there are as many words for every value, so that nobody has to choose them."""
        return not self.by_value and _SPLIT not in self.words

    def arguments(self, value: str) -> list[str]:
        """Return the arguments that pass ``value`` where their number is fixed."""
        return [word.replace(_VALUE, value) for word in self.words]

    def line(self, variable: str) -> str:
        """Return the shell's line that passes the value of the environment's ``variable``."""
        if self.by_value:
            return words_by_value(variable, self.by_value)
        place = self.words.index(_SPLIT)
        return words_of_value(self.words[:place], variable, self.words[place + 1 :])


def flag(name: str, values: Distribution, given: Mapping[str, object] | None) -> Flag:
    """Return how the hyperparameter ``name`` is passed: as ``--name=value`` where ``given`` says nothing.

    With None it is not passed: the command has a place for it, or the program reads it elsewhere.

    Raises:
        SweepError: What its author wrote has not just one place for the value, has no words for one of the values, or
            holds what Argo or Kubernetes would replace.
    """
    written = (given or {}).get(name, f"--{name}={_VALUE}")
    if written is None:
        return Flag()
    if isinstance(written, Mapping):
        return Flag(by_value=_by_value(name, values, written))
    words = _words(name, written)
    places = sum(word.count(_VALUE) + word.count(_SPLIT) for word in words)
    texts = set(_texts(values))
    if not places and texts and texts <= {"true", "false"}:
        return Flag(by_value={"true": words, "false": ()})
    odd = any(_SPLIT in word and word != _SPLIT for word in words)
    if places != 1 or odd or (isinstance(written, str) and _two_words(written)):
        raise SweepError(_refusal(name, written))
    return Flag(words)


def _by_value(name: str, values: Distribution, written: Mapping[object, object]) -> dict[str, tuple[str, ...]]:
    """Return the words for each value by its text; one that is left out is passed as nothing."""
    words_of: dict[str, tuple[str, ...]] = {}
    for value, words in written.items():
        if not isinstance(value, str | int | float):
            raise SweepError(_refusal(name, written))
        text = value_text(value)
        words_of[text] = () if words is None else tuple(w.replace(_VALUE, text) for w in _words(name, words))
    known = list(_texts(values))
    if not known:
        problem = f"flags= of {name!r} has words for each value, but {values} has no end of them"
        raise SweepError(problem)
    if lacking := [text for text in known if text not in words_of]:
        problem = f"flags= of {name!r} has no words for {lacking[0]!r}; None passes nothing"
        raise SweepError(problem)
    if unknown := [text for text in words_of if text not in known]:
        problem = f"flags= of {name!r} has words for {unknown[0]!r}, which it never is"
        raise SweepError(problem)
    return words_of


def _texts(values: Distribution) -> Iterable[str]:
    """Return each value as its text, none where they have no end."""
    texts = [value_text(value) for value in values.values() or ()]
    return [*texts, value_text(values.otherwise)] if texts and isinstance(values, Conditional) else texts


def _words(name: str, written: object) -> tuple[str, ...]:
    words = (written,) if isinstance(written, str) else written
    if not isinstance(words, list | tuple) or not words or not all(map(_is_word, words)):
        raise SweepError(_refusal(name, written))
    return tuple(words)


def _is_word(word: object) -> bool:
    """Return whether ``word`` is text that Argo and Kubernetes leave alone."""
    return isinstance(word, str) and word.isprintable() and not any(mark in word for mark in ("{{", "}}", "$(", "$$"))


def _two_words(written: str) -> bool:
    """Return whether a program would take ``written`` for one strange option, as ``--lr 0.1`` in one argument."""
    before, _, _ = written.partition(_VALUE)
    return written.startswith("-") and before.endswith(" ")


def _refusal(name: str, written: object) -> str:
    return f"flags= of {name!r} is {_FORMS}; not {written!r}"
