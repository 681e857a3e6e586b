"""What any policy keeps of any number of trials is read back by the next controller, or said not to be kept."""

import random
from collections.abc import Callable, Mapping, Sequence
from typing import Any, cast

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from controllers.core.engine import Engine
from controllers.core.model import Node, Phase, Sample, Trial, TrialId
from controllers.core.policy import Policy  # noqa: TC001 - for a cast
from controllers.driving.assembly import guard_policy
from controllers.policies.comparison.clairvoyant import inform
from controllers.policies.registry import POLICIES
from controllers.worlds.argo.calls.api import Json
from controllers.worlds.argo.calls.untrusted import parts_of
from controllers.worlds.argo.meaning.view import Campaign
from controllers.worlds.argo.writing import state_store
from controllers.worlds.argo.writing.state_store import ConfigMapStore
from controllers.worlds.simulated.world import MemoryStore
from tests.controllers.policies.policy_fakes import node, trial
from tests.controllers.quiet_world import QuietWorld
from tests.property_examples import examples

SWEEP = "0a1b2c3d-1111-2222-3333-444455556666.vae"
SCALE = 100
"""The quick tests have so many times fewer trials, and so many times less may be kept."""


class Many(QuietWorld):
    """So many trials; a part of them runs."""

    def __init__(self, count: int, running: float) -> None:
        # Few and large: what policies look at grows with nodes times trials, what they keep does not.
        nodes = min(40, count // 20 + 1)
        self._nodes = [node(f"node-{number:04}", 1.0 + count / nodes) for number in range(nodes)]
        self._trials = [
            trial(f"{SWEEP}.t{number:05}", f"node-{number % nodes:04}")
            if number < running * count
            else trial(f"{SWEEP}.t{number:05}", phase=Phase.PENDING, gated=True, attempt=0)
            for number in range(count)
        ]
        self._named = {one.id: one for one in self._trials}

    def trials(self) -> Sequence[Trial]:
        return self._trials

    def trial(self, name: TrialId) -> Trial | None:
        return self._named.get(name)

    def nodes(self) -> Sequence[Node]:
        return self._nodes


class Reports:
    """What the trials that run report, each time something else."""

    def __init__(self, world: Many) -> None:
        self._running = [one.id for one in world.trials() if one.phase is Phase.RUNNING]
        self._chance = random.Random(1)  # noqa: S311 - no secret
        self._polls = 0

    def poll(self) -> Mapping[TrialId, Sample]:
        self._polls += 1
        at = 30.0 * self._polls
        return {
            name: Sample(self._chance.random(), 10 * self._polls, at, cpu_seconds=at * 0.9, steps_total=1000)
            for name in self._running
        }


def state_of(name: str, count: int, running: float, ticks: int = 3) -> str:
    """Return what an engine under a policy keeps after a few ticks."""
    policy = cast("Policy[Any]", POLICIES[name]())
    world, store = Many(count, running), MemoryStore()
    engine = Engine(guard_policy(inform(policy, dict.fromkeys(world._named, 50.0))), world, Reports(world), store)
    for tick in range(ticks):
        engine.tick(30.0 * (tick + 1))
    return store.load() or ""


class OneConfigMap:
    """An API server that keeps what is written last."""

    def __init__(self) -> None:
        self.kept: Json = {}
        self.notes: dict[str, str | None] = {}
        self.host = ""

    def get(self, path: str) -> Json:
        del path
        return self.kept

    def create(self, path: str, body: Json) -> Json:
        return self.replace(path, body)

    def replace(self, path: str, body: Json) -> Json:
        del path
        self.kept = {**body, "metadata": {**body["metadata"], "resourceVersion": "1"}}
        return self.kept

    def patch(self, path: str, body: Json) -> Json:
        del path
        self.notes |= body["metadata"]["annotations"]
        return {}


def check(kept: str) -> None:
    """Check that a state is read back, or that the workflow says that it was not written."""
    api = OneConfigMap()
    opened: Callable[[], ConfigMapStore] = lambda: ConfigMapStore(  # noqa: E731 - the same store twice
        api,  # type: ignore[arg-type] # as much of one as a store asks for
        Campaign("team", "vae", "uid", "uid", "any", 0.0, False, {}, {}, True),  # noqa: FBT003
        lambda: 0.0,
    )
    opened().save(lambda: kept, urgent=True)
    if any(api.notes.values()):
        assert not api.kept
    else:
        assert opened().load() == kept


@pytest.fixture
def less_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    for bound in ("_MOST_BYTES", "_MOST_STATE", "_MOST_STATE_PARTS"):
        monkeypatch.setattr(state_store, bound, getattr(state_store, bound) // SCALE)


@pytest.mark.usefixtures("less_is_kept")
@pytest.mark.parametrize("name", sorted(POLICIES))
@given(count=st.integers(1, 50_000 // SCALE), running=st.sampled_from([0.0, 0.2, 0.6, 1.0]))
@settings(max_examples=examples(20), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_what_is_written_of_a_policy_is_read_back_or_said_to_be_too_large(
    name: str, count: int, running: float
) -> None:
    check(state_of(name, count, running))


@pytest.mark.parametrize("running", [0.2, 0.6])
def test_what_ahead_keeps_of_eight_thousand_trials_is_kept(running: float) -> None:
    small = state_of("ahead", 80, running)
    assert parts_of(small) * SCALE <= state_store._MOST_STATE_PARTS
    assert len(small) * SCALE <= state_store._MOST_STATE


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(POLICIES))
def test_what_is_written_of_fifty_thousand_trials_is_read_back_or_said_to_be_too_large(name: str) -> None:
    check(state_of(name, 50_000, 0.2, ticks=1))
