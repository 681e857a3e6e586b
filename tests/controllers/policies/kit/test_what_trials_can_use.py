"""What a trial can use and what it was let use are two things, whatever others take of its node."""

import math
from collections.abc import Sequence
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from controllers.core.model import Node, NodeName, Progress, Snapshot
from controllers.policies.kit.measured_trials import JITTER_S, USE_OVER_S
from controllers.policies.kit.work_left import BELIEVED_S, SweepMeasurements, measure_sweep, most_cores
from tests.controllers.policies.policy_fakes import trial

CORES = 0.8
NODE = NodeName("n1")


class OneTrial:
    """A trial that can use ``most`` cores, alone on its node; others leave it what is told of each stretch."""

    def __init__(self, most: float, *, tells_waits: bool = True) -> None:
        self.most = most
        self.tells_waits = tells_waits
        self.now = 0.0
        self.cpu = self.wait = 0.0
        self.step = 0
        self.known = SweepMeasurements()

    def train(self, seconds: float, left: float) -> float:
        """Let it train while it may have ``left`` cores, and report; return what it used."""
        used = min(self.most, left)
        self.now += seconds
        self.cpu += used * seconds
        self.wait += (self.most - used) * seconds
        self.step += 1
        self.look(self.now, self.step, self.cpu, self.wait)
        return used

    def look(self, at: float, step: int, cpu: float, wait: float) -> None:
        told = Progress(1.0, 0.5, 0.5, step, at, cpu, 1000, cpu_wait=wait if self.tells_waits else None)
        one = replace(trial("a", "n1", cpu=0.1), progress=told)
        self.seen = Snapshot(self.now, (one,), (Node(NODE, CORES),))
        self.known = measure_sweep(self.seen, self.known)

    @property
    def can_use(self) -> float:
        """The cores that it is taken to be able to use."""
        (found,) = most_cores(self.seen, self.known).values()
        return found.cores


STRETCHES = st.lists(st.tuples(st.floats(1, 40), st.floats(0.02, CORES)), min_size=2, max_size=25)


@pytest.mark.parametrize("tells_waits", [True, False])
@given(most=st.floats(0.05, 2.0), stretches=STRETCHES, older=st.integers(0, 5))
def test_a_trial_is_never_taken_for_one_that_can_use_less_than_it_has_used(
    tells_waits: bool,  # noqa: FBT001 - a parameter of the test
    most: float,
    stretches: Sequence[tuple[float, float]],
    older: int,
) -> None:
    one = OneTrial(most, tells_waits=tells_waits)
    used = 0.0
    reports = []
    for number, (seconds, left) in enumerate(stretches):
        now = one.train(seconds, left)
        # The first report says nothing of the time before it; shorter stretches are averaged with others.
        if number and seconds > USE_OVER_S:
            used = max(used, now * (1 - JITTER_S / seconds))
        reports.append((one.now, one.step, one.cpu, one.wait))
        if older < len(reports):
            one.look(*reports[older])  # one that comes late, or again
    assert one.can_use >= used * (1 - 1e-6)


@given(st.floats(0.2, 2.0), STRETCHES)
def test_one_that_waits_for_others_is_not_taken_for_small(
    most: float, stretches: Sequence[tuple[float, float]]
) -> None:
    one = OneTrial(most)
    for seconds, left in stretches:
        one.train(seconds, left)
    assert one.can_use >= min(most, CORES) * 0.5


def test_one_that_can_use_little_is_found_out_though_others_are_there() -> None:
    one = OneTrial(0.2)
    for _ in range(10):
        one.train(10, 0.1)
        one.train(10, CORES)
    assert one.can_use == pytest.approx(0.2, rel=0.1)


def test_where_nothing_tells_of_waiting_a_small_one_is_offered_more_after_a_minute() -> None:
    one = OneTrial(CORES, tells_waits=False)
    for _ in range(6):
        one.train(10, 0.1)
    before = most_cores(one.seen, one.known)[one.seen.trials[0].id]
    assert before.worth_offering == before.cores
    assert before.cores < 0.2
    one.now += BELIEVED_S + 1
    one.seen = replace(one.seen, now=one.now)
    after = most_cores(one.seen, one.known)[one.seen.trials[0].id]
    assert after.worth_offering == pytest.approx(2 * after.cores)
    assert math.isclose(after.cores, before.cores)
