"""Processes that compute for a command do not outlive it."""

import subprocess
import sys

import psutil

PARENT = """
import os, time
from controllers.lab.worker_pool import worker_pool
pool = worker_pool(2)
workers = {pool.submit(os.getpid).result() for _ in range(8)}
pool.submit(time.sleep, 600)
print(*workers, flush=True)
time.sleep(600)
"""
PATIENCE_S = 30.0


def test_workers_end_when_their_parent_is_killed() -> None:
    with subprocess.Popen([sys.executable, "-c", PARENT], stdout=subprocess.PIPE, text=True) as parent:
        assert parent.stdout is not None
        workers = [psutil.Process(int(pid)) for pid in parent.stdout.readline().split()]
        workers += [child for child in psutil.Process(parent.pid).children() if child not in workers]
        parent.kill()
    assert workers
    _, alive = psutil.wait_procs(workers, timeout=PATIENCE_S)
    assert not alive
