"""The program of a sweep in one line, how it is started, and the file that the sweep is written to."""

import ast
import os
import shlex
from pathlib import Path

import click

from hera_specon.cli.group import BadInput

_SHEBANG = "#!"


def existing_file(name: str, ctx: click.Context) -> Path:
    """Return the file of that name.

    Raises:
        click.BadParameter: there is none.
    """
    path = Path(name)
    if path.is_file():
        return path
    kind = "Directory" if path.is_dir() else "File"
    message = f"{kind} {name!r} is no file." if path.is_dir() else f"{kind} {name!r} does not exist."
    raise click.BadParameter(message, ctx, param_hint="'FILE'")


def command_of(file: Path) -> tuple[str, ...]:
    """Return the command that starts the program in ``file``, as its author starts it.

    Raises:
        click.UsageError: it is a workflow, or nobody knows what starts such a file.
    """
    if file.suffix in {".yaml", ".yml"} or (file.suffix == ".py" and _is_workflow(file)):
        message = (
            f"{file} defines a sweep, with hyperparameters of its own: change its space=, or set parameters of its "
            "workflow with -p NAME=VALUE."
        )
        raise click.UsageError(message)
    if file.suffix == ".py":
        return ("python", str(file))
    with file.open(encoding="utf-8", errors="replace") as text:
        first = text.readline(1000).strip()
    shebang = shlex.split(first.removeprefix(_SHEBANG)) if first.startswith(_SHEBANG) else []
    if os.access(file, os.X_OK) and (shebang or file.suffix != ".sh"):
        return (str(file) if os.sep in str(file) else f"./{file}",)
    if shebang or file.suffix == ".sh":
        return (*(shebang or ["sh"]), str(file))
    message = (
        f"{file} is neither Python (.py) nor a script of a shell (.sh), and cannot be executed: say how it is started, "
        f"as in specon run NAME=VALUES... -- COMMAND {file}"
    )
    raise click.UsageError(message)


def save(source: str, file: Path, *, force: bool) -> None:
    """Write the sweep with this ``source`` to ``file``, which may have the same text already.

    Raises:
        BadInput: it has another one, and ``force`` is off.
    """
    if file.exists() and not force and file.read_text(encoding="utf-8", errors="replace") != source:
        message = f"{file} is there already and says something else: name another file with --save, or remove it."
        raise BadInput(message)
    file.write_text(source, encoding="utf-8")


def _is_workflow(file: Path) -> bool:
    """Return whether the Python in ``file`` makes a workflow and calls it ``w``."""
    try:
        tree = ast.parse(file.read_bytes())
    except (OSError, SyntaxError, ValueError, RecursionError):
        return False
    made = {getattr(node.func, "id", "") for node in ast.walk(tree) if isinstance(node, ast.Call)}
    return "Workflow" in made and any(getattr(node, "id", "") == "w" for node in ast.walk(tree))
