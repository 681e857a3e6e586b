"""Who takes Ctrl-C and SIGTERM over, and in which thread."""

import os
import signal
import threading
import time
from collections.abc import Callable
from itertools import count

import pytest

from controllers.driving.stop_signals import heard_while, stop_on_signals, waited


def test_the_first_signal_requests_a_stop_and_afterwards_all_is_as_before() -> None:
    before = [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)]
    with stop_on_signals() as stop:
        assert not stop.is_set()
        os.kill(os.getpid(), signal.SIGTERM)
        assert stop.wait(10.0)
    assert [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)] == before


def test_in_another_thread_a_run_leaves_the_signals_to_the_main_one() -> None:
    before = [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)]
    found: list[object] = []

    def work() -> None:
        with stop_on_signals() as stop:
            found.extend([stop.is_set(), *(signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM))])

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert found == [False, *before]


def heard(work: Callable[[], object], told: list[str]) -> object:
    return heard_while(work, lambda: told.append("still"))


def ask_main_thread(number: int) -> None:
    os.kill(os.getpid(), number)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_work_is_asked_to_stop_by_the_thread_that_hears(number: int) -> None:
    before = [signal.getsignal(one) for one in (signal.SIGINT, signal.SIGTERM)]
    told: list[str] = []

    def work() -> bool:
        assert threading.current_thread() is not threading.main_thread()
        with stop_on_signals() as stop:
            ask_main_thread(number)
            return stop.wait(30.0)

    assert heard(work, told) is True
    assert told == []
    assert [signal.getsignal(one) for one in (signal.SIGINT, signal.SIGTERM)] == before


def test_of_work_that_waits_for_a_disk_it_is_told_that_it_goes_on() -> None:
    """The main thread hears, though the work is where Python calls no handler: as one that never comes back to it."""
    told: list[str] = []

    def work() -> str:
        with stop_on_signals() as stop:
            ask_main_thread(signal.SIGINT)
            until = time.monotonic() + 60.0
            while not told and time.monotonic() < until:
                time.sleep(0.05)
            return f"stopped {stop.is_set()}"

    assert heard(work, told) == "stopped True"
    assert told == ["still"]


def test_before_work_can_be_asked_ctrl_c_ends_it_as_ever() -> None:
    gone_on = threading.Event()

    def work() -> None:
        ask_main_thread(signal.SIGINT)
        gone_on.wait(30.0)

    with pytest.raises(KeyboardInterrupt):
        heard(work, [])
    gone_on.set()


def test_what_work_raises_and_returns_comes_through() -> None:
    assert heard(lambda: 3, []) == 3

    def fails() -> None:
        message = "no"
        raise ValueError(message)

    with pytest.raises(ValueError, match="no"):
        heard(fails, [])


def test_in_another_thread_work_is_done_there() -> None:
    found: list[object] = []
    thread = threading.Thread(target=lambda: found.append(heard(threading.current_thread, [])))
    thread.start()
    thread.join()
    assert found == [thread]


def test_nobody_waits_once_the_run_is_stopped() -> None:
    asked = count()
    assert not waited(threading.Event().wait, 3600.0, lambda: next(asked) > 0)
    assert waited(lambda _: True, 0.0, lambda: True)
    assert not waited(threading.Event().wait, 0.0, lambda: False)
