import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from controllers.worlds.local.processes import LaunchError, proctree, start_tethered

REPOSITORY = Path(__file__).parents[5]
TREE = "trap '' TERM; sleep 1000 & (setsid sleep 1000 &); echo ready; while :; do sleep 1; done"
CONTROLLER = """
import json, os, sys, time
from pathlib import Path
from controllers.worlds.local.processes import Launcher, ProcessSpec, proctree, start_tethered
folder, tree = Path(sys.argv[1]), sys.argv[2]
launcher = Launcher((), 0.5, folder / "server.log")
for key in ("polite", "stubborn"):
    command = ("sleep", "1000") if key == "polite" else ("/bin/sh", "-c", tree)
    launcher.start(ProcessSpec(key, command, dict(os.environ), folder, folder / f"{key}.log"))
guarded = start_tethered(["/bin/sh", "-c", tree], os.environ, folder / "guarded.log", grace_s=0.5)
while not all((folder / f"{key}.log").read_text() for key in ("stubborn", "guarded")):
    time.sleep(0.02)
time.sleep(0.3)
print(json.dumps(proctree.tree(os.getpid())[1:]), flush=True)
time.sleep(1000)
"""


def wait_for(condition: Callable[[], bool]) -> bool:
    deadline = time.monotonic() + 60
    while not condition() and time.monotonic() < deadline:
        time.sleep(0.02)
    return condition()


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
def test_nothing_is_left_of_a_controller_that_dies(tmp_path: Path, number: signal.Signals) -> None:
    command = [sys.executable, "-c", CONTROLLER, str(tmp_path), TREE]
    with subprocess.Popen(
        command, cwd=REPOSITORY, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    ) as controller:
        assert controller.stdout is not None
        started = json.loads(controller.stdout.readline())
        # Two fork servers, two shells with three sleeps each, one sleep.
        assert len([pid for pid in started if proctree.alive(pid)]) >= 9
        controller.send_signal(number)
        try:
            controller.wait(60)
        finally:
            controller.kill()
    assert wait_for(lambda: not any(map(proctree.alive, started)))


def test_a_guarded_server_serves_and_ends_with_all_its_processes(tmp_path: Path) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [sys.executable, "-m", "http.server", "--bind", "127.0.0.1", str(port)]
    server = start_tethered(command, os.environ, tmp_path / "log", cwd=tmp_path)
    assert server.poll() is None
    assert wait_for(lambda: _answers(port))
    tree = proctree.tree(server.pid)
    server.terminate()
    assert server.poll() == 143
    assert not any(map(proctree.alive, tree))


def _answers(port: int) -> bool:
    with socket.socket() as client:
        return client.connect_ex(("127.0.0.1", port)) == 0


def test_a_guarded_server_that_ignores_sigterm_is_killed_after_the_grace_period(tmp_path: Path) -> None:
    server = start_tethered(["/bin/sh", "-c", TREE], os.environ, tmp_path / "log", grace_s=0.2)
    assert wait_for(lambda: "ready" in (tmp_path / "log").read_text())
    with pytest.raises(subprocess.TimeoutExpired):
        server.wait(0.05)
    tree = proctree.tree(server.pid)
    server.terminate()
    assert server.wait(10) == 137
    assert not any(map(proctree.alive, tree))


def test_a_guarded_server_that_ends_by_itself_says_how(tmp_path: Path) -> None:
    server = start_tethered(["/bin/sh", "-c", "echo started; exit 3"], os.environ, tmp_path / "log")
    assert server.wait(60) == 3
    assert server.poll() == 3
    assert (tmp_path / "log").read_text() == "started\n"
    server.terminate()


def test_a_guarded_server_that_can_not_start_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(LaunchError, match="no-folder"):
        start_tethered(["true"], {}, tmp_path / "log", cwd=tmp_path / "no-folder")
