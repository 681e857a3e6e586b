"""Replicas on real threads: one leads, another takes over."""

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field

from controllers.cluster.election import Election, Lease, LeaseTiming, LeaseUnavailableError, Request
from controllers.cluster.leadership import AlwaysLeading, Leadership
from tests.controller.test_election import StoredLease

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
