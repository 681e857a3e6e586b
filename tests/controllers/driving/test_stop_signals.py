"""Who takes Ctrl-C and SIGTERM over, and in which thread."""

import os
import signal
import threading

from controllers.driving.stop_signals import stop_on_signals


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
