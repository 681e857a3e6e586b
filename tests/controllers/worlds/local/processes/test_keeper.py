"""What a fork server leaves behind that was killed with everything around it."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

from controllers.worlds.local.processes import Exit, Launcher, ProcessSpec, proctree

REPOSITORY = Path(__file__).parents[5]
Spec = Callable[..., ProcessSpec]
WaitExits = Callable[[int], list[Exit]]
DAEMON = "(trap '' TERM; setsid sleep 1000 &) ; echo ready; exec sleep 2000"
SAVES = "trap 'echo saved; exit 75' TERM; echo ready; while :; do sleep 0.1; done"
CONTROLLER = """
import json, os, signal, sys, time
from pathlib import Path
from controllers.worlds.local.processes import Launcher, ProcessSpec, proctree
folder, script = Path(sys.argv[1]), sys.argv[2]
launcher = Launcher((), 2.0, folder / "server.log")
command = ("/bin/sh", "-c", script)
attempt = launcher.start(ProcessSpec("trial", command, dict(os.environ), folder, folder / "trial.log"))
while "ready" not in (folder / "trial.log").read_text():
    time.sleep(0.02)
keeper = launcher._servers[0]._process.pid
print(json.dumps([attempt, keeper, *proctree.children(keeper)]), flush=True)
time.sleep(1000)
"""


def wait_for(condition: Callable[[], bool]) -> bool:
    deadline = time.monotonic() + 60
    while not condition() and time.monotonic() < deadline:
        time.sleep(0.02)
    return condition()


def server_of(launcher: Launcher) -> int:
    """Return the fork server's own process."""
    (server,) = proctree.children(launcher._servers[0]._process.pid)
    return server


def test_a_daemon_that_ignores_sigterm_does_not_survive_a_killed_fork_server(
    launcher: Launcher, spec: Spec, wait_exits: WaitExits, tmp_path: Path
) -> None:
    pid = launcher.start(spec("/bin/sh", "-c", DAEMON))
    log = tmp_path / "trial.log"
    assert wait_for(lambda: log.exists() and "ready" in log.read_text())
    assert wait_for(lambda: len(proctree.tree(pid)) == 2)
    tree = proctree.tree(pid)
    os.kill(server_of(launcher), signal.SIGKILL)
    assert [(ended.code, ended.asked) for ended in wait_exits(1)] == [(143, True)]
    assert wait_for(lambda: not any(map(proctree.alive, tree)))
    launcher.start(spec("true"))
    assert wait_exits(1)[0].code == 0


def test_a_stopped_attempt_saves_and_leaves_when_controller_and_fork_server_are_killed(tmp_path: Path) -> None:
    command = [sys.executable, "-c", CONTROLLER, str(tmp_path), SAVES]
    with subprocess.Popen(command, cwd=REPOSITORY, stdout=subprocess.PIPE, text=True) as controller:
        assert controller.stdout is not None
        attempt, keeper, server = json.loads(controller.stdout.readline())
        # As a pacer's helper leaves it that was killed in the middle of a period.
        os.killpg(attempt, signal.SIGSTOP)
        controller.kill()
        os.kill(server, signal.SIGKILL)
    assert wait_for(lambda: not any(map(proctree.alive, (attempt, keeper, server))))
    assert "saved" in (tmp_path / "trial.log").read_text()


def test_a_killed_keeper_has_its_server_end_all_attempts_in_good_order(
    launcher: Launcher, spec: Spec, wait_exits: WaitExits, tmp_path: Path
) -> None:
    pid = launcher.start(spec("/bin/sh", "-c", f"(trap '' TERM; setsid sleep 1000 &) ; {SAVES}"))
    log = tmp_path / "trial.log"
    assert wait_for(lambda: log.exists() and "ready" in log.read_text())
    tree, server = proctree.tree(pid), server_of(launcher)
    # As a pacer leaves it in the middle of a period.
    os.killpg(pid, signal.SIGSTOP)
    launcher._servers[0]._process.kill()
    assert [(ended.code, ended.asked) for ended in wait_exits(1)] == [(75, True)]
    assert wait_for(lambda: not any(map(proctree.alive, [server, *tree])))
    launcher.start(spec("true"))
    assert wait_exits(1)[0].code == 0


def test_the_controller_ends_what_a_keeper_and_a_server_leave_that_are_killed_at_once(
    launcher: Launcher, spec: Spec, wait_exits: WaitExits, tmp_path: Path
) -> None:
    pid = launcher.start(spec("/bin/sh", "-c", f"(trap '' TERM; setsid sleep 1000 &) ; {SAVES}"))
    log = tmp_path / "trial.log"
    assert wait_for(lambda: log.exists() and "ready" in log.read_text())
    tree, keeper = proctree.tree(pid), launcher._servers[0]._process.pid
    os.killpg(pid, signal.SIGSTOP)
    server = server_of(launcher)
    os.kill(server, signal.SIGSTOP)
    os.kill(keeper, signal.SIGKILL)
    os.kill(server, signal.SIGKILL)
    assert [ended.asked for ended in wait_exits(1)] == [True]
    assert "saved" in log.read_text()
    assert wait_for(lambda: not any(map(proctree.alive, tree)))
