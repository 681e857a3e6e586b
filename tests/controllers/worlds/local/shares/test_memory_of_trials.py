"""What is measured of the memory that a trial holds, in every way that shares are enforced."""

import sys
import time
from collections.abc import Callable
from typing import TYPE_CHECKING

from controllers.worlds.local.shares import Shares

if TYPE_CHECKING:
    import subprocess

MB = 2**20
JOIN = 'for f; do echo $$ > "$f"; done; '
HOLD = (
    JOIN
    + f"""exec {sys.executable} -c '
import time
held = bytearray(80 * 2**20)
held[::4096] = b"x" * len(held[::4096])
time.sleep(60)
'"""
)
READ = JOIN + "cat /usr/bin/* /usr/lib/*/*.so* > /dev/null 2>&1; exec sleep 60"

Start = Callable[..., "subprocess.Popen[bytes]"]


def test_what_a_process_tree_holds_is_measured(shares: Shares, start: Start) -> None:
    shares.add_node("node", 2.0)
    start(shares, "a", "node", 1.0, script=f"{JOIN}({HOLD}) & wait")
    deadline = time.monotonic() + 30
    while shares.memory("a") < 80 * MB and time.monotonic() < deadline:
        time.sleep(0.05)
    assert 80 * MB <= shares.memory("a") <= 120 * MB
    assert shares.memory_kills("a") == 0


def test_what_a_trial_reads_from_files_is_not_what_it_holds(shares: Shares, start: Start) -> None:
    shares.add_node("node", 2.0)
    start(shares, "a", "node", 1.0, script=READ)
    for _ in range(20):
        assert shares.memory("a") < 20 * MB
        time.sleep(0.05)
