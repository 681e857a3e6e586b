import contextlib
import os
import signal
import subprocess
from collections.abc import Callable, Iterator

import pytest

from controllers.worlds.local.shares import Kind, Shares, SharesError, choose_shares

JOIN = 'for f; do echo $$ > "$f"; done; '
BUSY = JOIN + "while :; do :; done"
IDLE = JOIN + "exec sleep 1000"

Start = Callable[..., "subprocess.Popen[bytes]"]


@pytest.fixture
def start() -> Iterator[Start]:
    """Start a shell in a share; kill it with its children at the end."""
    started = []

    def start_one(shares: Shares, key: str, node: str, cpu: float, script: str = BUSY) -> "subprocess.Popen[bytes]":
        join = shares.add(key, node, cpu)
        process = subprocess.Popen(["/bin/sh", "-c", script, "sh", *join], start_new_session=True)
        started.append(process)
        shares.adopt(key, process.pid)
        return process

    yield start_one
    for process in started:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()


@pytest.fixture(params=["cgroup-v2", "cgroup-v1", "pacer"])
def shares(request: pytest.FixtureRequest) -> Iterator[Shares]:
    """Every way that this machine allows."""
    kind: Kind = request.param
    try:
        made = choose_shares(f"test-{os.getpid()}", kind)
    except SharesError as error:
        pytest.skip(str(error))
    yield made
    made.close()
