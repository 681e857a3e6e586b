"""What a program's lines look like, as an author says it and as a variable of the environment holds it."""

import json
from dataclasses import dataclass
from typing import Any, Final

from mlflow_hooks.errors import BadEnvironmentError
from mlflow_hooks.foreign_json import parsed

MOST_NAMES: Final = 50
"""Metrics that are read of one program."""
STEPS: Final = ("step", "epoch")
"""Names of the groups that hold the step."""
NOT_THEIRS: Final = ("specon.", "system/")
"""Begins the names of metrics that the hooks and MLflow itself log."""
_MOST_PATTERNS: Final = 20
_LONGEST_PATTERN: Final = 2000
_MEMORY: Final = 8 * 2**20
"""Bytes that a pattern may take, compiled."""
_LIBRARY: Final = "google-re2"


@dataclass(frozen=True, slots=True)
class PrintedForm:
    """How metrics stand in what a program prints.

    With ``patterns``, named groups hold the values. With ``keys``, each line is a JSON object, and these are the keys
    of the metrics; ``step`` is that of the step, where there is one. With neither, metrics are what a person takes for
    some: ``loss: 0.31`` and the like (``named.py``).
    """

    patterns: tuple[str, ...] = ()
    keys: tuple[str, ...] = ()
    step: str | None = None

    @property
    def by_name(self) -> bool:
        """Whether nothing says where the metrics are but their names."""
        return not self.patterns and not self.keys

    def encode(self) -> str:
        """Return it as JSON that neither Argo (``{{``) nor Kubernetes (``$(``, ``$$``) changes."""
        told = {"patterns": self.patterns, "keys": self.keys, "step": self.step}
        text = json.dumps({name: value for name, value in told.items() if value})
        # Such a pair stands within a string, as the object itself is flat.
        for pair in ("{{", "}}", "$(", "$$"):
            text = text.replace(pair, "".join(f"\\u{ord(sign):04x}" for sign in pair))
        return text

    @classmethod
    def decode(cls, text: str) -> "PrintedForm":
        """Read what ``encode`` returned.

        Raises:
            BadEnvironmentError: it is nothing of the kind.
        """
        try:
            told = parsed(text)
            return cls(tuple(told.get("patterns", ())), tuple(told.get("keys", ())), told.get("step"))
        except (ValueError, AttributeError, TypeError) as error:
            message = f"this is no form of printed metrics ({error}): {text[:200]!r}"
            raise BadEnvironmentError(message) from error

    @property
    def names(self) -> tuple[str, ...]:
        """The metrics that it names; none where any may come.

        Raises:
            BadEnvironmentError: a pattern is wrong.
        """
        found = [name for pattern in self.patterns for name in compile_pattern(pattern).groupindex]
        return tuple(dict.fromkeys([*(name for name in found if name not in STEPS), *self.keys]))


def compile_pattern(pattern: str) -> Any:  # noqa: ANN401 - RE2's own type, which tells no types
    """Return ``pattern`` for RE2, whose time grows with the line only, whatever the pattern and the line are.

    It stands for text of a line, never of several: ``^`` and ``$`` are a line's ends.

    Raises:
        BadEnvironmentError: it is none that RE2 takes, or has no named group, or the library is not there.
    """
    try:
        import re2  # noqa: PLC0415 - only who reads by patterns needs it
    except ImportError as error:
        message = f"patterns of printed metrics need {_LIBRARY}: pip install 'hera-specon-hooks[printed]'"
        raise BadEnvironmentError(message) from error
    options = re2.Options()
    options.max_mem = _MEMORY
    options.log_errors = False
    options.never_nl = True
    try:
        compiled = re2.compile(f"(?m){pattern}", options)
    except re2.error as error:
        why = error.args[0].decode(errors="replace") if error.args and isinstance(error.args[0], bytes) else str(error)
        message = f"the pattern {pattern!r} is none that RE2 takes (https://github.com/google/re2/wiki/Syntax): {why}"
        raise BadEnvironmentError(message) from error
    if not compiled.groupindex:
        message = f"the pattern {pattern!r} has no named group, as in 'val_loss=(?P<val_loss>[-+0-9.e]+)'"
        raise BadEnvironmentError(message)
    return compiled


def why_no_form(form: PrintedForm, objective: str) -> str | None:
    """Return why what a program prints cannot be read by ``form``, or would never hold ``objective``."""
    given: list[object] = [*form.patterns, *form.keys]
    if not all(isinstance(text, str) and text for text in given):
        return f"patterns and names are texts, not {given!r}"
    if len(form.patterns) > _MOST_PATTERNS or any(len(pattern) > _LONGEST_PATTERN for pattern in form.patterns):
        return f"there are at most {_MOST_PATTERNS} patterns, of up to {_LONGEST_PATTERN} characters each"
    try:
        for pattern in form.patterns:
            if len(both := [name for name in STEPS if name in compile_pattern(pattern).groupindex]) > 1:
                return f"the pattern {pattern!r} has two groups for the step: {' and '.join(both)}"
        names = form.names
    except BadEnvironmentError as error:
        return str(error)
    if len(names) > MOST_NAMES:
        return f"at most {MOST_NAMES} metrics are read, not {len(names)}"
    if form.step in names:
        return f"{form.step!r} is both a metric and the step"
    if names and objective not in names:
        return f"the objective {objective!r} is not among them: {', '.join(map(repr, names))}"
    if form.patterns and not names:
        return f"no pattern has a group for a metric: {' and '.join(map(repr, STEPS))} hold the step"
    return None
