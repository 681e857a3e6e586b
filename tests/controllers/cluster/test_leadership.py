"""Replicas on real threads: one leads, another takes over."""

import contextlib
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field

import pytest

from controllers.cluster import run
from controllers.cluster.election import Election, Lease, LeaseTiming, LeaseUnavailableError, Request
from controllers.cluster.leadership import AlwaysLeading, Leadership
from controllers.cluster.settings import ControllerSettings
from controllers.worlds.argo.calls.api import KubeApi
from controllers.worlds.argo.reading.watch import since_boot
from tests.controllers.cluster.test_election import StoredLease

QUICK = LeaseTiming(0.6, 0.4, 0.02)


@dataclass
class Server:
    """A lease that several threads use, and that may be away."""

    stored: StoredLease = field(default_factory=StoredLease)
    lock: threading.Lock = field(default_factory=threading.Lock)
    away: bool = False

    def carry_out(self, request: Request) -> Lease | None:
        with self.lock:
            if self.away:
                raise LeaseUnavailableError
            return self.stored.carry_out(request)

    def replica(self, name: str) -> Leadership:
        return Leadership(Election(name, QUICK, time.monotonic), self)


def until(condition: Callable[[], bool]) -> None:
    for _ in range(1000):
        if condition():
            return
        time.sleep(0.01)
    raise AssertionError


def test_one_leads_and_the_other_takes_over_when_it_resigns() -> None:
    server = Server()
    with server.replica("one") as one:
        until(lambda: one.leading)
        with server.replica("two") as two:
            assert not two.leading
            one.resign()
            assert not one.leading
            until(lambda: two.leading)
            assert not one.leading


def test_a_leader_that_cannot_reach_the_server_stops_and_leads_again_when_it_can() -> None:
    server = Server()
    with server.replica("one") as one:
        until(lambda: one.leading)
        server.away = True
        until(lambda: not one.leading)
        server.away = False
        until(lambda: one.leading)


def test_the_lease_is_free_after_a_clean_end() -> None:
    server = Server()
    with server.replica("one") as one:
        until(lambda: one.leading)
    assert server.stored.lease is not None
    assert server.stored.lease.holder == ""


def test_a_single_controller_needs_no_lease() -> None:
    with AlwaysLeading() as alone:
        assert alone.leading
        alone.resign()


def test_a_leader_whose_machine_slept_does_not_believe_that_it_still_leads(monkeypatch: pytest.MonkeyPatch) -> None:
    seconds = {"monotonic": 100.0, "since boot": 100.0}
    watch = "controllers.worlds.argo.reading.watch"
    monkeypatch.setattr(f"{watch}.time.monotonic", lambda: seconds["monotonic"])
    monkeypatch.setattr(f"{watch}.time.clock_gettime", lambda _clock: seconds["since boot"])
    election, stored = Election("one", LeaseTiming(), since_boot), StoredLease()
    round_ = election.round()
    request = next(round_)
    with contextlib.suppress(StopIteration):
        while True:
            request = round_.send(stored.carry_out(request))
    assert election.leading
    seconds["since boot"] += 3600.0
    assert not election.leading


def test_the_controllers_own_election_goes_by_that_clock(monkeypatch: pytest.MonkeyPatch) -> None:
    clocks: list[object] = []

    def note(identity: str, timing: LeaseTiming, clock: Callable[[], float]) -> Election:
        clocks.append(clock)
        return Election(identity, timing, clock)

    monkeypatch.setattr(run, "Election", note)
    monkeypatch.setattr(KubeApi, "load", lambda *_, **__: None)
    run._leadership(
        ControllerSettings(
            namespaces=(),
            policy="default",
            interval=5.0,
            tracking_uri="http://mlflow:5000",
            recommend=False,
            leader_elect=True,
            lease_name="specon-controller",
            lease_namespace="own",
            health_port=8081,
            metrics_port=8080,
            stale_after=45.0,
            log_format="json",
            log_level="info",
        )
    )
    assert clocks == [since_boot]
