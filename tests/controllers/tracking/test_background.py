"""One thread reads for every sweep: newcomers soon, and nobody is kept from it by another's trouble."""

import threading
import time
from collections.abc import Callable, Mapping

from controllers.core.model import Sample, TrialId
from controllers.tracking.background import BackgroundReader


class Source:
    """Gives a sample that counts its polls."""

    def __init__(self, *, broken: bool = False) -> None:
        self.polls, self.broken, self.threads = 0, broken, set[str]()
        self.silent = False

    def poll(self) -> Mapping[TrialId, Sample]:
        self.polls += 1
        self.threads.add(threading.current_thread().name)
        if self.broken:
            raise RuntimeError
        return {} if self.silent else {TrialId("t"): Sample(float(self.polls), self.polls, 0.0)}


def until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 30
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_every_source_is_read_again_and_again_on_the_one_thread() -> None:
    one, two = Source(), Source()
    with BackgroundReader(0.01) as reader, reader.follow(one) as first, reader.follow(two) as second:
        until(lambda: one.polls > 2 and two.polls > 2)
        assert first.poll()
        assert second.poll()
    assert one.threads == two.threads
    assert len(one.threads) == 1


def test_a_newcomer_is_read_without_waiting_for_the_next_round() -> None:
    newcomer = Source()
    with BackgroundReader(3600.0) as reader, reader.follow(Source()) as old:
        until(lambda: bool(old.poll()))
        with reader.follow(newcomer) as latest:
            until(lambda: bool(latest.poll()))


def test_a_source_that_is_not_followed_any_more_is_not_read() -> None:
    left, stays = Source(), Source()
    with BackgroundReader(0.01) as reader, reader.follow(stays):
        with reader.follow(left):
            until(lambda: left.polls > 0)
        until(lambda: stays.polls > 1)
        before, rounds = left.polls, stays.polls
        until(lambda: stays.polls > rounds + 3)
    assert left.polls <= before + 1


def test_what_was_found_stays_while_a_source_finds_nothing() -> None:
    source = Source()
    with BackgroundReader(0.01) as reader, reader.follow(source) as latest:
        until(lambda: bool(latest.poll()))
        source.silent = True
        before = source.polls
        until(lambda: source.polls > before + 2)
        assert latest.poll()


def test_a_source_that_breaks_keeps_no_other_from_being_read() -> None:
    source = Source()
    with BackgroundReader(0.01) as reader, reader.follow(Source(broken=True)), reader.follow(source) as latest:
        until(lambda: bool(latest.poll()))
