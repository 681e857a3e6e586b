"""A trial that waits for room gets it once others' pods have left, and where others may not start at all."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import pytest

from controllers.cluster.campaign_world import ForgetfulStore
from controllers.core.actions import Action, Place
from controllers.core.engine import Engine
from controllers.core.model import Ask, Node, Phase, Sample, Trial, TrialId
from controllers.core.policy import Policy
from controllers.core.ports import DONE, Outcome
from controllers.policies import Edf, Guarded, Managed
from controllers.policies.registry import POLICIES, parse_policy
from tests.controllers.policies.policy_fakes import node, snapshot, trial
from tests.controllers.quiet_world import QuietWorld

OTHERS_LEAVE_AT = 95.0
MOST_WAIT = 30.0
PLACING = sorted(name for name, policy in POLICIES.items() if Place in policy.needs)


@dataclass
class CrowdedNode(QuietWorld):
    """A node of 2 cores, where others' pods hold 1.5 until they leave, and a trial that asks for 1."""

    trials_there: list[Trial]
    now: float = 0.0
    placed_at: float | None = None

    def trials(self) -> Sequence[Trial]:
        return self.trials_there

    def nodes(self) -> Sequence[Node]:
        return [node("n", 0.5 if self.now < OTHERS_LEAVE_AT else 2.0)]

    def apply(self, action: Action) -> Outcome:
        if isinstance(action, Place):
            self.placed_at = self.now
        return DONE


class NoMetrics:
    def poll(self) -> Mapping[TrialId, Sample]:
        return {}


def placed_at(policy: Policy[Any], *beside: Trial) -> float | None:
    """Return when the waiting trial is placed, None where never; the engine ticks only when it asked for that."""
    waiting = trial("waits", phase=Phase.PENDING, gated=True, attempt=0)
    world = CrowdedNode([*beside, waiting])
    engine = Engine(policy, world, NoMetrics(), ForgetfulStore())
    wake = engine.tick(world.now).wake_at
    while world.placed_at is None and wake is not None and wake <= OTHERS_LEAVE_AT + MOST_WAIT:
        assert wake > world.now
        world.now = wake
        wake = engine.tick(world.now).wake_at
    return world.placed_at


@pytest.mark.parametrize("beside", [(), (trial("runs", "n", cpu=0.25),)], ids=["alone", "beside one that runs"])
@pytest.mark.parametrize("spec", [*PLACING, "edf+flowcon"])
def test_a_trial_that_fits_nowhere_is_placed_soon_after_others_have_left(spec: str, beside: tuple[Trial, ...]) -> None:
    found = placed_at(Guarded(policy=parse_policy(spec)), *beside)
    assert found is not None
    assert OTHERS_LEAVE_AT <= found <= OTHERS_LEAVE_AT + MOST_WAIT


def test_without_the_guard_nothing_would_ask_such_a_policy_again() -> None:
    assert placed_at(Edf()) is None


def test_a_policy_that_places_nothing_is_not_woken_for_a_trial_that_waits() -> None:
    waiting = replace(trial("waits"), phase=Phase.PENDING, gated=True)
    engine = Engine(Guarded(policy=parse_policy("fifo")), CrowdedNode([waiting]), NoMetrics(), ForgetfulStore())
    assert engine.tick(0.0).wake_at is None


@pytest.mark.parametrize("policy", [*PLACING, "promote:finish=best", "promote:rungs=fast", "promote+ahead"])
@pytest.mark.parametrize("phase", [Phase.PENDING, Phase.SUSPENDED])
def test_a_trial_that_is_to_pause_takes_no_room_from_one_that_waits(policy: str, phase: Phase) -> None:
    paused = trial("paused", phase=phase, gated=True, attempt=0)
    waits = trial("waits", phase=Phase.PENDING, gated=True, attempt=0, submitted_at=5.0)
    seen = replace(snapshot(10.0, [paused, waits], [node("n", 1.0)]), asked={paused.id: Ask.PAUSE})
    managed = Managed(policy=Guarded(policy=parse_policy(policy)))
    placed = [one.action.trial for one in managed.decide(seen, managed.initial()).proposals]
    assert placed == ["waits"]
