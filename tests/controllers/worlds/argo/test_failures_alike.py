"""Attempts that fail alike at once: a controller has Argo try no more, and takes that back where it was wrong."""

import time
from typing import Any

import pytest

from controllers.core.labels import ANNOTATION_TRIES
from tests.controllers.worlds.argo.conftest import Bench
from tests.controllers.worlds.argo.objects import BEGAN, NAMESPACE, WORKFLOW, over, pod, stamp, steps, workflow

MARK = f"{ANNOTATION_TRIES}sweep-a"
ARGOEXEC = 'time=2026-11-23T12:55:52.019Z level=INFO msg="sub-process exited" argo=true\nError: exit status 1\n'
MISTAKE = f"step 0\nValueError: no layer conv9\n\n{ARGOEXEC}"


def failed(attempt: int, message: str = MISTAKE, code: int = 1, lasted_s: float = 5.0) -> dict[str, Any]:
    made = over(code, attempt=attempt, on="n1")
    (status,) = made["status"]["containerStatuses"]
    times = {"startedAt": stamp(BEGAN + 10), "finishedAt": stamp(BEGAN + 10 + lasted_s)}
    status["state"]["terminated"] |= {"message": message, **times}
    return made


def running(attempt: int, since: float) -> dict[str, Any]:
    made = pod(attempt=attempt, on="n1")
    (status,) = made["status"]["containerStatuses"]
    status["state"]["running"] = {"startedAt": stamp(since)}
    return made


def mark(bench: Bench) -> str | None:
    found = bench.fake.store.objects["workflows"][f"{NAMESPACE}/{WORKFLOW}"]
    written: str | None = found["metadata"]["annotations"].get(MARK)
    return written


def begun(bench: Bench, *attempts: tuple[str, str | None]) -> dict[str, Any]:
    made = workflow(steps("a", "Running", *attempts))
    bench.put("workflows", made)
    return made


def test_a_trial_that_fails_twice_alike_at_once_is_given_up(bench: Bench) -> None:
    begun(bench, ("n1", "1"), ("n1", None))
    bench.put("pods", failed(0))
    bench.put("pods", pod(attempt=1, on="n1"))
    bench.begin()
    bench.settle()
    assert mark(bench) is None
    bench.put("pods", failed(1, "step 1\nValueError: no layer conv9"))
    bench.until(lambda: mark(bench) == "1" and bool(bench.told.reasons))  # the event follows the mark
    assert bench.told.reasons == ["GivenUp"]
    bench.settle()
    assert bench.told.reasons == ["GivenUp"]


@pytest.mark.parametrize(
    "second",
    [
        failed(1, f"OSError: the disk is full\n{ARGOEXEC}"),
        failed(1, code=2),
        failed(1, lasted_s=61),
        failed(1, message=ARGOEXEC),
        failed(1, code=137),
        failed(1, code=75),
        failed(2),
    ],
    ids=["other words", "other code", "later", "no words", "killed", "moved", "another attempt between"],
)
def test_other_failures_leave_the_authors_limit_as_it_is(bench: Bench, second: dict[str, Any]) -> None:
    begun(bench, *[("n1", "1")] * 3)
    bench.put("pods", failed(0))
    bench.put("pods", second)
    bench.begin()
    bench.settle()
    assert mark(bench) is None
    assert bench.told.reasons == []


def test_a_trial_that_was_given_up_and_trains_after_all_has_its_authors_limit_again(bench: Bench) -> None:
    made = begun(bench, ("n1", "1"), ("n1", "1"), ("n1", None))
    made["metadata"]["annotations"][MARK] = "1"
    bench.put("workflows", made)
    bench.put("pods", running(2, time.time() - 30))
    bench.begin()
    bench.settle()
    assert mark(bench) == "1"
    bench.ahead_s = 40
    bench.until(lambda: mark(bench) is None)


def test_a_trial_that_was_given_up_says_so_in_its_result(bench: Bench) -> None:
    made = workflow(steps("a", "Failed", ("n1", "1"), ("n1", "1")), "Failed")
    made["metadata"]["annotations"][MARK] = "1"
    bench.put("pods", failed(1))
    world = bench.begin()
    bench.put("workflows", made)
    bench.until(lambda: world.finished)
    assert [(one.id, one.succeeded, one.given_up) for one in world.results({})] == [("sweep.a", False, True)]
