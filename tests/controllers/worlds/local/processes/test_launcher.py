import os
import signal
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from controllers.worlds.local.processes import Exit, Launcher, LaunchError, ProcessSpec, proctree
from controllers.worlds.local.processes.warmth import Warmth

Spec = Callable[..., ProcessSpec]
WaitExits = Callable[[int], list[Exit]]
LEAVES_CHILDREN = "sleep 1000 & (setsid sleep 1000 &) ;"
IGNORES_TERM = "import signal, time; signal.signal(15, signal.SIG_IGN); print('ready', flush=True); time.sleep(1000)"


def wait_for(condition: Callable[[], bool]) -> bool:
    deadline = time.monotonic() + 60
    while not condition() and time.monotonic() < deadline:
        time.sleep(0.02)
    return condition()


def says(log: Path, word: str) -> Callable[[], bool]:
    return lambda: log.exists() and word in log.read_text()


@pytest.mark.parametrize(
    ("script", "code"), [("exit 0", 0), ("exit 75", 75), ("kill -KILL $$", 137), ("kill -TERM $$", 143)]
)
def test_exit_codes_are_as_a_shell_gives_them(
    launcher: Launcher, spec: Spec, wait_exits: WaitExits, script: str, code: int
) -> None:
    pid = launcher.start(spec("/bin/sh", "-c", script))
    assert wait_exits(1) == [Exit("trial", pid, code)]
    assert launcher.exits() == []


def test_a_command_that_is_not_there_ends_with_127_and_one_that_may_not_run_with_126(
    launcher: Launcher, spec: Spec, wait_exits: WaitExits, tmp_path: Path
) -> None:
    (tmp_path / "data").write_text("")
    launcher.start(spec("no-such-command", key="a"))
    launcher.start(spec("./data", key="b"))
    assert {ended.key: ended.code for ended in wait_exits(2)} == {"a": 127, "b": 126}
    assert "no-such-command: No such file" in (tmp_path / "a.log").read_text()


def test_output_is_appended_and_the_environment_is_replaced(
    launcher: Launcher, wait_exits: WaitExits, tmp_path: Path
) -> None:
    log = tmp_path / "out.log"
    log.write_text("before\n")
    show = ("/bin/sh", "-c", "echo $GREETING$HOME; echo oops >&2; pwd; cat")
    launcher.start(ProcessSpec("a", show, {"GREETING": "hello"}, tmp_path, log))
    wait_exits(1)
    assert log.read_text() == f"before\nhello\noops\n{tmp_path}\n"


def test_an_attempt_leads_a_session_and_is_in_its_groups_before_it_works(
    launcher: Launcher, spec: Spec, tmp_path: Path
) -> None:
    files = tuple(str(tmp_path / name) for name in ("cpu", "cpuacct"))
    pid = launcher.start(spec("sleep", "1000", join=files))
    assert [Path(file).read_text() for file in files] == [str(pid)] * 2
    assert os.getsid(pid) == os.getpgid(pid) == pid != os.getsid(0)


def test_what_can_not_be_started_is_refused_and_leaves_nothing(
    launcher: Launcher, spec: Spec, wait_exits: WaitExits, tmp_path: Path
) -> None:
    with pytest.raises(LaunchError, match="no/such/group"):
        launcher.start(spec("sleep", "1000", join=("/no/such/group",)))
    with pytest.raises(LaunchError, match="no-folder"):
        launcher.start(ProcessSpec("trial", ("true",), {}, tmp_path / "no-folder", tmp_path / "log"))
    with pytest.raises(LaunchError, match="no-folder"):
        launcher.start(ProcessSpec("trial", ("true",), {}, tmp_path, tmp_path / "no-folder" / "log"))
    with pytest.raises(LaunchError, match="no command"):
        launcher.start(spec())
    pid = launcher.start(spec("/bin/sh", "-c", "exit 3"))
    assert wait_exits(1) == [Exit("trial", pid, 3)]


def test_a_key_is_taken_while_its_attempt_runs(launcher: Launcher, spec: Spec, wait_exits: WaitExits) -> None:
    launcher.start(spec("sleep", "1000"))
    with pytest.raises(LaunchError, match="'trial' is running"):
        launcher.start(spec("true"))
    launcher.kill("trial")
    wait_exits(1)
    launcher.start(spec("true"))
    assert wait_exits(1)[0].code == 0


def test_only_the_first_process_is_asked_and_its_workers_live_until_it_has_saved(
    launcher: Launcher, spec: Spec, wait_exits: WaitExits, tmp_path: Path
) -> None:
    child = "trap 'echo a worker was asked' TERM; while :; do sleep 0.1; done"
    script = f'trap "sleep 0.3; echo saved; exit 75" TERM; sh -c "{child}" & sleep 0.3; echo ready; wait'
    launcher.start(spec("/bin/sh", "-c", script))
    log = tmp_path / "trial.log"
    assert wait_for(says(log, "ready"))
    launcher.terminate("trial")
    assert wait_exits(1)[0].code == 75
    assert log.read_text() == "ready\nsaved\n"


