"""A sweep of one program as a Python file, written as a person would write it."""

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import PurePath
from typing import Final

from hera_specon.settings import Objective, input_name
from hera_specon.space import Choice, Continuous, Distribution, Integer, Value, value_text
from mlflow_hooks import contract

SEARCHES: Final = {"tpe": "tpe()", "cmaes": "cmaes()"}
"""Searches that ask as they go and have a name of their own, as they stand in a file."""
BEFOREHAND: Final = ("random", "grid")
"""Searches whose trials are known before the sweep."""
_IMAGE: Final = "my-trainer:1.0"
_PLACE: Final = re.compile(r"(?<!\$)\{([A-Za-z_][\w.-]*)\}")
"""The place of a hyperparameter in a command. With a dollar sign before it, it is a variable of a shell."""
_SCRIPT: Final = re.compile(r"[\w.-]+(?=\.(?:py|sh)\b)")
_LONGEST_LINE: Final = 100
_LONGEST_NAME: Final = 40


@dataclass(frozen=True, kw_only=True)
class WrittenSweep:
    """A sweep of ``command``, whose words may have ``{name}`` in the place of a hyperparameter.

    ``fixed`` are hyperparameters of one value, passed like the others: each as ``flags`` says, a bare flag or words for
    each truth value, else as ``--name=value``. ``texts`` tells how values were written that ``value_text`` writes
    differently. ``search`` is ``random``, ``grid``, ``tpe``, ``cmaes`` or a class of Optuna's samplers. ``trials`` is
    None for a grid.
    """

    command: tuple[str, ...]
    space: Mapping[str, Distribution]
    fixed: Mapping[str, Value] = field(default_factory=dict)
    flags: Mapping[str, str | Mapping[bool, str]] = field(default_factory=dict)
    texts: Mapping[str, Mapping[Value, str]] = field(default_factory=dict)
    objective: Objective
    search: str = "random"
    trials: int | None = None
    seed: int = 0

    @property
    def name(self) -> str:
        """What the sweep is called: as its program is."""
        words = self.command
        module = words[words.index("-m") + 1].rpartition(".")[2] if "-m" in words[:-1] else ""
        files = _SCRIPT.findall(" ".join(words))
        stem = module or (files or [PurePath(words[0]).stem])[0]
        plain = re.sub(r"[^a-z0-9]+", "-", stem.lower()).strip("-")[:_LONGEST_NAME].strip("-")
        return plain or "sweep"

    def source(self, notes: Iterable[str] = ()) -> str:
        """Return the text of the file, with ``notes`` as comments at its top."""
        comments = [f"# {note}".rstrip() for note in notes]
        head = "\n".join([*comments, "", ""]) if comments else ""
        settings = "".join(f"        {line}\n" for line in self._settings())
        return (
            f"{head}from hera.workflows import Workflow\n\n"
            f"from hera_specon import {', '.join(sorted(self._imports()))}\n\n"
            f'with Workflow(generate_name="{self.name}-", entrypoint="{self.name}") as w:\n'
            f"    Sweep(\n{settings}    )\n"
        )

    def words(self, point: Mapping[str, Value]) -> list[str]:
        """Return the command line of the trial that has the values in ``point``."""
        values = {**self.fixed, **point}
        texts = {name: self._text(name, value) for name, value in values.items()}
        arguments = [word for name in self.passed for word in self._arguments(name, values[name])]
        return [*(_fill(word, texts) for word in self.command), *arguments]

    @property
    def passed(self) -> tuple[str, ...]:
        """The hyperparameters that follow the command: those that it has no place for."""
        return tuple(name for name in (*self.fixed, *self.space) if name not in self._placed)

    @property
    def _placed(self) -> frozenset[str]:
        """The hyperparameters that the command has a place for."""
        named = {name for word in self.command for name in _PLACE.findall(word)}
        return frozenset(named & {*self.space, *self.fixed})

    def _arguments(self, name: str, value: Value) -> list[str]:
        """Return the arguments that pass a value."""
        form = self.flags.get(name)
        if form is None:
            return [f"--{name}={self._text(name, value)}"]
        if isinstance(form, str):
            return [form] if value else []
        return [form[bool(value)]]

    def _text(self, name: str, value: Value) -> str:
        """Return ``value`` as the program gets it."""
        return self.texts.get(name, {}).get(value, value_text(value))

    def _settings(self) -> Iterator[str]:
        """Yield the lines between the brackets of ``Sweep(...)``."""
        fixed = {name: self._text(name, value) for name, value in self.fixed.items()}
        places = {name: self._place(name) for name in self.space}
        words = [_fill(word, fixed | places) for word in self.command]
        args = [word for name in self.passed if name in fixed for word in self._arguments(name, self.fixed[name])]
        yield f"name={_quote(self.name)},"
        yield f"image={_quote(_IMAGE)},  # on a cluster: an image that has the program and all it needs"
        yield from _list_words("command", words)
        if args:
            yield from _list_words("args", args)
        yield "space={"
        yield from (f"    {_quote(name)}: {code_of(values)}," for name, values in self._space.items())
        yield "},"
        yield from self._flags()
        if self.search != "random":
            yield f"search={self._search_code},"
        if self.trials is not None:
            yield f"trials={self.trials},"
        yield f"seed={self.seed},"
        yield f"objective={self.objective.direction.value}({_quote(self.objective.metric)}),"

    @property
    def _space(self) -> Mapping[str, Distribution]:
        """The space of the file: a place in the command gets the very value, so it is text where a text differs."""
        return {
            name: Choice(tuple(self._text(name, value) for value in values.options))
            if name in self.texts and name in self._placed and isinstance(values, Choice)
            else values
            for name, values in self.space.items()
        }

    def _flags(self) -> Iterator[str]:
        """Yield the line that says how hyperparameters are passed that are not passed as ``--name=value``."""
        forms = {name: "None" for name in self.space if name in self._placed}
        why = "  # the command has a place for each of these" if forms else ""
        for name, values in self.space.items():
            form = self.flags.get(name)
            if name in self._placed or (form is None and name not in self.texts):
                continue
            why = ""
            options = (values.values() or ()) if form is None else () if isinstance(form, str) else form
            words = [f"{_literal(value)}: {_quote(self._arguments(name, value)[0])}" for value in options]
            forms[name] = _quote(form) if isinstance(form, str) else f"{{{', '.join(words)}}}"
        if forms:
            yield f"flags={{{', '.join(f'{_quote(name)}: {form}' for name, form in forms.items())}}},{why}"

    def _place(self, name: str) -> str:
        """Return what stands in a command for the value of a hyperparameter."""
        if self.search in BEFOREHAND:
            return f"{{{{inputs.parameters.{input_name(name)}}}}}"
        return f"$({contract.ENV_PARAM}{input_name(name)})"

    @property
    def _search_code(self) -> str:
        if self.search in BEFOREHAND:
            return _quote(self.search)
        return SEARCHES.get(self.search, f"sampler({_quote(self.search)})")

    def _imports(self) -> set[str]:
        code = [code_of(values) for values in self._space.values()]
        search = [] if self.search in BEFOREHAND else [self._search_code]
        return {"Sweep", self.objective.direction.value, *(call.partition("(")[0] for call in [*code, *search])}


