"""Ticking only when something has changed, or a policy asked for it, must decide the same as ticking all the time."""

import pytest

from controllers.lab.simulation.run import simulate
from controllers.policies.registry import POLICIES, parse_policy
from tests.simulated.workloads import EveryHeartbeat, mixed

_CLAIRVOYANT = {"shortest-remaining", "longest-remaining"}


@pytest.mark.parametrize("spec", ["specon+flowcon", *sorted(POLICIES.keys() - _CLAIRVOYANT)])
def test_ticking_every_heartbeat_decides_nothing_else(spec: str) -> None:
    sweep = mixed(trials=16, cores=[3.0] * 3, seed=1)
    policy = parse_policy(spec)
    seldom, often = simulate(sweep, policy), simulate(sweep, EveryHeartbeat(policy))
    assert often.ticks > 2 * seldom.ticks
    assert often.result == seldom.result
