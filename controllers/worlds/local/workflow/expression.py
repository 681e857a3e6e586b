"""The part of Argo's expressions that is honoured: comparisons of text and numbers, joined by and, or and not.

``retryStrategy.expression`` has variables, ``asInt`` and ``asFloat``; in ``when`` bare words stand for themselves.
"""

import operator
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, NoReturn

from controllers.worlds.local.workflow.values import ManifestValueError

Value = str | float | bool


class ExpressionError(ManifestValueError):
    """An expression cannot be read, or compares values of different kinds."""


@dataclass(frozen=True, slots=True)
class Literal:
    """A number, a quoted text or a truth value."""

    value: Value


@dataclass(frozen=True, slots=True)
class Name:
    """A bare word: a variable, or in ``when`` a text without quotes."""

    name: str


@dataclass(frozen=True, slots=True)
class Apply:
    """A function or operator and what it is applied to."""

    function: str
    arguments: "tuple[Expression, ...]"


Expression = Literal | Name | Apply

_TOKEN: Final = re.compile(
    r"\s*(?:(?P<number>-?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?(?![\w.-]))|(?P<text>'(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\")"
    r"|(?P<symbol>==|!=|<=|>=|&&|\|\||[<>!()])|(?P<word>[\w][\w.-]*))"
)
_COMPARE: Final[Mapping[str, Callable[[Any, Any], bool]]] = {
    "==": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
    "contains": operator.contains,
}
_WORDS: Final = {"and": "&&", "or": "||", "not": "!", "contains": "contains"}
_FUNCTIONS: Final = ("asInt", "asFloat")


def parse_expression(text: str) -> Expression:
    """Read ``text``.

    Raises:
        ExpressionError: ``text`` uses something outside the honoured part.
    """
    parser = _Parser(text)
    expression = parser.either()
    if parser.tokens:
        parser.fail(f"does not expect {parser.tokens[0][1]!r}")
    return expression


def evaluate(expression: Expression, names: Mapping[str, Value] | None) -> Value:
    """Return the value of ``expression``; without ``names`` each bare word stands for itself.

    Raises:
        ExpressionError: A name is unknown, a text is no number, or operands are of different kinds.
    """
    match expression:
        case Literal(value):
            return value
        case Name(name):
            return name if names is None else _lookup(name, names)
        case Apply("&&" | "||" as function, (left, right)):
            first = _truth(evaluate(left, names))
            return first if first == (function == "||") else _truth(evaluate(right, names))
        case Apply(function, arguments):
            return _apply(function, [evaluate(argument, names) for argument in arguments])


def _apply(function: str, values: Sequence[Value]) -> Value:
    if function == "!":
        return not _truth(values[0])
    if function in _FUNCTIONS:
        return _number(values[0], whole=function == "asInt")
    return _compare(function, values[0], values[1])


def check_expression(expression: Expression, names: Mapping[str, Value]) -> None:
    """Evaluate every part once, whatever the others give, so that mistakes show before anything runs.

    Raises:
        ExpressionError: As ``evaluate``, for any part.
    """
    if isinstance(expression, Apply):
        for argument in expression.arguments:
            check_expression(argument, names)
    evaluate(expression, names)


def truth(expression: Expression, names: Mapping[str, Value] | None) -> bool:
    """Return whether ``expression`` holds.

    Raises:
        ExpressionError: As ``evaluate``, or the value is neither true nor false.
    """
    return _truth(evaluate(expression, names))


class _Parser:
    def __init__(self, text: str) -> None:
        self.text = text
        self.tokens = self._tokenise(text)

    def fail(self, what: str) -> NoReturn:
        message = f"expression {self.text!r} {what}"
        raise ExpressionError(message)

    def either(self) -> Expression:
        left = self.both()
        while self._take("||"):
            left = Apply("||", (left, self.both()))
        return left

    def both(self) -> Expression:
        left = self.comparison()
        while self._take("&&"):
            left = Apply("&&", (left, self.comparison()))
        return left

    def comparison(self) -> Expression:
        left = self.unary()
        for symbol in _COMPARE:
            if self._take(symbol):
                return Apply(symbol, (left, self.unary()))
        return left

    def unary(self) -> Expression:
        if self._take("!"):
            return Apply("!", (self.unary(),))
        if self._take("("):
            inner = self.either()
            self._expect(")")
            return inner
        return self._atom()

    def _atom(self) -> Expression:
        if not self.tokens:
            self.fail("ends too early")
        kind, token = self.tokens.pop(0)
        if kind == "number":
            return Literal(float(token))
        if kind == "text":
            return Literal(re.sub(r"\\(.)", r"\1", token[1:-1]))
        if kind != "word":
            self.fail(f"does not expect {token!r}")
        return self._word(token)

    def _word(self, word: str) -> Expression:
        if word in ("true", "false"):
            return Literal(word == "true")
        if not self._take("("):
            return Name(word)
        if word not in _FUNCTIONS:
            self.fail(f"calls {word!r}; known here are {', '.join(_FUNCTIONS)}")
        argument = self.either()
        self._expect(")")
        return Apply(word, (argument,))

    def _take(self, symbol: str) -> bool:
        if self.tokens and self.tokens[0] == ("symbol", symbol):
            self.tokens.pop(0)
            return True
        return False

    def _expect(self, symbol: str) -> None:
        if not self._take(symbol):
            self.fail(f"lacks a {symbol!r}")

    def _tokenise(self, text: str) -> list[tuple[str, str]]:
        tokens, position = [], 0
        while text[position:].strip():
            match = _TOKEN.match(text, position)
            if match is None or match.lastgroup is None:
                self.fail(f"cannot be read from {text[position:].strip()!r} on")
            word = match[match.lastgroup]
            tokens.append(("symbol", _WORDS[word]) if word in _WORDS else (match.lastgroup, word))
            position = match.end()
        return tokens


def _lookup(name: str, names: Mapping[str, Value]) -> Value:
    if name not in names:
        message = f"{name!r} is not known in an expression; known are {', '.join(sorted(names))}"
        raise ExpressionError(message)
    return names[name]


def _truth(value: Value) -> bool:
    if isinstance(value, bool):
        return value
    message = f"{value!r} is neither true nor false"
    raise ExpressionError(message)


def _number(value: Value, *, whole: bool) -> float:
    try:
        return int(value) if whole else float(value)
    except ValueError:
        message = f"{value!r} is not a number"
        raise ExpressionError(message) from None


def _compare(symbol: str, left: Value, right: Value) -> bool:
    if _kind(left) is not _kind(right):
        message = f"{left!r} {symbol} {right!r} compares text with a number; put quotes around it, or asInt(...)"
        raise ExpressionError(message)
    if symbol == "contains" and not isinstance(left, str):
        message = f"{left!r} is no text, so it contains nothing"
        raise ExpressionError(message)
    return _COMPARE[symbol](left, right)


def _kind(value: Value) -> type:
    return bool if isinstance(value, bool) else str if isinstance(value, str) else float
