"""What a killed run left in control groups is gone once a run of its name begins, in every hierarchy."""

import os
from pathlib import Path

import pytest

from controllers.worlds.local.shares import Kind, SharesError, choose_shares


@pytest.mark.parametrize("kind", ["cgroup-v2", "cgroup-v1"])
def test_a_run_that_goes_on_has_the_bounds_of_the_killed_one_and_leaves_no_group(kind: Kind) -> None:
    name = f"killed-{os.getpid()}"
    try:
        killed = choose_shares(name, kind)
    except SharesError as error:
        pytest.skip(str(error))
    killed.add_node("node", 0.5)
    joins = killed.add("a.0", "node", 0.5)
    shares = choose_shares(name, kind)
    try:
        shares.add_node("node", 0.5)
        assert shares.add("a.1", "node", 0.5) == tuple(join.replace("a.0", "a.1") for join in joins)
        assert shares.limits_memory == killed.limits_memory
    finally:
        shares.close()
    assert not list(Path("/sys/fs/cgroup").glob(f"**/specon-{name}"))
