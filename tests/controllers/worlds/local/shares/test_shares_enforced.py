import signal
import subprocess
import time
from collections.abc import Callable

import pytest

from controllers.worlds.local.processes import proctree
from controllers.worlds.local.shares import Shares, SharesNameError, SharesValueError

SETTLE_S, MEASURE_S = 1.0, 3.0
Start = Callable[..., "subprocess.Popen[bytes]"]
TWO_BUSY_CHILDREN = 'for f; do echo $$ > "$f"; done; sh -c "while :; do :; done" & sh -c "while :; do :; done" & wait'


def measure(shares: Shares, keys: str, node: str = "node") -> tuple[list[float], float]:
    """Return each key's part of what all used, and the cores the node used."""
    time.sleep(SETTLE_S)
    before, node_before, began = [shares.used(key) for key in keys], shares.node_used(node), time.monotonic()
    time.sleep(MEASURE_S)
    used = [shares.used(key) - was for key, was in zip(keys, before, strict=True)]
    cores = (shares.node_used(node) - node_before) / (time.monotonic() - began)
    return [one / sum(used) for one in used], cores


def wait_until_busy(shares: Shares, key: str) -> None:
    deadline = time.monotonic() + 20
    while shares.used(key) < 0.05 and time.monotonic() < deadline:
        time.sleep(0.05)


@pytest.mark.alone
@pytest.mark.slow
def test_busy_trials_share_a_node_by_weight_and_a_resize_shows_at_once(shares: Shares, start: Start) -> None:
    shares.add_node("node", 0.45)
    start(shares, "a", "node", 0.25)
    start(shares, "b", "node", 0.75)
    parts, cores = measure(shares, "ab")
    assert parts == pytest.approx([0.25, 0.75], abs=0.06)
    assert cores <= 0.45 * 1.1
    shares.resize("a", 0.75)
    shares.resize("b", 0.25)
    parts, cores = measure(shares, "ab")
    assert parts == pytest.approx([0.75, 0.25], abs=0.06)
    assert cores <= 0.45 * 1.1


@pytest.mark.alone
@pytest.mark.slow
def test_what_an_idle_trial_leaves_goes_to_the_others_up_to_the_quota(shares: Shares, start: Start) -> None:
    shares.add_node("node", 0.4)
    start(shares, "a", "node", 0.1)
    start(shares, "b", "node", 0.9, script='for f; do echo $$ > "$f"; done; exec sleep 1000')
    parts, cores = measure(shares, "ab")
    assert parts[0] > 0.97
    # Its own tenth of the node would be 0.04 cores; the machine may be too busy to give it all 0.4.
    assert 0.12 < cores <= 0.4 * 1.1


@pytest.mark.alone
@pytest.mark.slow
def test_a_share_is_that_of_the_whole_process_tree(shares: Shares, start: Start) -> None:
    shares.add_node("node", 0.45)
    start(shares, "a", "node", 0.5, script=TWO_BUSY_CHILDREN)
    start(shares, "b", "node", 0.5)
    parts, cores = measure(shares, "ab")
    assert parts == pytest.approx([0.5, 0.5], abs=0.07)
    assert cores <= 0.45 * 1.1


def test_kill_leaves_no_process_of_the_tree_and_remove_forgets_it(shares: Shares, start: Start) -> None:
    shares.add_node("node", 0.5)
    process = start(shares, "a", "node", 0.5, script=TWO_BUSY_CHILDREN)
    deadline = time.monotonic() + 20
    while len(tree := proctree.tree(process.pid)) < 3 and time.monotonic() < deadline:
        time.sleep(0.05)
    assert len(tree) == 3
    shares.kill("a")
    assert process.wait(20) == -signal.SIGKILL
    shares.remove("a")
    while any(map(proctree.alive, tree)) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not any(map(proctree.alive, tree))
    with pytest.raises(SharesNameError, match="'a'"):
        shares.used("a")


def test_a_removed_trial_leaves_its_name_and_its_nodes_account(shares: Shares, start: Start) -> None:
    shares.add_node("node", 0.5)
    start(shares, "a", "node", 0.5)
    wait_until_busy(shares, "a")
    shares.remove("a")
    assert shares.node_used("node") >= 0.05
    start(shares, "a", "node", 0.5)
    assert shares.used("a") < 0.05


def test_close_kills_what_is_left_and_may_be_repeated(shares: Shares, start: Start) -> None:
    shares.add_node("node", 0.5)
    process = start(shares, "a", "node", 0.5)
    wait_until_busy(shares, "a")
    shares.close()
    shares.close()
    assert process.wait(20) == -signal.SIGKILL


def test_unknown_and_taken_names_are_refused_by_name(shares: Shares) -> None:
    shares.add_node("node", 0.5)
    shares.add("a", "node", 0.5)
    with pytest.raises(SharesNameError, match="'node'"):
        shares.add_node("node", 0.5)
    with pytest.raises(SharesNameError, match="'a'"):
        shares.add("a", "node", 0.5)
    with pytest.raises(SharesNameError, match="'elsewhere'"):
        shares.add("b", "elsewhere", 0.5)
    with pytest.raises(SharesNameError, match="'elsewhere'"):
        shares.node_used("elsewhere")
    with pytest.raises(SharesNameError, match="'b'"):
        shares.resize("b", 0.5)


@pytest.mark.parametrize("name", ["", "..", "a/b", "cpu.max", "cgroup.procs", "tasks", "a b", ".hidden"])
def test_names_that_could_be_a_file_of_the_kernel_are_refused(shares: Shares, name: str) -> None:
    with pytest.raises(SharesNameError, match="cannot name"):
        shares.add_node(name, 0.5)


@pytest.mark.parametrize("cpu", [0.0, -1.0, float("nan"), float("inf")])
def test_a_share_that_is_no_number_of_cores_is_refused(shares: Shares, cpu: float) -> None:
    shares.add_node("node", 0.5)
    shares.add("a", "node", 0.5)
    with pytest.raises(SharesValueError, match=str(cpu)):
        shares.add_node("other", cpu)
    with pytest.raises(SharesValueError, match=str(cpu)):
        shares.resize("a", cpu)
    with pytest.raises(SharesValueError, match=str(cpu)):
        shares.add("b", "node", cpu)
    shares.add("b", "node", 0.5)


def test_a_trial_that_ended_before_it_was_adopted_does_no_harm(shares: Shares) -> None:
    shares.add_node("node", 0.5)
    shares.add("a", "node", 0.5)
    with subprocess.Popen(["/bin/true"]) as process:
        process.wait()
    shares.adopt("a", process.pid)
    assert shares.used("a") == 0
    shares.resize("a", 0.25)
    shares.remove("a")
