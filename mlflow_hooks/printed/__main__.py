"""Run a program as an attempt of a trial, and read the metrics that it prints."""

import os
import sys

from mlflow_hooks import contract
from mlflow_hooks.errors import HookError
from mlflow_hooks.printed.attempt import PrintedAttempt, program_environment
from mlflow_hooks.printed.form import PrintedForm
from mlflow_hooks.printed.program import ReadProgram
from mlflow_hooks.settings import read_settings

_USAGE = 64


def main(words: list[str]) -> int:
    """Run the program after ``--``, and return its exit code."""
    if words[:1] != ["--"] or not words[1:]:
        sys.stderr.write("usage: python -m mlflow_hooks.printed -- PROGRAM [ARGUMENTS]\n")
        return _USAGE
    program = ReadProgram()
    try:
        form = PrintedForm.decode(os.environ.get(contract.ENV_PRINTED) or "{}")
        attempt = PrintedAttempt(read_settings(None, None, None, flush_s=10.0), form, program)
    except HookError as error:
        sys.stderr.write(f"mlflow_hooks: {error}\n")
        return _USAGE
    return attempt.end(program.run(words[1:], program_environment(), attempt.take))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
