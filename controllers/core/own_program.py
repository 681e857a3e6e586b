"""How a process of ours is started, so that nothing in the user's folder can stand in for a module of ours.

A project may well have a package ``controllers``, or a ``random.py``. ``python -m`` looks in the current folder first,
and PYTHONPATH comes before everything else.
"""

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Final

_ROOT: Final = Path(__file__).resolve().parents[2]
_BEFORE: Final = "path_before"
"""The variable of such a process that keeps its path as it was without us."""


def own_command(module: str, *arguments: str) -> list[str]:
    """Return the command that calls ``main()`` of a module of ours, with ``arguments`` in ``sys.argv[1:]``.

    Its ``sys.path`` is Python's own, and after that, in case we are not installed there, the folder of our packages and
    those with installed packages, to which PYTHONPATH may have led this process.
    """
    folders = [Path(folder).absolute() for folder in sys.path if folder]
    installed = [str(folder) for folder in folders if any(folder.glob("*.dist-info"))]
    path = f"{_BEFORE} = [*filter(None, sys.path)]; sys.path[:] = [*{_BEFORE}, {str(_ROOT)!r}, *{installed!r}]"
    return [sys.executable, "-c", f"import sys; {path}; from {module} import main; main()", *arguments]


def path_before() -> list[str]:
    """Return the ``sys.path`` that Python itself gave this process, which ``own_command`` has started."""
    return list(getattr(sys.modules["__main__"], _BEFORE))


def own_environment(env: Mapping[str, str]) -> dict[str, str]:
    """Return ``env`` without what leads Python to the user's modules."""
    return {name: value for name, value in env.items() if name != "PYTHONPATH"}
