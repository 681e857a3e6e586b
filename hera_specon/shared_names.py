"""Folders of the user's that bear the name of a package of ours, and which of the two Python takes.

``controllers`` and ``workflows`` are names that a project may well have. Python takes the first that has an
``__init__.py``, or is a single file. A folder without one counts only where there is no other, so ours comes before it.
"""

import ast
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

from controllers.worlds.local.processes.own_files import entry_files, parse_own_file
from hera_specon.manifest import Manifest, program

NAMES: Final = ("controllers", "workflows")
_OURS: Final = Path(__file__).resolve().parents[1]


def hidden_from_trials(trial: Manifest, folder: Path) -> Iterator[str]:
    """Yield a line for each module that a trial's program will not find, since another package has its name.

    Args:
        trial: the template of the trial.
        folder: where trials run; their program is looked for there.
    """
    started = program(trial)
    words = [str(word) for word in (*(started.get("command") or []), *(started.get("args") or []))]
    as_module = "-m" in words[:-1]
    if as_module and (told := _hidden(words[words.index("-m") + 1], [folder])):
        yield f"{told} (trials run it)"
    for file in entry_files(words, folder):
        root = folder if as_module else file.parent
        whys = (_hidden(module, [root]) for module in _imported(file))
        yield from (f"{told} ({file.name} imports it)" for told in whys if told)


def why_not_found(error: ImportError, file: Path, roots: Sequence[Path]) -> str | None:
    """Return which name is shared with us where that is why ``error`` came of running ``file``; None elsewhere.

    Args:
        error: what was raised in this process.
        file: the user's Python.
        roots: where imports look first.
    """
    modules = (error.name or "", *_imported(file))
    return next((told for module in modules if (told := _hidden_here(module, roots))), None)


def _hidden_here(module: str, roots: Sequence[Path]) -> str | None:
    """Return what ``_hidden`` does, or that this process has loaded our package, so that it looks for no other."""
    top = module.partition(".")[0]
    theirs = _theirs(top, roots)
    loaded = [str(_OURS / top)] == list(getattr(sys.modules.get(top), "__path__", []))
    if theirs is None or not loaded:
        return _hidden(module, roots)
    return f"hera-specon's own package {top} is loaded here, so {theirs} is not found: rename that"


def _hidden(module: str, roots: Sequence[Path]) -> str | None:
    """Return who hides ``module``, where Python looks for it in ``roots`` first; None where it is found."""
    top, _, rest = module.partition(".")
    theirs = _theirs(top, roots)
    if theirs is None:
        return None
    in_theirs, in_ours = _has(theirs, rest), _has(_OURS / top, rest)
    if _goes_first(theirs) and in_ours and not in_theirs:
        return f"{theirs} hides hera-specon's own package {top}, so {module} is not found: rename it"
    if not _goes_first(theirs) and in_theirs and not in_ours:
        return (
            f"hera-specon's own package {top} hides {theirs}, which has no __init__.py, so {module} is not found where "
            "hera-specon is installed: put one into it, or rename it"
        )
    return None


def _theirs(top: str, roots: Sequence[Path]) -> Path | None:
    """Return the folder or file of the user's that an import of ``top`` could mean; None unless we share the name."""
    if top not in NAMES:
        return None
    candidates = (path for root in roots for path in (root.resolve() / top, root.resolve() / f"{top}.py"))
    return next((path for path in candidates if path.exists() and path != _OURS / top), None)


def _goes_first(theirs: Path) -> bool:
    return theirs.is_file() or (theirs / "__init__.py").is_file()


def _has(package: Path, rest: str) -> bool:
    """Return whether ``package`` has the module ``rest`` below it; a single file has none."""
    path = package.joinpath(*rest.split(".")) if rest else package
    return path.is_dir() or path.with_suffix(".py").is_file()


def _imported(file: Path) -> list[str]:
    """Return the modules below a name of ours that a program imports by absolute names, in its own source."""
    tree = parse_own_file(file.read_text(encoding="utf-8", errors="replace")).tree
    modules: list[str] = []
    for node in () if tree is None else ast.walk(tree):
        if isinstance(node, ast.Import):
            modules += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            modules += [node.module, *(f"{node.module}.{alias.name}" for alias in node.names)]
    return list(dict.fromkeys(module for module in modules if module.partition(".")[0] in NAMES))
