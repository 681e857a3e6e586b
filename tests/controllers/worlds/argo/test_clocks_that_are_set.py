"""The controller's own clock may be set at any time: what pods are given is counted without it."""

import time
from collections.abc import Callable

import pytest

from controllers.worlds.argo.deciding.planner import Timeouts
from controllers.worlds.argo.reading.workflows import FORGET_AFTER_S, project_workflow
from tests.controllers.worlds.argo.conftest import Bench
from tests.controllers.worlds.argo.fake_api import FakeApi
from tests.controllers.worlds.argo.objects import BEGAN, pod, stamp, steps, workflow
from tests.controllers.worlds.argo.test_moves import ASK, FORCE, TO_N2

HOUR = 3600.0


@pytest.fixture
def turn(monkeypatch: pytest.MonkeyPatch) -> Callable[[float], None]:
    """Sets the machine's clock: by so many seconds off what is true."""
    real = time.time
    return lambda seconds: monkeypatch.setattr(time, "time", lambda: real() + seconds)


@pytest.mark.parametrize("off_s", [HOUR, -HOUR])
def test_a_trial_that_was_asked_to_leave_has_its_grace_and_no_more(
    bench: Bench, turn: Callable[[float], None], off_s: float
) -> None:
    now = 100.0
    bench.put("pods", pod(on="n1"))
    bench.begin(Timeouts(kill_every=1.0))
    turn(off_s)

    def after(seconds: float) -> list[tuple[str, str]]:
        nonlocal now
        now += seconds
        for _ in range(5):
            bench.world.advance(now)
            assert bench.view.writes.wait_idle(5)
            time.sleep(0.3)
        return bench.pods.commands

    after(0.0)
    assert bench.world.apply(TO_N2).done
    asked = [("sweep-x-a-0", ASK)]
    assert after(0.0) == asked
    assert after(5.0) == asked
    assert after(60.0)[:2] == [*asked, ("sweep-x-a-0", FORCE)]


@pytest.mark.parametrize("off_s", [HOUR, -HOUR, 24 * HOUR])
def test_the_clock_of_the_api_server_counts_and_not_the_controllers(
    fake: FakeApi, turn: Callable[[float], None], off_s: float
) -> None:
    api = fake.client()
    true = time.time()
    fake.date = lambda: true
    turn(off_s)
    api.get("/api/v1/nodes")
    assert api.epoch() == pytest.approx(true, abs=10)
    api.close()


def test_a_workflow_that_just_ended_is_not_forgotten_by_a_controller_whose_clock_is_ahead() -> None:
    ended = BEGAN + 90
    item = workflow(steps("a", "Succeeded", ("n1", "0")), phase="Succeeded")
    item["status"]["finishedAt"] = stamp(ended)
    assert project_workflow(item, ended + 60) is not None
    assert project_workflow(item, ended + FORGET_AFTER_S + 1) is None
