"""The process that searches, seen from the controller: started when it is needed, ended when it takes too long."""

import json
import os
import select
import subprocess
import time
from contextlib import suppress
from typing import Any, Final

from controllers.core.errors import SearchError
from controllers.core.own_program import own_command, own_environment
from mlflow_hooks import foreign_json

_MODULE: Final = "controllers.search.worker"
_MOST_ANSWER: Final = 2**20
_CHUNK: Final = 2**16
START_S: Final = 60.0
"""Seconds that a new process gets beyond the first answer's: it loads Optuna, perhaps from a cold disk."""
MOST_BYTES: Final = 384 * 2**20
"""Of the process: the libraries' sixty, studies, and the largest search that is allowed."""
_QUIET: Final = {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}
"""A thread of a library for each core of a large node would use up the memory by its stack alone."""


class SearchTooSlowError(SearchError):
    """A search gave no answer within its time; the process that it kept busy was ended."""


class SearchProcess:
    """One process; it is started again at the next question after it ended.

    Args:
        answer_s: Seconds that it has for an answer.
        most_bytes: Of memory that it may have.
    """

    def __init__(self, answer_s: float, most_bytes: int = MOST_BYTES) -> None:
        self._answer_s = answer_s
        self._most_bytes = most_bytes
        self._process: subprocess.Popen[bytes] | None = None
        self._fresh = False
        self.started = 0
        """How often it was started: whatever an earlier one knew is lost."""

    def ready(self) -> None:
        """Start the process if none is there."""
        if self._process is not None and self._process.poll() is None:
            return
        self.close()
        self._process = subprocess.Popen(
            own_command(_MODULE, str(self._most_bytes)),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env=own_environment(os.environ) | _QUIET,
        )
        self.started += 1
        self._fresh = True

    def ask(self, question: dict[str, Any]) -> dict[str, Any]:
        """Return the answer to ``question``.

        Raises:
            SearchTooSlowError: None came in time.
            SearchError: The process ended instead.
        """
        self.ready()
        assert self._process is not None  # noqa: S101 - for mypy
        within_s = self._answer_s + (START_S if self._fresh else 0.0)
        try:
            return self._ask(self._process, json.dumps(question).encode() + b"\n", within_s)
        except (OSError, ValueError) as error:
            self.close()
            message = f"the process that searches ended in the middle of it ({type(error).__name__})"
            raise SearchError(message) from error

    def _ask(self, process: "subprocess.Popen[bytes]", question: bytes, within_s: float) -> dict[str, Any]:
        assert process.stdin is not None  # noqa: S101 - it was opened as a pipe
        assert process.stdout is not None  # noqa: S101
        deadline = time.monotonic() + within_s
        process.stdin.write(question)
        process.stdin.flush()
        answer = b""
        while not answer.endswith(b"\n"):
            left = deadline - time.monotonic()
            if left <= 0 or not select.select([process.stdout], [], [], left)[0]:
                self.close()
                message = f"the search found nothing within {self._answer_s:g} s"
                raise SearchTooSlowError(message)
            piece = os.read(process.stdout.fileno(), _CHUNK)
            answer += piece
            if not piece or len(answer) > _MOST_ANSWER:
                message = "it sent no whole answer"
                raise OSError(message)
        self._fresh = False
        parsed: dict[str, Any] = foreign_json.parsed(answer)
        return parsed

    def close(self) -> None:
        """End the process."""
        process, self._process = self._process, None
        if process is None:
            return
        with suppress(OSError):
            process.kill()
        process.wait()
        for pipe in (process.stdin, process.stdout):
            if pipe is not None:
                with suppress(OSError):
                    pipe.close()
