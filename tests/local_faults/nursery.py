"""Commands that start cheaply: a process that has imported what ``specon run`` imports, and forks one for each.

The imports take most of a short sweep's time, and a case has several commands.
"""

import importlib
import json
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final, NoReturn

_IMPORTED: Final = ("controllers.local_run.turns", "hera_specon.cli.run", "hera_specon.report.page")
_ROOT: Final = Path(__file__).resolve().parents[2]


class Nursery:
    """Starts commands one at a time. Ends with ``close``.

    Args:
        env: what it finds in its environment beside that of the tests.
    """

    def __init__(self, env: Mapping[str, str] | None = None) -> None:
        command = [sys.executable, "-m", __name__]
        self._process = subprocess.Popen(
            command,
            cwd=_ROOT,
            env={**os.environ, **(env or {})},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )

    def start(self, folder: Path, arguments: Sequence[str], env: Mapping[str, str], output: Path) -> int:
        """Start ``tests.local_faults.driven`` in ``folder`` with the whole environment ``env``; return its pid."""
        words = {"folder": str(folder), "arguments": [*arguments], "env": {**env}, "output": str(output)}
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(words) + "\n")
        self._process.stdin.flush()
        return self._answer()

    def wait(self) -> int:
        """Wait for the command; return its exit code, negative for the signal that ended it."""
        return self._answer()

    def close(self) -> None:
        """End."""
        self._process.communicate()

    def _answer(self) -> int:
        assert self._process.stdout is not None
        return int(self._process.stdout.readline())


def main() -> None:
    """Fork a command for each line, and tell its pid and then its exit code."""
    for name in _IMPORTED:
        importlib.import_module(name)

    for line in sys.stdin:
        pid = os.fork()
        if pid == 0:
            _become(json.loads(line))
        print(pid, flush=True)  # noqa: T201 - the answer
        _, status = os.waitpid(pid, 0)
        print(os.waitstatus_to_exitcode(status), flush=True)  # noqa: T201 - the answer


def _become(words: dict[str, object]) -> NoReturn:
    from tests.local_faults import driven  # noqa: PLC0415 - in the child, which it changes

    os.setsid()
    output = os.open(str(words["output"]), os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    null = os.open(os.devnull, os.O_RDONLY)
    for descriptor, number in ((null, 0), (output, 1), (output, 2)):
        os.dup2(descriptor, number)
    os.chdir(str(words["folder"]))
    os.environ.clear()
    os.environ.update(words["env"])  # type: ignore[call-overload]  # as Nursery.start wrote it
    sys.argv = ["specon", *words["arguments"]]  # type: ignore[misc]  # as Nursery.start wrote it
    code = 70
    try:
        driven.main()
        code = 0
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else int(end.code is not None)
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        # Not into what the nursery has at its exit; a command does without, as one that is killed.
        os._exit(code)


if __name__ == "__main__":
    main()
