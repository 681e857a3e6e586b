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
from typing import Final, TextIO

_HERE: Final = str(Path(__file__).parent)
_FLUSH_FAILED: Final = 120


@dataclass(frozen=True, slots=True)
class PythonProgram:
    """``python -m target arguments`` or ``python target arguments``."""

    target: str
    arguments: tuple[str, ...]
    is_module: bool
    unbuffered: bool


def program_of(command: Sequence[str]) -> PythonProgram | None:
    """Return the program that a command of some Python means, None if only a new process does it justice.

    That is so for other options of Python than ``-u`` and ``-m``, and for what is no ``.py`` file.
    """
    rest = list(command[1:])
    unbuffered = rest[:1] == ["-u"]
    rest = rest[unbuffered:]
    is_module = rest[:1] == ["-m"]
    rest = rest[is_module:]
    if not rest or rest[0].startswith("-") or not (is_module or rest[0].endswith(".py")):
        return None
    return PythonProgram(rest[0], tuple(rest[1:]), is_module, unbuffered)


def would_find_others(program: PythonProgram, cwd: Path, env: Mapping[str, str], ours: str) -> bool:
    """Return whether the program, run by hand, would get another module than one that is imported here already.

    A file ``random.py`` beside a script hides that of Python, for every library too.

    Args:
        program: what to run.
        cwd: its folder.
        env: its environment.
        ours: a package of this process that the program will not see.
    """
    if env.get("PYTHONSAFEPATH"):
        return True
    first = cwd if program.is_module else Path(os.path.realpath(cwd / program.target)).parent
    elsewhere = [cwd / entry for entry in env.get("PYTHONPATH", "").split(os.pathsep) if entry]
    here = {name.partition(".")[0] for name in sys.modules} - {ours, "__main__"}
    return any(_hides(folder, here) for folder in (first, *elsewhere))


def _hides(folder: Path, here: set[str]) -> bool:
    """Return whether ``folder`` has another module or package by the name of one that is imported."""
    try:
        names = os.listdir(folder)  # noqa: PTH208 - names are all that counts
    except OSError:
        return False
    files = {name.partition(".")[0] for name in names if name.endswith(tuple(importlib.machinery.all_suffixes()))}
    packages = {name for name in here & set(names) if (folder / name / "__init__.py").exists()}
    return any(not _came_from(folder, name) for name in here & files | packages)


def _came_from(folder: Path, name: str) -> bool:
    file = getattr(sys.modules.get(name), "__file__", None)
    return file is not None and Path(file).resolve().is_relative_to(folder.resolve())


def run(program: PythonProgram, site_path: Sequence[str]) -> int:
    """Run ``program`` to the end of its threads and exit handlers and return its exit code.

    Args:
        program: what to run; the environment and the working folder are set already.
        site_path: the path that it shall have, without the first entry and without those of PYTHONPATH.
    """
    if program.unbuffered or os.environ.get("PYTHONUNBUFFERED"):
        sys.stdout = _unbuffered(sys.stdout)
    main = ModuleType("__main__")
    main.__dict__.update(__builtins__=builtins, __annotations__={})
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


def _unbuffered(stdout: TextIO) -> TextIO:
    """Return standard output as ``python -u`` opens it."""
    raw = io.FileIO(1, "w", closefd=False)
    raw.name = stdout.name
    return io.TextIOWrapper(raw, stdout.encoding, stdout.errors, write_through=True)


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
        _show(error)
        return 128 + signal.SIGINT if isinstance(error, KeyboardInterrupt) else 1
    return 0


def _show(error: BaseException) -> None:
    """Show an error as Python does; a hook of the program's that fails, or a stream it has closed, changes no code."""
    try:
        sys.excepthook(type(error), error, error.__traceback__)
    except Exception:  # noqa: BLE001 - the program's own hook
        with contextlib.suppress(Exception):
            sys.stderr.write("Error in sys.excepthook:\n")
            sys.__excepthook__(*sys.exc_info())
            sys.stderr.write("\nOriginal exception was:\n")
            sys.__excepthook__(type(error), error, error.__traceback__)


def _exit_code(stop: SystemExit) -> int:
    if stop.code is None or isinstance(stop.code, int):
        return (stop.code or 0) & 0xFF
    with contextlib.suppress(Exception):
        sys.stderr.write(f"{stop.code}\n")
    return 1


def _without_us(trace: TracebackType | None) -> TracebackType | None:
    while trace is not None and trace.tb_frame.f_code.co_filename.startswith(_HERE):
        trace = trace.tb_next
    return trace


def _flush() -> int:
    """Flush the streams as Python does at its end: one that the program has closed is no failure."""
    failed = [not _flushed(stream) for stream in (sys.stdout, sys.stderr)]
    return _FLUSH_FAILED if any(failed) else 0


def _flushed(stream: TextIO | None) -> bool:
    try:
        if stream is not None and not getattr(stream, "closed", False):
            stream.flush()
    except Exception:  # noqa: BLE001 - the program may have put anything in its place
        return False
    return True


def _from_environment() -> list[str]:
    return [os.path.realpath(entry) for entry in os.environ.get("PYTHONPATH", "").split(os.pathsep) if entry]
