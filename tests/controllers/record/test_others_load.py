"""What others use of a sweep's nodes while it runs."""

import pytest

from controllers.core.model import Snapshot
from controllers.record.others_load import OthersLoad
from tests.controllers.policies.policy_fakes import node


def at(now: float, *supplies: float) -> Snapshot:
    return Snapshot(now, (), tuple(node(f"n{place}", 4.0, supply=supply) for place, supply in enumerate(supplies)))


def test_the_mean_over_the_time_that_was_looked_at_is_kept() -> None:
    load = OthersLoad()
    assert load.cores == 0.0
    for seen in (at(10.0, 4.0, 3.0), at(20.0, 2.0, 3.0), at(40.0, 9.0)):
        load.observe(seen, {}, {})
    assert load.cores == pytest.approx((10 * 1.0 + 20 * 3.0) / 30)


def test_a_clock_that_goes_back_counts_for_nothing() -> None:
    load = OthersLoad()
    for now in (10.0, 20.0, 5.0):
        load.observe(at(now, 3.0), {}, {})
    assert load.cores == 1.0
