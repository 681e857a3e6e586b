"""Memory limits of trials, by the control groups of this machine."""

import subprocess
import sys

import pytest

from controllers.worlds.local.shares import SharesError, choose_shares


@pytest.mark.parametrize(("most", "fed"), [(50 * 2.0**20, False), (400 * 2.0**20, True)])
def test_a_process_that_would_use_more_than_its_limit_is_killed(most: float, *, fed: bool) -> None:
    try:
        shares = choose_shares(f"memory-{most:.0f}", "cgroup-v1")
    except SharesError as error:
        pytest.skip(f"MEMORY LIMITS ARE NOT TRIED: {error}")
    try:
        if not shares.limits_memory:
            pytest.skip("MEMORY LIMITS ARE NOT TRIED: no control group for memory may be written here")
        shares.add_node("node", 1.0)
        joins = shares.add("a", "node", 1.0)
        shares.limit_memory("a", most)
        join = 'for f; do echo $$ > "$f"; done; exec "$0" -c "bytearray(200 * 2**20); print(\'fed\')"'
        done = subprocess.run(
            ["/bin/sh", "-c", join, sys.executable, *joins], capture_output=True, text=True, check=False
        )
        assert ("fed" in done.stdout) == fed
        assert (done.returncode == 0) == fed
    finally:
        shares.close()
