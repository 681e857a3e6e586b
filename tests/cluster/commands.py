"""Running other programs, with an error that says what failed and what it wrote."""

import subprocess
from collections.abc import Mapping
from pathlib import Path


class ClusterError(Exception):
    """Something that a test cluster needs is missing or did not work. The message says what to do."""


def run(
    *arguments: str | Path,
    text_input: str | None = None,
    environment: Mapping[str, str] | None = None,
    folder: Path | None = None,
    seconds: float = 120,
) -> str:
    """Run a program to its end and return what it wrote to its standard output.

    Raises:
        ClusterError: it failed, with the last of what it wrote to its standard error.
    """
    command = [str(argument) for argument in arguments]
    try:
        done = subprocess.run(
            command,
            input=text_input,
            env=environment,
            cwd=folder,
            timeout=seconds,
            text=True,
            capture_output=True,
            check=False,
        )
    except FileNotFoundError as missing:
        message = f"{command[0]} is not installed"
        raise ClusterError(message) from missing
    except subprocess.TimeoutExpired as late:
        message = f"not done after {seconds:g} s: {' '.join(command)}"
        raise ClusterError(message) from late
    if done.returncode:
        message = f"exit code {done.returncode} of: {' '.join(command)}\n{done.stderr[-3000:]}"
        raise ClusterError(message)
    return done.stdout
