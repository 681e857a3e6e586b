"""The files of a training program that are its author's own, as Python would find them."""

import ast
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Final

import mlflow_hooks

HOOKS: Final = Path(mlflow_hooks.__file__).resolve().parent
"""No program's own, also where they lie beside its files, as in a checkout of this project."""


@dataclass(frozen=True, eq=False)
class OwnFile:
    """A file of a program, the same object for as long as it has not changed.

    ``package`` is what relative imports in it start from, ``tree`` its statements, None where it is no Python.
    """

    package: str
    text: str
    tree: ast.Module | None


_State = tuple[int, int]


class OwnFiles:
    """Finds modules in ``roots``, the folders of ``sys.path`` that come before what is installed."""

    def __init__(self, roots: Sequence[Path]) -> None:
        self._roots = roots
        self._states: dict[Path, _State | None] = {}

    @property
    def unchanged(self) -> bool:
        """Whether each file that was read is as it was then."""
        return all(_state(path) == state for path, state in self._states.items())

    def has(self, module: str) -> bool:
        """Return whether the first part of a module's name is found here, so that an import takes that one."""
        top = module.partition(".")[0]
        found = (root for root in self._roots if (root / f"{top}.py").is_file() or (root / top).is_dir())
        return any((root / top).resolve() != HOOKS for root in found)

    def of(self, module: str) -> list[OwnFile]:
        """Return what an import of ``module`` runs: its packages from the outermost on, then itself, where found."""
        parts = module.split(".")
        names = [parts[: end + 1] for end in range(len(parts))]
        return [file for name in names for file in self._at(name)]

    def read(self, path: Path, package: str = "") -> OwnFile:
        """Return a file; one that cannot be read is no Python."""
        self._states[path] = state = _state(path)
        try:
            return OwnFile(package, "", None) if state is None else _read(str(path), package, state)
        except OSError:
            return OwnFile(package, "", None)

    def _at(self, name: Sequence[str]) -> Iterator[OwnFile]:
        for root in self._roots:
            base = root.joinpath(*name)
            if (base / "__init__.py").is_file():
                yield self.read(base / "__init__.py", ".".join(name))
                return
            if base.with_suffix(".py").is_file():
                yield self.read(base.with_suffix(".py"), ".".join(name[:-1]))
                return


def _state(path: Path) -> _State | None:
    try:
        status = path.stat()
    except OSError:
        return None
    return status.st_mtime_ns, status.st_size


@lru_cache(maxsize=512)
def _read(path: str, package: str, _: _State) -> OwnFile:
    return parse_own_file(Path(path).read_text(encoding="utf-8", errors="replace"), package)


def parse_own_file(text: str, package: str = "") -> OwnFile:
    """Return the file that has this text."""
    try:
        return OwnFile(package, text, ast.parse(text))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return OwnFile(package, text, None)


def base_of(statement: ast.ImportFrom, package: str) -> str:
    """Return the full name of what ``from ... import`` names; empty where it leads out of the program."""
    if not statement.level:
        return statement.module or ""
    parts = package.split(".")
    kept = parts[: len(parts) - (statement.level - 1)]
    return ".".join([*kept, *([statement.module] if statement.module else [])]) if package else ""


def entry_files(words: Sequence[str], root: Path) -> list[Path]:
    """Return the file of Python that a command line runs, where it is one of the program's own below ``root``."""
    if "-m" in words[:-1]:
        base = root.joinpath(*words[list(words).index("-m") + 1].split("."))
        return [path for path in (base.with_suffix(".py"), base / "__init__.py") if path.is_file()]
    return [root / word for word in words if word.endswith(".py") and (root / word).is_file()][:1]
