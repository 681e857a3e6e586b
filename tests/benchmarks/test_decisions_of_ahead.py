"""What a decision of ``ahead`` costs grows no faster than the cluster."""

import cProfile
import pstats

import pytest

from benchmarks.decisions_of_ahead import CASES, CONCAVE
from controllers.policies.kit.scaling import ScalingSums

pytestmark = pytest.mark.slow

_LINEAR = 4.0
_MARGIN = 1.6
"""Sorting and chance add a little; a cost that grows with the square of the cluster would be four times as much."""


def calls(name: str, nodes: int, spread: ScalingSums) -> int:
    case, profile = CASES[name](nodes, spread), cProfile.Profile()
    profile.runcall(case.decide)
    return int(pstats.Stats(profile).total_calls)  # type: ignore[attr-defined] # not in typeshed


@pytest.mark.parametrize("spread", [ScalingSums(), CONCAVE], ids=["linear", "concave"])
@pytest.mark.parametrize("name", CASES)
def test_a_cluster_that_is_four_times_as_large_takes_about_four_times_as_many_calls(
    name: str, spread: ScalingSums
) -> None:
    assert calls(name, 160, spread) < _LINEAR * _MARGIN * calls(name, 40, spread)