def test_sigterm_wakes_a_stopped_attempt(launcher: Launcher, spec: Spec, wait_exits: WaitExits) -> None:
    pid = launcher.start(spec("sleep", "1000"))
    os.killpg(pid, signal.SIGSTOP)
    launcher.terminate("trial")
    assert wait_exits(1) == [Exit("trial", pid, 143)]


@pytest.mark.parametrize("code", [0, 137])
def test_whoever_an_attempt_leaves_behind_is_killed_even_in_a_session_of_its_own(
    launcher: Launcher, spec: Spec, wait_exits: WaitExits, tmp_path: Path, code: int
) -> None:
    pid = launcher.start(spec("/bin/sh", "-c", f"{LEAVES_CHILDREN} until [ -e go ]; do sleep 0.05; done"))
    assert wait_for(lambda: len(sleepers(pid)) == 2)
    tree = sleepers(pid)
    if code:
        launcher.kill("trial")
    else:
        (tmp_path / "go").touch()
    assert wait_exits(1) == [Exit("trial", pid, code)]
    assert wait_for(lambda: not any(map(proctree.alive, tree)))


def sleepers(root: int) -> list[int]:
    """Return the processes of the tree that sleep for long."""
    return [pid for pid in proctree.tree(root) if b"1000" in Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")]


def test_a_signal_to_an_attempt_that_ended_does_nothing(launcher: Launcher, spec: Spec, wait_exits: WaitExits) -> None:
    launcher.start(spec("true"))
    wait_exits(1)
    launcher.terminate("trial")
    launcher.kill("never")
    launcher.start(spec("true"))
    assert wait_exits(1)[0].code == 0


def test_close_gives_grace_then_kills_and_reports_the_exits(launcher: Launcher, spec: Spec, tmp_path: Path) -> None:
    launcher.start(spec("sleep", "1000", key="polite"))
    launcher.start(spec("python", "-c", IGNORES_TERM, key="stubborn"))
    assert wait_for(says(tmp_path / "stubborn.log", "ready"))
    launcher.close(0.5)
    launcher.close(0.5)
    assert {ended.key: ended.code for ended in launcher.exits()} == {"polite": 143, "stubborn": 137}
    with pytest.raises(LaunchError, match="closed"):
        launcher.start(spec("true"))


def test_a_killed_fork_server_takes_its_attempts_along_and_is_replaced(
    launcher: Launcher, spec: Spec, wait_exits: WaitExits, tmp_path: Path
) -> None:
    script = "trap '' TERM; sleep 1000 & echo ready; wait; sleep 1000"
    pids = {key: launcher.start(spec("/bin/sh", "-c", script, key=key)) for key in "ab"}
    assert all(wait_for(says(tmp_path / f"{key}.log", "ready")) for key in pids)
    (server,) = proctree.children(launcher._servers[0]._process.pid)
    tree = [pid for root in pids.values() for pid in proctree.tree(root)]
    os.kill(server, signal.SIGKILL)
    assert sorted(wait_exits(2), key=lambda ended: ended.key) == [Exit(key, pid, 137) for key, pid in pids.items()]
    assert wait_for(lambda: not any(map(proctree.alive, tree)))
    launcher.start(spec("true"))
    assert wait_exits(1)[0].code == 0


def test_a_module_that_can_not_be_preloaded_is_reported_and_the_rest_goes_on(tmp_path: Path) -> None:
    launcher = Launcher([Warmth(dict(os.environ), ("no_such_module", "json"))], 1.0, tmp_path / "server.log")
    (tmp_path / "show.py").write_text("print(1)")
    launcher.start(ProcessSpec("a", ("python", "show.py"), dict(os.environ), tmp_path, tmp_path / "a.log"))
    launcher.close(30.0)
    assert "not preloaded: no_such_module" in (tmp_path / "server.log").read_text()


def test_an_attempt_whose_log_is_a_pipe_is_not_started_and_holds_nothing_up(
    launcher: Launcher, spec: Spec, tmp_path: Path
) -> None:
    os.mkfifo(tmp_path / "trial.log")
    with pytest.raises(LaunchError, match="cannot start"):
        launcher.start(spec("true"))


def test_once_a_run_is_stopped_nobody_waits_for_imports(tmp_path: Path) -> None:
    endless = tmp_path / "endless.py"
    endless.write_text("import time\ntime.sleep(1000)\n")
    made = Launcher([Warmth({**os.environ, "PYTHONPATH": str(tmp_path)}, ("endless",))], 1.0, tmp_path / "log")
    made.wait_ready(lambda: True)
    made.close(0.0)
