"""What others leave of a node is estimated by what its trials get while they wait, and forgotten when nothing tells."""

import itertools
import math
from collections.abc import Sequence
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from controllers.core.model import Node, NodeName, Progress, Trial
from controllers.core.supply import FORGOTTEN_S, MOST_FORGOTTEN_S, Supply, supply_after, with_supply
from tests.controllers.policies.policy_fakes import trial

NODE = Node(NodeName("n1"), 4.0)


class Watched:
    """A node whose trials report every five seconds what they got."""

    def __init__(self) -> None:
        self.now = 0.0
        self.supply = Supply()
        self.counts: dict[str, tuple[float, float]] = {}

    def look(self, *trials: Trial) -> float:
        """Return the cores that the node is taken to give, after one more look."""
        self.supply = supply_after(self.now, trials, (NODE,), self.supply)
        return with_supply((NODE,), self.supply)[0].supplied

    def run(self, seconds: float, *uses: tuple[str, float, float], attempt: int = 1) -> float:
        """Let trials of these names use so many cores and wait for so many for a while; return the cores then."""
        cores = math.inf
        for _ in range(round(seconds / 5)):
            self.now += 5.0
            cores = self.look(*[self._reported(*use, attempt) for use in uses])
        return cores

    def _reported(self, name: str, used: float, waited: float, attempt: int) -> Trial:
        before = self.counts.get(name, (0.0, 0.0))
        self.counts[name] = before[0] + 5 * used, before[1] + 5 * waited
        cpu, wait = self.counts[name]
        progress = Progress(1.0, 0.5, 0.5, int(self.now), self.now, cpu_seconds=cpu, cpu_wait=wait)
        return replace(trial(name, "n1"), attempt=attempt, progress=progress)


def test_a_node_whose_trials_wait_for_what_others_take_gives_what_these_get() -> None:
    node = Watched()
    assert node.run(120, ("a", 0.5, 1.0), ("b", 0.5, 2.0)) == pytest.approx(1.0, rel=0.1)


def test_a_node_whose_trials_use_little_and_wait_for_nothing_is_whole() -> None:
    assert Watched().run(120, ("a", 0.5, 0.01), ("b", 0.3, 0.0)) == 4.0


def test_a_node_whose_trials_wait_for_each_other_is_whole() -> None:
    assert Watched().run(120, ("a", 2.5, 1.5), ("b", 1.4, 2.6)) == 4.0


def test_a_node_that_recovers_is_whole_again_within_a_minute_by_what_its_trials_tell() -> None:
    node = Watched()
    node.run(100, ("a", 1.0, 3.0))
    assert node.run(60, ("a", 3.9, 0.1)) == 4.0


def test_a_lack_is_forgotten_where_nobody_is_left_to_tell_and_later_each_time_that_this_was_wrong() -> None:
    node = Watched()
    forgotten = []
    for attempt in (1, 2, 3):
        assert node.run(90, ("a", 0.4, 3.0), attempt=attempt) < 1.0
        began = node.now
        while node.run(5) < 4.0:
            assert node.now - began < 20 * FORGOTTEN_S
        forgotten.append(node.now - began)
    assert forgotten == sorted(forgotten)
    assert forgotten[-1] > 2 * forgotten[0]


def test_nothing_is_concluded_from_trials_that_tell_nothing_of_waiting() -> None:
    node = Watched()
    silent = replace(trial("b", "n1"), progress=Progress(1.0, 0.5, 0.5, 1, 1.0, cpu_seconds=1.0))
    for _ in range(20):
        node.now += 5.0
        told = node._reported("a", 0.1, 3.0, 1)
        assert node.look(told, silent) == 4.0


def test_what_a_trial_used_beside_one_that_has_left_tells_nothing() -> None:
    node = Watched()
    node.run(30, ("a", 2.0, 1.0), ("b", 2.0, 1.0))
    node.now += 1.0
    assert node.look(node._reported("a", 2.0, 1.0, 1)) == 4.0
    assert node.run(60, ("a", 3.8, 0.1)) == 4.0


@given(st.lists(st.tuples(st.floats(-1e308, 1.7e308), st.floats(-1e308, 1.7e308), st.booleans()), max_size=30))
def test_whatever_trials_count_a_node_gives_something_and_no_more_than_it_has(
    counts: Sequence[tuple[float, float, bool]],
) -> None:
    supply = Supply()
    for at, (cpu, wait, there) in zip(itertools.count(3, 3), counts, strict=False):
        progress = Progress(1.0, 0.5, 0.5, at, float(at), cpu_seconds=cpu, cpu_wait=wait)
        trials = (replace(trial("a", "n1"), progress=progress),) if there else ()
        supply = supply_after(float(at), trials, (NODE,), supply)
        (node,) = with_supply((NODE,), supply)
        assert 0 < node.supplied <= node.cpu
        assert all(map(math.isfinite, (one.used or 0.0 for one in supply.counts.values())))
        assert FORGOTTEN_S <= supply.nodes[NODE.name].forgotten_s <= MOST_FORGOTTEN_S
