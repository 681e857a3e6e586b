"""The options of a training script, as its own source gives them to argparse."""

import ast
import difflib
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

_RATE: Final = re.compile(r"lr|.*learning.?rate|.*weight.?decay|alpha|.*step.?size")
"""Names of numbers that are as likely in one power of ten as in another."""
_SIZE: Final = re.compile(r".*(hidden|width|units|dim|layers|depth|batch)")
"""Names of whole numbers that people try by doubling."""
_MOST_SUGGESTED: Final = 3
_EXAMPLE: Final = ("lr=log:1e-4:1e-1", "hidden=32,64,128")


@dataclass(frozen=True, slots=True)
class ScriptOption:
    """How a script reads an option of its command line: ``type=``, ``action=`` and a number as ``default=``."""

    type: str
    action: str
    default: float | None = None


def options_of(file: Path) -> dict[str, ScriptOption]:
    """Return how the source in ``file`` reads its options, by their names; none where it cannot be read."""
    tree = _tree(file)
    options: dict[str, ScriptOption] = {}
    for node in () if tree is None else ast.walk(tree):
        if isinstance(node, ast.Call) and _name(node.func) == "add_argument" and isinstance(node.func, ast.Attribute):
            settings = {keyword.arg: keyword.value for keyword in node.keywords}
            type_, action = (_name(settings[key]) if key in settings else "" for key in ("type", "action"))
            option = ScriptOption(type_, action, _number(settings.get("default")))
            options |= {name: option for word in node.args if (name := _name(word)).startswith("-")}
    return options


def unknown_options(file: Path, names: Iterable[str]) -> Iterator[str]:
    """Yield a line for each hyperparameter in ``names`` that the script in ``file`` will refuse as ``--name=value``.

    Of a script that does not read its command line by argparse, or takes options that it does not know, nothing is
    told.
    """
    options = options_of(file)
    calls = {_name(node.func) for node in ast.walk(_tree(file) or ast.Module([], [])) if isinstance(node, ast.Call)}
    known = [option for option in options if option.startswith("--")]
    if not known or "parse_args" not in calls or "parse_known_args" in calls:
        return
    for name in names:
        passed = f"--{name}"
        if not any(option.startswith(passed) for option in known):  # argparse takes an abbreviation, too
            nearest = difflib.get_close_matches(passed, known, 1, 0.5)
            meant = f"; did you mean {nearest[0].removeprefix('--')}=?" if nearest else ""
            yield f"{file} has no option {passed}: it has {', '.join(known)}{meant}"


def truth_flags(file: Path, names: Iterable[str]) -> dict[str, str | Mapping[bool, str]]:
    """Return how the script in ``file`` wants those truth values in ``names`` that are no ``--name=true`` to it.

    Each is a bare flag, or words for each value, as ``flags=`` of a sweep takes them.
    """
    options, flags = options_of(file), dict[str, str | Mapping[bool, str]]()
    for name in names:
        option = f"--{name}"
        how = options.get(option, ScriptOption("", ""))
        if how.action == "store_true":
            flags[name] = option
        elif how.action == "BooleanOptionalAction":
            flags[name] = {True: option, False: f"--no-{name}"}
        elif how.type == "bool":  # takes every text but the empty one for True
            flags[name] = {True: f"{option}=1", False: f"{option}="}
    return flags


def suggested_assignments(file: Path) -> tuple[str, ...]:
    """Return assignments that would sweep the script in ``file``: by its own options, else as an example."""
    options = {name.removeprefix("--"): how for name, how in options_of(file).items() if name.startswith("--")}
    suggestions = [told for name, how in options.items() if (told := _suggest(name, how))]
    return tuple(suggestions[:_MOST_SUGGESTED]) or _EXAMPLE


def _suggest(name: str, how: ScriptOption) -> str:
    default = how.default
    if default is None or default <= 0:
        return ""
    if how.type == "float" and _RATE.fullmatch(name):
        return f"{name}=log:{default / 10:g}:{default * 10:g}"
    if how.type == "int" and default > 1 and _SIZE.match(name):
        return f"{name}={default // 2:.0f},{default:.0f},{2 * default:.0f}"
    return ""


def _tree(file: Path) -> ast.Module | None:
    try:
        return ast.parse(file.read_text(encoding="utf-8"))
    except (OSError, SyntaxError, ValueError, RecursionError):
        return None


def _number(node: ast.expr | None) -> float | None:
    value = node.value if isinstance(node, ast.Constant) else None
    return value if isinstance(value, int | float) and not isinstance(value, bool) else None


def _name(node: ast.expr) -> str:
    """Return the text, or the last part of the name, that ``node`` is."""
    if isinstance(node, ast.Constant):
        return str(node.value)
    return node.id if isinstance(node, ast.Name) else node.attr if isinstance(node, ast.Attribute) else ""
