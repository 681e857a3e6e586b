"""Running a Python program in this process the way a fresh interpreter would."""

import atexit
import builtins
import contextlib
import importlib
import importlib.machinery
import io
import os
import runpy
import signal
import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType, TracebackType
from typing import Final

_INTERPRETERS: Final = frozenset({"python", "python3", f"python3.{sys.version_info.minor}", sys.executable})
_APPLIED_HERE: Final = frozenset({"PYTHONPATH", "PYTHONUNBUFFERED"})
_HERE: Final = str(Path(__file__).parent)
_FLUSH_FAILED: Final = 120


@dataclass(frozen=True, slots=True)
class PythonProgram:
    """``python -m target arguments`` or ``python target arguments``."""

    target: str
    arguments: tuple[str, ...]
    is_module: bool
    unbuffered: bool


def means_this_python(command: Sequence[str]) -> bool:
    """Return whether a command starts the interpreter that runs now."""
    return command[0] in _INTERPRETERS


def parsed(command: Sequence[str], env: Mapping[str, str]) -> PythonProgram | None:
    """Return the program that ``command`` means, None if only a new process does it justice.

    That is so for other programs, for other options of Python, and for variables in ``env`` that
    Python reads only when it starts and that differ from this process's.
    """
    if not means_this_python(command) or _python_settings(env) != _python_settings(os.environ):
        return None
    rest = list(command[1:])
    unbuffered = rest[:1] == ["-u"]
    rest = rest[unbuffered:]
    is_module = rest[:1] == ["-m"]
    rest = rest[is_module:]
    if not rest or rest[0].startswith("-") or not (is_module or rest[0].endswith(".py")):
        return None
    return PythonProgram(rest[0], tuple(rest[1:]), is_module, unbuffered or bool(env.get("PYTHONUNBUFFERED")))


def run(program: PythonProgram, site_path: Sequence[str]) -> int:
    """Run ``program`` to the end of its threads and exit handlers and return its exit code.

    Args:
        program: what to run; the environment and the working folder are set already.
        site_path: ``sys.path`` without the first entry and without those of PYTHONPATH.
    """
    if program.unbuffered:
        sys.stdout = io.TextIOWrapper(io.FileIO(1, "w", closefd=False), write_through=True)
    main = ModuleType("__main__")
    main.__dict__["__builtins__"] = builtins
    sys.modules["__main__"] = main
    first = str(Path.cwd()) if program.is_module else str(Path(os.path.realpath(program.target)).parent)
    sys.path[:] = [first, *_from_environment(), *site_path]
    importlib.invalidate_caches()
    sys.argv[:] = [program.target, *program.arguments]
    if program.is_module:
        # What `python -m` itself calls: run_module() would take __main__ away before threads and exit handlers end.
        as_main = runpy._run_module_as_main  # type: ignore[attr-defined]  # noqa: SLF001 - no public way
        return _finished(lambda: as_main(program.target))
    return _finished(lambda: _run_file(program, main))


def _run_file(program: PythonProgram, main: ModuleType) -> None:
    file = str(Path(program.target).absolute())
    try:
        with io.open_code(file) as opened:
            source = opened.read()
    except OSError as error:
        # Fresh interpreters end with 2 and one line here.
        sys.stderr.write(f"{sys.executable}: can't open file {file!r}: [Errno {error.errno}] {error.strerror}\n")
        raise SystemExit(2) from None
    loader = importlib.machinery.SourceFileLoader("__main__", file)
    main.__dict__.update(__file__=file, __cached__=None, __loader__=loader, __spec__=None)
    exec(compile(source, file, "exec", dont_inherit=True), main.__dict__)  # noqa: S102 - this is an interpreter


def _finished(program: Callable[[], None]) -> int:
    """Run and end a program; what Python does at its end, less the tearing down of modules."""
    code = _outcome(program)
    code = _outcome(threading._shutdown) or code  # type: ignore[attr-defined]  # noqa: SLF001 - no public way
    atexit._run_exitfuncs()  # noqa: SLF001 - no public way
    return code or _flush()


def _outcome(call: Callable[[], None]) -> int:
    try:
        call()
    except SystemExit as stop:
        return _exit_code(stop)
    except BaseException as error:  # noqa: BLE001 - the last frame of a program
        error.with_traceback(_without_us(error.__traceback__))
        sys.excepthook(type(error), error, error.__traceback__)
        return 128 + signal.SIGINT if isinstance(error, KeyboardInterrupt) else 1
    return 0


def _exit_code(stop: SystemExit) -> int:
    if stop.code is None or isinstance(stop.code, int):
        return (stop.code or 0) & 0xFF
    sys.stderr.write(f"{stop.code}\n")
    return 1


def _without_us(trace: TracebackType | None) -> TracebackType | None:
    while trace is not None and trace.tb_frame.f_code.co_filename.startswith(_HERE):
        trace = trace.tb_next
    return trace


def _flush() -> int:
    with contextlib.suppress(OSError):
        sys.stderr.flush()
    try:
        sys.stdout.flush()
    except OSError:
        return _FLUSH_FAILED
    return 0


def _from_environment() -> list[str]:
    return [os.path.realpath(entry) for entry in os.environ.get("PYTHONPATH", "").split(os.pathsep) if entry]


def site_path() -> list[str]:
    """Return ``sys.path`` of this process, itself run by ``-m``, without what its start put in front."""
    ours = set(_from_environment())
    return [entry for entry in sys.path[1:] if os.path.realpath(entry) not in ours]


def _python_settings(env: Mapping[str, str]) -> dict[str, str]:
    return {name: value for name, value in env.items() if name.startswith("PYTHON") and name not in _APPLIED_HERE}
