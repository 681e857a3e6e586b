"""Ticking only when something has changed, or a policy asked for it, must decide the same as ticking all the time."""

from dataclasses import replace
from typing import Any

import pytest

from controllers.model import Action, Decision, Snapshot
from controllers.policies.base import Policy
from controllers.policies.registry import parse_policy
from controllers.simulated_run import simulate
from tests.simulated.workloads import mixed


class EveryHeartbeat:
    """Asks to be woken at the next heartbeat, whatever ``policy`` asks for."""

    def __init__(self, policy: Policy[Any]) -> None:
        self._policy = policy

    @property
    def name(self) -> str:
        return self._policy.name

    @property
    def needs(self) -> frozenset[type[Action]]:
        return self._policy.needs

    @property
    def state_type(self) -> type[Any]:
        return self._policy.state_type

    def initial(self) -> Any:  # noqa: ANN401 - each policy has its own state
        return self._policy.initial()

    def decide(self, snapshot: Snapshot, state: Any) -> Decision[Any]:  # noqa: ANN401 - as above
        return replace(self._policy.decide(snapshot, state), wake_at=snapshot.now)


@pytest.mark.parametrize("spec", ["default", "specon", "flowcon", "specon+flowcon"])
@pytest.mark.parametrize("seed", range(3))
def test_ticking_every_heartbeat_decides_nothing_else(spec: str, seed: int) -> None:
    sweep = mixed(trials=24, cores=[3.0] * 4, seed=seed)
    policy = parse_policy(spec)
    seldom, often = simulate(sweep, policy), simulate(sweep, EveryHeartbeat(policy))
    assert often.ticks > 2 * seldom.ticks
    assert often.result == seldom.result
