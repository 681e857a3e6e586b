"""What a replay costs depends on what is known of a sweep, and not on how long it lasted."""

from dataclasses import replace

import pytest

from controllers.core.model import Direction, NodeName, TrialId
from controllers.driving.driver import Driver
from controllers.lab.simulation.past_sweeps import supply
from controllers.lab.simulation.past_sweeps.past_sweep import Logged, PastSweep, PastTrial, Stay
from controllers.lab.simulation.past_sweeps.supply import with_measured_supply
from controllers.policies.registry import parse_policy
from hera_specon.replay import replaying
from hera_specon.replay.replaying import WhatIf, replay
from hera_specon.replay.sources import Past
from tests.controllers.lab.simulation.past_sweeps.past import EPOCH, NODES

YEARS_S = 1e8
"""Three years."""
MINUTE_S = 60.0


def trial(number: int, lasted: float, steps_apart: int = 1) -> PastTrial:
    """Return a trial that reported each second for a minute, and again at its end, ``steps_apart`` each."""
    node = NODES[number % 2].name
    moments = [*map(float, range(1, 60)), lasted]
    at = [EPOCH + moment for moment in moments]
    return PastTrial(
        id=TrialId(f"t{number}"),
        submitted_at=0.0,
        completed_at=lasted,
        objective=tuple(Logged(n * steps_apart, 1 / (n + 1), when) for n, when in enumerate(at)),
        cpu_seconds=tuple(Logged(n * steps_apart, 0.2 * moments[n], when) for n, when in enumerate(at)),
        total_cpu_s=0.2 * lasted,
        first_node=NodeName(node),
        cpu=0.2,
        began_epoch_s=EPOCH,
        stays=(Stay(NodeName(node), 0.0, lasted),),
    )


def sweep(lasted: float, steps_apart: int = 1) -> PastSweep:
    trials = tuple(trial(number, lasted, steps_apart) for number in range(4))
    return PastSweep("long", "default", Direction.MINIMIZE, trials, NODES, began_epoch_s=EPOCH)


@pytest.fixture
def ten_thousand_looks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Lets drivers tick their engines so often and no more."""
    ticks, tick = 0, Driver.tick

    def counted(driver: Driver, now: float) -> None:
        nonlocal ticks
        ticks += 1
        assert ticks <= 10_000
        tick(driver, now)

    monkeypatch.setattr(Driver, "tick", counted)


def test_what_nodes_gave_is_looked_for_in_as_many_windows_as_there_are_points(monkeypatch: pytest.MonkeyPatch) -> None:
    windows = 0
    overlap = supply._overlap

    def counted(stay: Stay, window: tuple[float, float]) -> tuple[float, float] | None:
        nonlocal windows
        windows += 1
        assert windows < 100_000
        return overlap(stay, window)

    monkeypatch.setattr(supply, "_overlap", counted)
    assert [node.name for node in with_measured_supply(sweep(YEARS_S))] == [node.name for node in NODES]


@pytest.mark.usefixtures("ten_thousand_looks")
@pytest.mark.parametrize("steps_apart", [1, 2_000_000], ids=["few steps", "1e8 steps"])
@pytest.mark.parametrize("policy", ["specon", "ahead", "promote:rungs=best"])
def test_a_replay_of_a_sweep_of_years_takes_as_many_looks_as_one_of_days(
    monkeypatch: pytest.MonkeyPatch, policy: str, steps_apart: int
) -> None:
    monkeypatch.setattr(replaying, "MOST_BEATS", 500)
    past = Past((sweep(YEARS_S, steps_apart),), "local")
    what_if = WhatIf(nodes=None, cpus_per_node=None, costs=None, cores_per_trial=1.0)
    found = replay(past, what_if, {"default": parse_policy("default"), policy: parse_policy(policy)}, 1)
    assert found.forecasts[1].over_seeds(lambda run: run.makespan_s).mean > MINUTE_S


def test_of_a_sweep_of_hours_nothing_changes() -> None:
    costs = replace(replaying.COSTS["local"](), heartbeat_s=0.5)
    assert replaying._with_beats_for(Past((sweep(36_000.0),), "local"), costs) == costs
