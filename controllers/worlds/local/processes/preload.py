"""Which of the packages that are slow to import a training program uses, found without running it."""

import ast
import importlib.util
import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Final

ALWAYS: Final = ("mlflow_hooks", "mlflow.tracking")
SLOW: Final = {
    "numpy": ("numpy",),
    "pandas": ("pandas",),
    "sklearn": ("sklearn", "sklearn.datasets"),
    # What the first optimiser of torch.optim imports: three CPU seconds.
    "torch": ("torch", "torch._dynamo"),
    # Safe to fork as long as no operation has run.
    "tensorflow": ("tensorflow", "keras"),
    "keras": ("tensorflow", "keras"),
}
"""Modules worth importing before the first fork, by the package that a program names.

PyTorch's compiler comes before TensorFlow: each brings an LLVM, and the other order aborts the process.
"""

_DOTTED: Final = re.compile(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)+")


def preloads(commands: Iterable[Sequence[str]], sources: Iterable[str], root: Path) -> tuple[str, ...]:
    """Return the modules to import before the first attempt.

    Follows imports, and strings that name modules, through the program's own files. What it misses
    costs an attempt a slower start, nothing else.

    Args:
        commands: the trials' commands, such as ``python -m jobs.vae --lr=0.1``.
        sources: the trials' scripts, where they have some.
        root: folder that modules of the program's own are found under.
    """
    queue = [path for command in set(map(tuple, commands)) for path in entry_files(command, root)]
    texts = [*set(sources)]
    seen: set[Path] = set()
    packages: set[str] = set()
    while queue or texts:
        if not texts:
            path = queue.pop()
            if path in seen:
                continue
            seen.add(path)
            texts.append(path.read_text(encoding="utf-8", errors="replace"))
        names = set(_names(texts.pop()))
        packages |= {name.partition(".")[0] for name in names}
        queue += [path for name in names for path in _own(name, root)]
    found = [name for package in SLOW if package in packages and _installed(package) for name in SLOW[package]]
    return tuple(dict.fromkeys([*ALWAYS, *found]))


def entry_files(command: Sequence[str], root: Path) -> list[Path]:
    """Return the file of Python that ``command`` runs, where it is one of the program's own below ``root``."""
    words = list(command)
    if "-m" in words[:-1]:
        return _own(words[words.index("-m") + 1], root)
    return [root / word for word in words if word.endswith(".py") and (root / word).is_file()][:1]


def _own(module: str, root: Path) -> list[Path]:
    base = root.joinpath(*module.split("."))
    return [path for path in (base.with_suffix(".py"), base / "__init__.py") if path.is_file()]


def _names(text: str) -> Iterator[str]:
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError):
        return
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            yield node.module
            yield from (f"{node.module}.{alias.name}" for alias in node.names)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and _DOTTED.fullmatch(node.value):
            yield node.value


def _installed(package: str) -> bool:
    return importlib.util.find_spec(package) is not None
