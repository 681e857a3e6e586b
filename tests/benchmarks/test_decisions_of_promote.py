"""What a decision of ``promote`` costs grows no faster than the cluster."""

import cProfile
import pstats

import pytest

from benchmarks.decisions_of_ahead import CASES
from benchmarks.decisions_of_promote import POLICIES, RUNG, second_decision

pytestmark = pytest.mark.slow

_LINEAR = 4.0
_MARGIN = 1.6
"""Sorting and chance add a little; a cost that grows with the square of the cluster would be four times as much."""


def calls(policy: str, name: str, nodes: int) -> int:
    decide, profile = second_decision(policy, name, nodes), cProfile.Profile()
    profile.runcall(decide)
    return int(pstats.Stats(profile).total_calls)  # type: ignore[attr-defined] # not in typeshed


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("name", [*CASES, RUNG])
def test_a_cluster_that_is_four_times_as_large_takes_about_four_times_as_many_calls(name: str, policy: str) -> None:
    assert calls(policy, name, 160) < _LINEAR * _MARGIN * calls(policy, name, 40)
