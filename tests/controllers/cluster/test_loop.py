"""The loop: acts while it leads and sees, and hands over in an order that lets nobody act twice."""

import logging
import threading
from collections.abc import Sequence
from dataclasses import dataclass, field

import pytest

from controllers.cluster.health import Health
from controllers.cluster.instruments import Instruments
from controllers.cluster.loop import ControllerLoop
from controllers.worlds.argo.meaning.view import Campaign
from tests.controllers.cluster.clusters_in_memory import MemoryCluster, campaign


@dataclass
class Recorded:
    """Campaigns and leadership that write down what is asked of them."""

    told: list[str] = field(default_factory=list)
    leading: bool = True
    looks: int = 0

    def reconcile(self, campaigns: Sequence[Campaign]) -> None:
        self.told.append(f"reconcile {len(campaigns)}")

    def step(self) -> None:
        self.told.append("step")

    def keep_states(self) -> None:
        self.told.append("keep states")

    def close(self) -> None:
        self.told.append("close")

    def wait_closed(self, within_s: float) -> bool:
        self.told.append("wait closed")
        return within_s > 0

    def resign(self) -> None:
        self.told.append("resign")

    def wait_for_writes(self) -> None:
        self.told.append("wait for writes")

    def look(self) -> None:
        self.looks += 1


class Bench:
    """A loop over what its test holds."""

    def __init__(self) -> None:
        self.now = 0.0
        self.cluster = MemoryCluster([campaign()])
        self.recorded = Recorded()
        self.instruments = Instruments()
        self.health = Health(lambda: self.now, 45.0, self.cluster.synced, self.cluster.age_s, lambda: None)
        self.loop = ControllerLoop(
            view=self.cluster,
            campaigns=self.recorded,
            leadership=self.recorded,
            health=self.health,
            instruments=self.instruments,
            clock=lambda: self.now,
            policy="default",
            stale_after=45.0,
            wait_for_writes=self.recorded.wait_for_writes,
            look_at_cluster=self.recorded.look,
        )

    def value(self, name: str) -> float | None:
        return self.instruments.registry.get_sample_value(name)


@pytest.fixture
def bench() -> Bench:
    return Bench()


def test_the_leader_looks_for_campaigns_every_second_and_steps_each_time(bench: Bench) -> None:
    for _ in range(3):
        bench.loop.once()
        bench.now += 0.5
    assert bench.recorded.told == ["reconcile 1", "step", "step", "reconcile 1", "step"]
    assert bench.recorded.looks == 3
    assert bench.value("specon_is_leader") == 1


def test_a_standby_does_nothing(bench: Bench) -> None:
    bench.recorded.leading = False
    bench.loop.once()
    assert bench.recorded.told == []
    assert bench.value("specon_is_leader") == 0


def test_who_loses_the_lease_stops_and_keeps_nothing(bench: Bench) -> None:
    bench.loop.once()
    bench.recorded.leading = False
    bench.loop.once()
    bench.loop.once()
    assert bench.recorded.told == ["reconcile 1", "step", "close"]


@pytest.mark.parametrize(("age", "whole"), [(45.1, True), (0.0, False)], ids=["stale", "not whole"])
def test_a_view_that_is_stale_or_not_whole_is_not_acted_upon(
    bench: Bench, age: float, *, whole: bool, caplog: pytest.LogCaptureFixture
) -> None:
    bench.cluster.age, bench.cluster.whole = age, whole
    with caplog.at_level(logging.INFO):
        bench.loop.once()
        bench.loop.once()
    assert bench.recorded.told == []
    assert bench.value("specon_stale_looks_total") == 2
    assert bench.value("specon_watch_age_seconds") == age
    assert [record.levelname for record in caplog.records if "fresh view" in record.getMessage()] == ["WARNING"]
    bench.cluster.age, bench.cluster.whole = 0.0, True
    bench.loop.once()
    assert bench.recorded.told == ["reconcile 1", "step"]


def test_a_missing_permission_is_told_once(bench: Bench, caplog: pytest.LogCaptureFixture) -> None:
    bench.cluster.missing = ["pods is forbidden"]
    bench.loop.once()
    bench.loop.once()
    (record,) = [record for record in caplog.records if record.levelname == "ERROR"]
    assert "pods is forbidden" in record.getMessage()
    assert "permissions.md" in record.getMessage()


def test_coming_round_is_a_sign_of_life(bench: Bench) -> None:
    bench.now = 500.0
    assert bench.health.why_dead()
    bench.loop.once()
    assert bench.health.why_dead() is None


def test_at_the_end_writes_are_made_and_states_are_kept_before_another_may_lead(bench: Bench) -> None:
    stop = threading.Event()
    stop.set()
    bench.loop.run(stop)
    assert bench.recorded.told == ["wait for writes", "keep states", "resign", "close", "wait closed"]


def test_who_does_not_lead_at_the_end_keeps_nothing(bench: Bench) -> None:
    bench.recorded.leading = False
    stop = threading.Event()
    stop.set()
    bench.loop.run(stop)
    assert bench.recorded.told == ["wait for writes", "resign", "close", "wait closed"]