def code_of(values: Distribution) -> str:
    """Return ``values`` as an author writes them: ``log_uniform(0.0001, 0.1)``."""
    match values:
        case Choice(options):
            return f"choice({', '.join(map(_literal, options))})"
        case Continuous(low, high, log=True):
            return f"log_uniform({low!r}, {high!r})"
        case Continuous(low, high, step=step):
            return f"uniform({low!r}, {high!r}{'' if step is None else f', step={step!r}'})"
        case Integer(low, high, log=log, step=step):
            return f"integer({low}, {high}{', log=True' if log else ''}{f', step={step}' if step != 1 else ''})"
        case _:
            raise NotImplementedError(repr(values))


def _fill(word: str, values: Mapping[str, str]) -> str:
    """Return ``word`` with each ``{name}`` replaced by the value of that name; other braces stay."""
    return _PLACE.sub(lambda place: values.get(place[1], place[0]), word)


def _list_words(name: str, words: Sequence[str]) -> Iterator[str]:
    """Yield ``name=[...],`` on one line, or on several where it is long."""
    quoted = [_quote(word) for word in words]
    line = f"{name}=[{', '.join(quoted)}],"
    if len(line) <= _LONGEST_LINE:
        yield line
        return
    yield f"{name}=["
    yield from (f"    {word}," for word in quoted)
    yield "],"


def _literal(value: Value) -> str:
    return _quote(value) if isinstance(value, str) else repr(value)


def _quote(text: str) -> str:
    """Return ``text`` as a literal of Python, in double quotes."""
    return json.dumps(text, ensure_ascii=False)
