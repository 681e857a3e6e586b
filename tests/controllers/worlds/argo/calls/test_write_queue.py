"""Who waits for whom where more is to be changed than an API server takes at once."""

import threading
from collections.abc import Iterator

import pytest

from controllers.worlds.argo.calls.errors import ApiError
from controllers.worlds.argo.calls.write_queue import WriteQueue
from tests.controllers.worlds.argo.conftest import eventually


class Jam:
    """Writes whose threads for shares are all held up until ``gate`` is set."""

    def __init__(self) -> None:
        self.writes = WriteQueue()
        self.gate = threading.Event()
        self.made: list[str] = []
        for number in range(50):
            self.submit(f"jam-{number}", share=True)

    def submit(self, key: str, *, share: bool) -> bool:
        def call() -> None:
            if share:
                self.gate.wait(10)
            self.made.append(key)

        return self.writes.submit(key, call, _ignore, kind="shares" if share else "writes")


def _ignore(_: ApiError | None) -> None:
    """Nobody minds."""


@pytest.fixture
def jam() -> Iterator[Jam]:
    made = Jam()
    yield made
    made.gate.set()
    made.writes.close()


def test_a_move_does_not_wait_for_shares(jam: Jam) -> None:
    assert jam.submit("mover", share=False)
    eventually(lambda: jam.made == ["mover"])


def test_a_share_that_waits_is_overtaken_and_never_set(jam: Jam) -> None:
    jam.submit("a", share=True)
    assert jam.writes.overtake("a")
    assert not jam.writes.busy("a")
    jam.gate.set()
    assert jam.writes.wait_idle(10)
    assert sorted(jam.made) == sorted(f"jam-{number}" for number in range(50))


def test_a_share_that_is_being_set_is_not_overtaken(jam: Jam) -> None:
    eventually(lambda: not jam.writes.overtake("jam-0") and jam.writes.busy("jam-0"))


def test_a_move_is_not_overtaken() -> None:
    gate = threading.Event()
    writes = WriteQueue()
    for number in range(20):
        writes.submit(f"mover-{number}", lambda: _held(gate), _ignore)
    assert not writes.overtake("mover-19")
    assert writes.busy("mover-19")
    gate.set()
    writes.close()


def test_what_nobody_asked_for_can_not_be_overtaken(jam: Jam) -> None:
    assert not jam.writes.overtake("nobody")


def _held(gate: threading.Event) -> None:
    gate.wait(10)
