"""Which interpreter the word ``python`` means: the one that the user's shell would start.

People install specon in an environment of its own (uv tool, pipx) and train in another one. Then ``python`` is the
first of PATH, as everywhere. Only where specon was started out of a virtual environment that is not active, as with
``.venv/bin/specon``, and PATH leads to no other environment, is it specon's own: nobody means the system's Python then.
"""

import os
import shutil
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

NAMES: Final = frozenset({"python", "python3", f"python3.{sys.version_info.minor}"})
_ACTIVE: Final = ("VIRTUAL_ENV", "CONDA_PREFIX")
_TOOL_MARKS: Final = ("uv-receipt.toml", "pipx_metadata.json")
"""Files that uv and pipx leave in an environment that holds a tool, where nobody trains."""


def interpreter_of(command: Sequence[str], env: Mapping[str, str]) -> str:
    """Return the interpreter that a command starts, as a path where it is named by a bare word; empty for others."""
    word = command[0] if command else ""
    if word == sys.executable:
        return word
    if word not in NAMES:
        return ""
    path = shutil.which(word, path=env.get("PATH", os.defpath))
    if path is None or is_same_interpreter(path) or _means_our_environment(path, env):
        return sys.executable
    return path


def is_this_python(command: Sequence[str], env: Mapping[str, str]) -> bool:
    """Return whether a command starts the interpreter that runs now, with the same packages."""
    return interpreter_of(command, env) == sys.executable


def _means_our_environment(path: str, env: Mapping[str, str]) -> bool:
    """Return whether specon's own environment is meant though PATH leads to ``path``."""
    folder = Path(path).absolute().parent.parent
    active = [Path(env[name]).resolve() for name in _ACTIVE if env.get(name)]
    theirs = (folder / "pyvenv.cfg").exists() or folder.resolve() in active
    own = Path(sys.prefix)
    is_tool = any((own / mark).exists() for mark in _TOOL_MARKS)
    return sys.prefix != sys.base_prefix and not is_tool and not theirs


def is_same_interpreter(path: str) -> bool:
    """Return whether the file ``path`` is this interpreter, in this environment."""
    there, here = Path(path).absolute(), Path(sys.executable).absolute()
    # Links of two environments may lead to the same program: the folder that they are in tells them apart.
    return there.resolve() == here.resolve() and there.parent.resolve() == here.parent.resolve()
