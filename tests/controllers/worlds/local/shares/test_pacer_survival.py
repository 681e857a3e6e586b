import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import pytest

from controllers.worlds.local.shares.pacer import Pacer

REPOSITORY = Path(__file__).parents[5]
CONTROLLER = """
import subprocess, time
from controllers.worlds.local.shares import choose_shares
shares = choose_shares("doomed", "pacer")
shares.add_node("node", 0.01)
busy = subprocess.Popen(["/bin/sh", "-c", "while :; do :; done"], start_new_session=True)
shares.add("a", "node", 0.01)
shares.adopt("a", busy.pid)
print(busy.pid, flush=True)
time.sleep(1000)
"""


def is_stopped(pid: int) -> bool:
    return psutil.Process(pid).status() == psutil.STATUS_STOPPED


def wait_for(condition: Callable[[], bool]) -> bool:
    deadline = time.monotonic() + 30
    while not condition() and time.monotonic() < deadline:
        time.sleep(0.02)
    return condition()


def test_trials_go_on_when_the_controller_is_killed() -> None:
    with subprocess.Popen(
        [sys.executable, "-c", CONTROLLER], cwd=REPOSITORY, stdout=subprocess.PIPE, text=True
    ) as controller:
        assert controller.stdout is not None
        pid = int(controller.stdout.readline())
        try:
            assert wait_for(lambda: is_stopped(pid))
            controller.kill()
            assert wait_for(lambda: not is_stopped(pid))
            time.sleep(0.5)
            assert not is_stopped(pid)
        finally:
            os.kill(pid, signal.SIGKILL)


@pytest.fixture
def busy() -> Iterator["subprocess.Popen[bytes]"]:
    with subprocess.Popen(["/bin/sh", "-c", "while :; do :; done"], start_new_session=True) as process:
        yield process
        process.kill()


def test_a_killed_helper_is_replaced_and_its_trials_are_paced_on(busy: "subprocess.Popen[bytes]") -> None:
    pacer = Pacer()
    pacer.add_node("node", 0.1)
    pacer.add("a", "node", 0.1)
    pacer.adopt("a", busy.pid)
    assert wait_for(lambda: pacer.used("a") > 0 and is_stopped(busy.pid))
    used = pacer.used("a")
    pacer._helper.kill()
    pacer._helper.wait()
    assert pacer.used("a") >= used
    assert wait_for(lambda: pacer.used("a") > used)
    assert wait_for(lambda: is_stopped(busy.pid))
    pacer.close()
    assert busy.wait(30) == -signal.SIGKILL


def test_a_helper_that_is_asked_to_end_lets_the_trials_go_on(busy: "subprocess.Popen[bytes]") -> None:
    pacer = Pacer()
    pacer.add_node("node", 0.1)
    pacer.add("a", "node", 0.1)
    pacer.adopt("a", busy.pid)
    assert wait_for(lambda: is_stopped(busy.pid))
    pacer._helper.terminate()
    assert pacer._helper.wait(30) == 0
    assert not is_stopped(busy.pid)
    pacer.close()
