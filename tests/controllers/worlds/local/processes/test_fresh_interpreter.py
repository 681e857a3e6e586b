"""A forked program must not notice that it was forked: the same files run both ways must say the same."""

import importlib.util
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from controllers.worlds.local.processes import Exit, Launcher, ProcessSpec
from controllers.worlds.local.processes.interpreter import program_of
from controllers.worlds.local.processes.preload import Plans
from controllers.worlds.local.processes.warmth import Warmth, warmth_of

Run = Callable[..., Exit]
DESCRIBE = """
import json, os, signal, sys, threading
# A program that was not forked would show nothing of what a fork changes.
if "fork_server" in open("/proc/self/cmdline").read(): open("forked", "w").close()
print(json.dumps({
    "argv": sys.argv, "path": sys.path, "name": __name__, "file": __file__, "package": __package__,
    "words": sys.orig_argv[1:], "globals": sorted(globals()), "annotations": __annotations__,
    "spec": __spec__ and __spec__.name, "main": sys.modules["__main__"].__dict__ is globals(),
    "cwd": os.getcwd(), "threads": threading.active_count(), "stdin": sys.stdin.read(),
    "signals": [str(signal.getsignal(s)) for s in (signal.SIGTERM, signal.SIGINT, signal.SIGCHLD, signal.SIGPIPE)],
    "mask": sorted(signal.pthread_sigmask(signal.SIG_BLOCK, [])),
    "descriptors": sorted(os.listdir("/proc/self/fd"))[:3],
    "ours": sorted(name for name in sys.modules if name.startswith("controllers")),
    "stdout": [sys.stdout.name, sys.stdout.encoding, sys.stdout.errors, sys.stdout.line_buffering],
}))
"""
ENDINGS = {
    "returns": "print('done')",
    "exits_with_number": "import sys; sys.exit(75)",
    "exits_with_large_number": "import sys; sys.exit(256 + 7)",
    "exits_with_text": "import sys; sys.exit('no data')",
    "exits_with_nothing": "raise SystemExit",
    "raises": "def f():\n    raise ValueError('bad')\nf()",
    "raises_with_cause": "try:\n    1 / 0\nexcept ZeroDivisionError as e:\n    raise KeyError('x') from e",
    "hooked": "import sys; sys.excepthook = lambda *a: print('hooked', a[0].__name__)\nraise OSError",
    "syntax": "x = = 1",
    "at_exit": "import atexit; atexit.register(print, 'bye'); print('hello')",
    "at_exit_after_error": "import atexit; atexit.register(print, 'bye'); raise RuntimeError('late')",
    "thread": "import threading, time\nt = threading.Timer(0.2, print, ['from thread']); t.start()\nprint('main')",
    "thread_uses_main": (
        "import threading, sys, pickle\nclass A: pass\n"
        "threading.Timer(0.2, lambda: print(type(pickle.loads(pickle.dumps(A()))).__name__)).start()"
    ),
    "executor": "from concurrent.futures import ThreadPoolExecutor\nThreadPoolExecutor().submit(print, 'pooled')",
    "dies": "import os, signal; print('x', flush=True); os.kill(os.getpid(), signal.SIGKILL)",
    "hard_exit": "import os; os._exit(9)",
    "unflushed": "import sys; sys.stdout.write('no newline')",
    "processes": (
        "import multiprocessing as m\ndef f(x): return x * 2\n"
        "if __name__ == '__main__':\n    print(m.get_context('spawn').Pool(1).map(f, [1, 2]))"
    ),
}


