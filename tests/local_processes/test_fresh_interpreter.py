"""A forked program must not notice that it was forked: the same files run both ways must say the same."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from controllers.worlds.local.processes import Exit, Launcher, ProcessSpec

Run = Callable[..., Exit]
DESCRIBE = """
import json, os, signal, sys, threading
print(json.dumps({
    "argv": sys.argv, "path": sys.path, "name": __name__, "file": __file__, "package": __package__,
    "spec": __spec__ and __spec__.name, "main": sys.modules["__main__"].__dict__ is globals(),
    "cwd": os.getcwd(), "threads": threading.active_count(), "stdin": sys.stdin.read(),
    "signals": [str(signal.getsignal(s)) for s in (signal.SIGTERM, signal.SIGINT, signal.SIGCHLD, signal.SIGPIPE)],
    "mask": sorted(signal.pthread_sigmask(signal.SIG_BLOCK, [])),
    "descriptors": sorted(os.listdir("/proc/self/fd"))[:3],
    "ours": sorted(name for name in sys.modules if name.startswith("controllers")),
    "buffered": sys.stdout.line_buffering,
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
    run: Run, tmp_path: Path, command: list[str], python_path: str
) -> None:
    (tmp_path / "sub").mkdir()
    for file in ("program.py", "sub/program.py", "sub/__main__.py"):
        (tmp_path / file).write_text(DESCRIBE)
    (tmp_path / "sub" / "__init__.py").write_text("")
    (tmp_path / "link.py").symlink_to("sub/program.py")
    env = {**os.environ, "PYTHONPATH": python_path, "PYTHONDONTWRITEBYTECODE": "1"}
    ended = run("python", *command, env=env)
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


def test_each_attempt_draws_chance_of_its_own(tmp_path: Path) -> None:
    pytest.importorskip("numpy")
    (tmp_path / "draw.py").write_text("import random, numpy; print(random.random(), numpy.random.random())")
    launcher = Launcher(["numpy"], 1.0, tmp_path / "server.log")
    for key in "ab":
        spec = ProcessSpec(key, ("python", "draw.py"), dict(os.environ), tmp_path, tmp_path / f"{key}.log")
        launcher.start(spec)
    deadline = time.monotonic() + 60
    ended = 0
    while ended < 2 and time.monotonic() < deadline:
        ended += len(launcher.exits())
        time.sleep(0.02)
    launcher.close(0.0)
    first, second = ((tmp_path / f"{key}.log").read_text().split() for key in "ab")
    assert len(first) == len(second) == 2
    assert not set(first) & set(second)


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
    pytest.importorskip("torch")
    (tmp_path / "threads.py").write_text("import torch; print(torch.get_num_threads())")
    launcher = Launcher(["torch"], 1.0, tmp_path / "server.log")
    env = {**os.environ, "OMP_NUM_THREADS": "2"}
    launcher.start(ProcessSpec("a", ("python", "threads.py"), env, tmp_path, tmp_path / "a.log"))
    deadline = time.monotonic() + 60
    while not launcher.exits() and time.monotonic() < deadline:
        time.sleep(0.02)
    launcher.close(0.0)
    assert (tmp_path / "a.log").read_text() == "2\n"
