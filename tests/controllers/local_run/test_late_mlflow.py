"""Nobody waits for MLflow once a run is stopped."""

import threading

import pytest

from controllers.local_run.late_mlflow import LateMlflow, SweepInMlflow

SWEEP = SweepInMlflow("http://127.0.0.1:9", "uid", {}, "title", "default", "default")


def test_once_the_run_is_stopped_nobody_waits_for_mlflow_to_open() -> None:
    late = LateMlflow(SWEEP, lambda: True)
    assert late.within(3600.0) is None


def test_once_the_run_is_stopped_nobody_waits_for_an_answer() -> None:
    late, answered = LateMlflow(SWEEP, lambda: True), threading.Event()
    late._wait(lambda: _hang(answered), 3600.0)
    answered.set()


def _hang(answered: threading.Event) -> None:
    answered.wait(3600.0)


def test_what_goes_wrong_while_mlflow_is_waited_for_comes_through() -> None:
    def fails() -> None:
        message = "no"
        raise OSError(message)

    with pytest.raises(OSError, match="no"):
        LateMlflow(SWEEP)._wait(fails, 60.0)