def fresh(command: list[str], cwd: Path, env: dict[str, str]) -> tuple[int, str]:
    done = subprocess.run(
        [sys.executable, *command],
        cwd=cwd,
        env=env,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    return done.returncode if done.returncode >= 0 else 128 - done.returncode, done.stdout


@pytest.mark.parametrize("name", ENDINGS)
def test_a_program_ends_as_in_a_fresh_interpreter(run: Run, tmp_path: Path, name: str) -> None:
    (tmp_path / "program.py").write_text(ENDINGS[name])
    ended = run("python", "program.py")
    assert (ended.code, (tmp_path / "trial.log").read_text()) == fresh(["program.py"], tmp_path, dict(os.environ))


@pytest.mark.parametrize(
    "command",
    [
        ["program.py", "-x", "1"],
        ["-u", "program.py"],
        ["sub/program.py"],
        ["-m", "program", "a b"],
        ["-m", "sub.program"],
        ["-m", "sub"],
        ["-m", "no_such_module"],
        ["-m", "no.such"],
        ["no_such_file.py"],
        ["-c", "import sys; print(sys.argv)", "x"],
        ["-X", "utf8", "program.py"],
        ["link.py"],
        ["sub"],
    ],
)
@pytest.mark.parametrize("python_path", ["", "elsewhere"])
def test_a_program_finds_itself_as_in_a_fresh_interpreter(
    run: Run, spec: Callable[..., ProcessSpec], tmp_path: Path, command: list[str], python_path: str
) -> None:
    (tmp_path / "sub").mkdir()
    for file in ("program.py", "sub/program.py", "sub/__main__.py"):
        (tmp_path / file).write_text(DESCRIBE)
    (tmp_path / "sub" / "__init__.py").write_text("")
    (tmp_path / "link.py").symlink_to("sub/program.py")
    env = {**spec().env, "PYTHONPATH": python_path}
    ended = run("python", *command, env=env)
    is_there = not any(word.startswith("no") for word in command)
    assert (tmp_path / "forked").exists() is (is_there and program_of(["python", *command]) is not None)
    code, said = fresh(command, tmp_path, env)
    log = (tmp_path / "trial.log").read_text()
    assert ended.code == code
    assert _readable(log) == _readable(said)


def _readable(text: str) -> object:
    try:
        return json.loads(text)
    except ValueError:
        return text


def test_settings_that_only_a_new_interpreter_reads_get_a_new_interpreter(run: Run, tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text("import sys; print(sys.flags.hash_randomization, hash('a'))")
    run("python", "program.py", env={"PYTHONHASHSEED": "0"})
    expected = fresh(["program.py"], tmp_path, {**os.environ, "PYTHONHASHSEED": "0"})
    assert (tmp_path / "trial.log").read_text() == expected[1]


def test_a_program_may_have_modules_of_the_same_name_as_ours(run: Run, tmp_path: Path) -> None:
    (tmp_path / "controllers.py").write_text("MINE = 'mine'")
    (tmp_path / "program.py").write_text("import controllers; print(controllers.MINE)")
    assert run("python3", "program.py").code == 0
    assert (tmp_path / "trial.log").read_text() == "mine\n"


DRAWS = {
    "random": "import mlflow_hooks; import random; print(random.random())",
    "numpy": "import numpy; print(numpy.random.random())",
    "torch": "import torch; print(torch.rand(1).item(), torch.nn.Linear(1, 1).weight.item())",
    "keras": "import keras; print(keras.random.uniform((1,)), keras.layers.Dense(1)(keras.ops.ones((1, 1))))",
}


@pytest.mark.parametrize("library", [pytest.param(one, marks=[pytest.mark.slow] * (one == "keras")) for one in DRAWS])
def test_each_attempt_draws_chance_of_its_own(tmp_path: Path, library: str) -> None:
    needs("mlflow" if library == "random" else library)
    (tmp_path / "draw.py").write_text(DRAWS[library])
    first, second = said_by(Launcher(warm("draw.py", tmp_path), 1.0, tmp_path / "server.log"), tmp_path, "draw.py", 2)
    assert first != second


def needs(library: str) -> None:
    """Skip where a library is not installed, without the seconds of its import."""
    if importlib.util.find_spec(library) is None:
        pytest.skip(f"{library} is not installed")


def warm(script: str, folder: Path, **env: str) -> list[Warmth]:
    found = warmth_of(Plans(), ("python", script), {**os.environ, **env}, folder)
    assert found is not None
    assert found.steps
    return [found]


def said_by(
    launcher: Launcher, folder: Path, script: str, attempts: int = 1, *, env: Mapping[str, str] | None = None
) -> list[str]:
    """Run a script as several attempts, and return what each has printed last."""
    for key in map(str, range(attempts)):
        log = folder / f"{key}.log"
        launcher.start(ProcessSpec(key, ("python", script), {**os.environ, **(env or {})}, folder, log))
    deadline, ended = time.monotonic() + 120, 0
    while ended < attempts and time.monotonic() < deadline:
        ended += len(launcher.exits())
        time.sleep(0.02)
    launcher.close(0.0)
    return [(folder / f"{key}.log").read_text().strip().splitlines()[-1] for key in range(attempts)]


def test_ctrl_c_sent_to_a_program_ends_it_as_a_shell_says(
    launcher: Launcher, spec: Callable[..., ProcessSpec], wait_exits: Callable[[int], list[Exit]], tmp_path: Path
) -> None:
    (tmp_path / "program.py").write_text("import time; print('ready', flush=True); time.sleep(1000)")
    pid = launcher.start(spec("python", "program.py"))
    deadline = time.monotonic() + 60
    while "ready" not in (tmp_path / "trial.log").read_text() and time.monotonic() < deadline:
        time.sleep(0.02)
    os.kill(pid, signal.SIGINT)
    assert wait_exits(1)[0].code == 130


@pytest.mark.pytorch
def test_preloaded_torch_uses_the_threads_of_the_attempts_environment(tmp_path: Path) -> None:
    needs("torch")
    (tmp_path / "threads.py").write_text("import torch; print(torch.get_num_threads())")
    launcher = Launcher(warm("threads.py", tmp_path, OMP_NUM_THREADS="1"), 1.0, tmp_path / "server.log")
    assert said_by(launcher, tmp_path, "threads.py", env={"OMP_NUM_THREADS": "2"}) == ["2"]


def test_a_variable_that_differs_from_the_servers_gets_a_new_process(tmp_path: Path) -> None:
    """Libraries read variables while they are imported, and only they know which."""
    (tmp_path / "seen.py").write_text("import sys\nwas = 'numpy' in sys.modules\nimport numpy\nprint(was)")
    for given, forked in (({}, "True"), ({"RANK": "1"}, "True"), ({"A_LIBRARYS_SETTING": "1"}, "False")):
        launcher = Launcher(warm("seen.py", tmp_path), 1.0, tmp_path / "server.log")
        assert said_by(launcher, tmp_path, "seen.py", env=given) == [forked], given


def test_a_file_beside_the_script_hides_a_module_from_libraries_too(tmp_path: Path) -> None:
    (tmp_path / "seen.py").write_text("import numpy\nimport random\nprint(random.MINE)")
    launcher = Launcher(warm("seen.py", tmp_path), 1.0, tmp_path / "server.log")
    (tmp_path / "random.py").write_text("from secrets import *\nMINE = 'mine'\ndef __getattr__(name): return None\n")
    said = said_by(launcher, tmp_path, "seen.py")
    assert said == [fresh(["seen.py"], tmp_path, dict(os.environ))[1].strip().splitlines()[-1]]


@pytest.mark.slow
@pytest.mark.tensorflow
@pytest.mark.pytorch
def test_a_backend_chosen_at_the_top_of_a_script_is_the_one_that_keras_has(tmp_path: Path) -> None:
    needs("keras")
    needs("torch")
    (tmp_path / "own.py").write_text(
        "import os\nos.environ['KERAS_BACKEND'] = 'torch'\nimport keras\nprint(keras.backend.backend())"
    )
    assert said_by(Launcher(warm("own.py", tmp_path), 1.0, tmp_path / "server.log"), tmp_path, "own.py") == ["torch"]
    (tmp_path / "given.py").write_text("import keras\nprint(keras.backend.backend())")
    launcher = Launcher(warm("given.py", tmp_path), 1.0, tmp_path / "server.log")
    assert said_by(launcher, tmp_path, "given.py", env={"KERAS_BACKEND": "torch"}) == ["torch"]


CLOSED = {
    "stdout": "import sys; print('x'); sys.stdout.close()",
    "stderr": "import sys; sys.stderr.close()",
    "both": "import sys; sys.stdout.close(); sys.stderr.close()",
    "none": "import sys; sys.stdout = sys.stderr = None",
    "text_without_stderr": "import sys; sys.stderr.close(); sys.exit('told to nobody')",
    "error_without_stderr": "import sys; sys.stderr.close(); raise ValueError",
    "bad_hook": "import sys; sys.excepthook = lambda *a: 1 / 0\nraise ValueError('bad')",
    "replaced": "import sys\nclass Tee:\n    def write(self, text): pass\nsys.stdout = Tee(); print('x')",
    "broken": (
        "import sys\nclass Tee:\n    def write(self, text): pass\n    def flush(self): raise OSError(28, 'full')\n"
        "sys.stdout = Tee()"
    ),
    "descriptor": "import os; print('x', flush=True); os.close(1)",
}


@pytest.mark.parametrize("name", CLOSED)
def test_a_program_may_close_or_replace_its_streams(run: Run, tmp_path: Path, name: str) -> None:
    (tmp_path / "program.py").write_text(CLOSED[name])
    assert run("python", "program.py").code == fresh(["program.py"], tmp_path, dict(os.environ))[0]
