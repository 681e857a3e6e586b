"""Print what pyproject.toml asks for, one requirement a line: ``python requirements.py pytorch,tensorflow``.

An image installs this before the code is copied, so that a change of code installs nothing again.
"""

import sys
import tomllib
from pathlib import Path

OURS = "hera-specon-hooks"
"""It comes with the code, like the project itself; what it depends on is a part of MLflow, which is there anyway."""


def requirements(pyproject: str, extras: list[str]) -> list[str]:
    """Return what the project and its ``extras`` depend on, but for what is made of this repository.

    Raises:
        SystemExit: naming an extra that the project does not have, and those it has.
    """
    project = tomllib.loads(pyproject)["project"]
    optional = project["optional-dependencies"]
    for extra in extras:
        if extra not in optional:
            sys.exit(f"there is no extra {extra!r}: choose among {', '.join(optional)}")
    wanted = [*project["dependencies"], *(line for extra in extras for line in optional[extra])]
    return [line for line in wanted if not line.startswith(OURS)]


if __name__ == "__main__":
    chosen = [extra for argument in sys.argv[1:] for extra in argument.split(",") if extra]
    sys.stdout.write("\n".join(requirements(Path("pyproject.toml").read_text(), chosen)) + "\n")
