"""Moves, pauses and drained nodes cost no failure of a trial; to leave for nothing does, as on one machine."""

import time
from typing import Any, cast

import pytest

from controllers.core.actions import Migrate, Stop, Suspend
from controllers.core.after_attempt import MOST_BARREN, pause_s
from controllers.core.labels import (
    ANNOTATION_IDLE,
    ANNOTATION_IDLING,
    ANNOTATION_MOVE_TO,
    ANNOTATION_RETRIES,
    ANNOTATION_TRIES,
)
from controllers.core.model import NodeName, Phase, TrialId
from controllers.worlds.argo.deciding.commands import LeaveRequest
from controllers.worlds.argo.deciding.planner import Timeouts
from controllers.worlds.local.workflow.steps import RetryRule
from hera_specon.trial_retries import LIMIT, trial_retries
from tests.controllers.worlds.argo.conftest import Bench, Pods, bench, fake, pods  # noqa: F401 - fixtures
from tests.controllers.worlds.argo.objects import (
    BEGAN,
    NAMESPACE,
    WORKFLOW,
    over,
    pod,
    stamp,
    steps,
    template,
    trial,
    workflow,
)
from tests.retry_texts import filled_in

A = TrialId(trial("a"))
TO_N2 = Migrate(A, (NodeName("n2"),))
IDLE, TRIES = f"{ANNOTATION_IDLE}sweep-a", f"{ANNOTATION_TRIES}sweep-a"
FAILURES = 3


def swept(failures: int = FAILURES, policy: str = "default") -> dict[str, Any]:
    """The template of trial ``a`` with the retryStrategy that a sweep gives it."""
    strategy, made = trial_retries("sweep", failures, policy), template("a")
    made["metadata"]["annotations"][ANNOTATION_RETRIES] = str(failures)
    return {**made, "retryStrategy": {"limit": str(LIMIT), "expression": strategy.expression}}


def begun(
    bench: Bench,  # noqa: F811
    *codes: str | None,
    failures: int = FAILURES,
    phase: str = "Running",
    policy: str = "default",
) -> None:
    """Let Argo have made an attempt for each code, None for one that has not ended."""
    made = workflow(steps("a", phase, *(("n1", code) for code in codes)), templates=[swept(failures, policy)])
    held = bench.fake.store.objects["workflows"].get(f"{NAMESPACE}/{WORKFLOW}")
    made["metadata"]["annotations"] |= held["metadata"]["annotations"] if held else {}
    bench.put("workflows", made)


def left(attempt: int, step: int = 0, **changes: Any) -> dict[str, Any]:  # noqa: ANN401 - of a pod
    made = over(75, attempt=attempt, on="n1", **changes)
    (status,) = made["status"]["containerStatuses"]
    words = f"left at step {step}, so that the next attempt goes on from there" if step else "no licence left"
    times = {"startedAt": stamp(BEGAN + 10), "finishedAt": stamp(BEGAN + changes.get("lasted_s", 99) + 10)}
    status["state"]["terminated"] |= {"message": words, **times}
    return made


def marks(bench: Bench) -> dict[str, str]:  # noqa: F811
    found: dict[str, str] = bench.fake.store.objects["workflows"][f"{NAMESPACE}/{WORKFLOW}"]["metadata"]["annotations"]
    return found


def opened(bench: Bench, attempt: int) -> bool:  # noqa: F811
    found = bench.pod(attempt=attempt)
    return found is not None and not found["spec"].get("schedulingGates")


def argo_goes_on(bench: Bench, code: int, attempts: int, failures: int = FAILURES) -> bool:  # noqa: F811
    """Whether Argo makes another attempt after the last of so many, by the workflow's annotations."""
    expression = cast("str", trial_retries("sweep", failures, "default").expression)
    for mark, default in ((IDLE, str(LIMIT)), (TRIES, str(failures))):
        name = mark.removeprefix("hera-specon.").removesuffix("a")
        chosen = marks(bench).get(mark, default)
        whole = f"workflow.annotations['hera-specon']?.['{name}' + inputs.parameters.trial] ?? '{default}'"
        assert whole in expression
        expression = expression.replace(whole, whole.replace(f"'{default}'", f"'{chosen}'"))
    return RetryRule(LIMIT, "Always", filled_in(expression)).allows(attempts, code)


@pytest.mark.parametrize("failures", [0, 3])
def test_sixty_and_more_moves_end_no_trial(failures: int) -> None:
    strategy = trial_retries("sweep", failures, "default")
    expression = filled_in(cast("str", strategy.expression))
    assert strategy.limit is not None
    assert strategy.limit.root == LIMIT
    rule = RetryRule(LIMIT, "Always", expression)
    assert all(rule.allows(attempt, 75) for attempt in range(1, 800))
    assert not rule.allows(LIMIT + 1, 75)


@pytest.mark.parametrize("action", [TO_N2, Suspend(A)])
def test_before_argo_makes_no_more_attempts_a_trial_is_moved_and_paused_no_more(
    bench: Bench,  # noqa: F811
    action: Migrate | Suspend,
) -> None:
    attempts = LIMIT - LIMIT // 5 + 1
    begun(bench, *["75"] * (attempts - 1), None)
    bench.put("pods", pod(attempt=attempts - 1, on="n1"))
    bench.begin()
    outcome = bench.world.apply(action)
    assert (outcome.done, f"{attempts} attempts of the {LIMIT}" in outcome.detail) == (False, True)
    assert bench.world.apply(Stop(A, "its owner wants that")).done


def test_a_workflow_with_a_limit_of_its_own_is_kept_to_that(bench: Bench) -> None:  # noqa: F811
    made = workflow(steps("a", "Running", *[("n1", "75")] * 44, ("n1", None)), templates=[swept()])
    made["spec"]["templates"][1]["retryStrategy"]["limit"] = 50
    bench.put("workflows", made)
    bench.put("pods", pod(attempt=44, on="n1"))
    bench.begin()
    outcome = bench.world.apply(TO_N2)
    assert (outcome.done, "45 attempts of the 50" in outcome.detail) == (False, True)


@pytest.mark.parametrize("interruption", ["75", "143", None])
def test_interruptions_leave_the_retries_for_failures(bench: Bench, interruption: str | None) -> None:  # noqa: F811
    codes = [interruption] * 9
    begun(bench, *codes, None)
    bench.put("pods", pod(attempt=9, on="n1"))
    bench.begin()
    bench.until(lambda: marks(bench).get(TRIES) == str(FAILURES + 9))
    assert argo_goes_on(bench, 1, 10)
    assert argo_goes_on(bench, 1, 9 + FAILURES)
    assert not argo_goes_on(bench, 1, 10 + FAILURES)
    assert argo_goes_on(bench, -1, 60)


def test_failures_alone_are_forgiven_as_often_as_their_author_says(bench: Bench) -> None:  # noqa: F811
    begun(bench, *["1"] * FAILURES, None)
    bench.put("pods", pod(attempt=FAILURES, on="n1"))
    bench.begin()
    bench.settle()
    assert TRIES not in marks(bench)
    assert not argo_goes_on(bench, 1, FAILURES + 1)


@pytest.mark.parametrize("moves", [0, 1, 2])
def test_the_moves_that_a_policy_may_make_are_no_failures_to_forgive(bench: Bench, moves: int) -> None:  # noqa: F811
    codes = [*["75"] * moves, *["1"] * FAILURES]
    begun(bench, *codes[:-1], None, policy="specon")
    bench.put("pods", pod(attempt=len(codes) - 1, on="n1"))
    bench.begin()
    bench.settle()
    assert TRIES not in marks(bench)
    begun(bench, *codes, None, policy="specon")
    bench.put("pods", pod(attempt=len(codes), on="n1"))
    bench.until(lambda: bench.trial().attempt == len(codes) + 1)
    bench.settle()
    # What Argo was told by the template lets two moves come before the last attempt, and no more is needed for these.
    assert marks(bench).get(TRIES) == (str(FAILURES + moves) if moves < 2 else None)
    begun(bench, *codes, "1", phase="Failed", policy="specon")
    bench.put("pods", over(1, attempt=len(codes), on="n1"))
    bench.until(lambda: bench.trial().phase is Phase.FAILED)
    assert [one.given_up for one in bench.world.results({})] == [False]


def test_a_trial_of_many_moves_that_was_never_given_up_does_not_say_so(bench: Bench) -> None:  # noqa: F811
    begun(bench, *["75"] * 5, "1", "1", "1", "1", phase="Failed")
    made = bench.fake.store.objects["workflows"][f"{NAMESPACE}/{WORKFLOW}"]
    made["metadata"]["annotations"][TRIES] = str(FAILURES + 5)
    bench.put("workflows", made)
    bench.begin()
    assert [(one.succeeded, one.given_up) for one in bench.world.results({})] == [(False, False)]


def play(bench: Bench, attempts: int, step: int = 0, **changes: Any) -> None:  # noqa: ANN401, F811 - of a pod
    """Let a trial leave so many times, each attempt once its gate is opened."""
    for attempt in range(attempts):
        kept = notes(bench, attempt) if attempt else {}
        more = {**changes.get("notes", {}), **kept}
        bench.put("pods", left(attempt, step, **{**changes, "notes": more}))
        bench.put("pods", pod(attempt=attempt + 1, gated=True))
        begun(bench, *["75"] * (attempt + 1), None)
        bench.until(lambda attempt=attempt: opened(bench, attempt + 1))  # type: ignore[misc]


def notes(bench: Bench, attempt: int) -> dict[str, str]:  # noqa: F811
    written = (bench.pod(attempt=attempt) or {})["metadata"]["annotations"]
    return {name: value for name, value in written.items() if name == ANNOTATION_IDLING}


def test_a_trial_that_leaves_unasked_and_gains_nothing_uses_its_retries_up(bench: Bench) -> None:  # noqa: F811
    begun(bench, None)
    bench.begin()
    # Two for nothing are free, then each counts: those forgiven, and one more.
    last = MOST_BARREN + FAILURES
    play(bench, last - 1)
    assert IDLE not in marks(bench)
    assert argo_goes_on(bench, 75, last)
    play_on(bench, last)
    assert marks(bench)[IDLE] == str(last)
    assert not argo_goes_on(bench, 75, last + 1)
    assert "GivenUp" in bench.told.reasons
    bench.put("pods", pod(attempt=last, on="n1"))
    bench.until(lambda: bench.trial().node == "n1")
    outcome = bench.world.apply(TO_N2)
    assert (outcome.done, "this attempt is its last" in outcome.detail) == (False, True)


def play_on(bench: Bench, attempts: int) -> None:  # noqa: F811
    """Let the newest attempt, which makes so many, leave too."""
    bench.put("pods", left(attempts - 1, notes=notes(bench, attempts - 1)))
    bench.put("pods", pod(attempt=attempts, gated=True))
    begun(bench, *["75"] * attempts, None)
    bench.until(lambda: opened(bench, attempts))


@pytest.mark.parametrize(
    "changes",
    [
        {"notes": {ANNOTATION_MOVE_TO: "n2"}},
        {"notes": {"hera-specon.io/rest": "suspend"}},
        {"deleted": BEGAN + 20},
        {"conditions": [{"type": "DisruptionTarget", "status": "True"}]},
    ],
    ids=["moved", "suspended", "drained", "evicted"],
)
def test_a_trial_that_was_made_to_leave_uses_nothing_up(bench: Bench, changes: dict[str, Any]) -> None:  # noqa: F811
    begun(bench, None)
    bench.begin()
    for attempt in range(MOST_BARREN + FAILURES + 2):
        bench.put("pods", left(attempt, **changes))
        bench.put("pods", pod(attempt=attempt + 1, on="n1"))
        begun(bench, *["75"] * (attempt + 1), None)
        bench.until(lambda attempt=attempt: bench.trial().attempt == attempt + 2)  # type: ignore[misc]
    bench.settle()
    assert IDLE not in marks(bench)


def test_a_trial_that_leaves_unasked_goes_on_as_long_as_it_gains_steps(bench: Bench) -> None:  # noqa: F811
    begun(bench, None)
    bench.begin()
    for attempt in range(MOST_BARREN + FAILURES + 3):
        bench.put("pods", left(attempt, step=attempt + 1, notes=notes(bench, attempt) if attempt else {}))
        bench.put("pods", pod(attempt=attempt + 1, gated=True))
        begun(bench, *["75"] * (attempt + 1), None)
        bench.until(lambda attempt=attempt: opened(bench, attempt + 1))  # type: ignore[misc]
        assert notes(bench, attempt + 1)[ANNOTATION_IDLING] == f"0,{attempt + 1},0"
    assert IDLE not in marks(bench)


def test_the_same_last_words_again_end_it_sooner(bench: Bench) -> None:  # noqa: F811
    begun(bench, *["75"] * 3, "75")
    mark = {ANNOTATION_IDLING: f"{MOST_BARREN - 1},0,0"}
    again = {ANNOTATION_IDLING: f"{MOST_BARREN},0,1"}
    bench.put("pods", left(2, lasted_s=5, notes=mark))
    bench.put("pods", left(3, lasted_s=5, notes=again))
    bench.begin()
    bench.until(lambda: marks(bench).get(IDLE) == "3")
    assert not argo_goes_on(bench, 75, 4)


def test_the_pauses_between_attempts_for_nothing_grow(bench: Bench) -> None:  # noqa: F811
    begun(bench, *["75"] * 3, None)
    bench.put("pods", left(2, notes={ANNOTATION_IDLING: "5,0,2"}))
    waiting = pod(attempt=3, gated=True)
    waiting["metadata"]["creationTimestamp"] = stamp(int(time.time()))
    bench.put("pods", waiting)
    bench.begin()
    bench.settle()
    assert not opened(bench, 3)
    bench.ahead_s = pause_s(6) + 1
    bench.until(lambda: opened(bench, 3))


def test_what_was_left_for_nothing_is_kept_by_the_next_controller(bench: Bench) -> None:  # noqa: F811
    begun(bench, *["75"] * 2, None)
    bench.put("pods", left(1, notes={ANNOTATION_IDLING: "1,0,0"}))
    bench.put("pods", pod(attempt=2, gated=True))
    bench.begin()
    bench.until(lambda: opened(bench, 2))
    assert notes(bench, 2)[ANNOTATION_IDLING] == "2,0,0"


@pytest.mark.parametrize("written", ["", "x", "1,2", "1,2,3,4", "-1,0,0", "nan,0,0"])
def test_counts_that_make_no_sense_count_as_none(bench: Bench, written: str) -> None:  # noqa: F811
    begun(bench, "75", None)
    bench.put("pods", left(0, step=7, notes={ANNOTATION_IDLING: written}))
    bench.put("pods", pod(attempt=1, gated=True))
    bench.begin()
    bench.until(lambda: opened(bench, 1))
    assert notes(bench, 1)[ANNOTATION_IDLING] == "0,7,0"


def test_a_move_first_asked_for_while_the_server_is_away_is_tried_when_it_is_back(
    bench: Bench,  # noqa: F811
    pods: Pods,  # noqa: F811
) -> None:
    begun(bench, None)
    bench.put("pods", pod(on="n1"))
    bench.begin(Timeouts(unreachable=0.5))
    away = True

    def answer(call: Any) -> tuple[int, str] | None:  # noqa: ANN401 - of the fake
        return (503, "away") if away and call.method == "GET" and call.path.endswith("/pods/sweep-x-a-0") else None

    bench.fake.fault = answer
    assert bench.world.apply(TO_N2).done
    bench.until(lambda: len(bench.fake.of("GET", "/pods/sweep-x-a-0")) > 2)
    assert pods.commands == []
    away = False
    bench.until(lambda: pods.commands)
    assert "MoveFailed" not in bench.told.reasons


def test_a_long_outage_between_two_tries_is_no_time_in_which_a_pod_could_not_be_reached() -> None:
    asked = LeaveRequest().tried(1000.0)
    assert asked.vain_s == 0
    assert asked.tried(1600.0).vain_s < Timeouts().unreachable
    for second in range(70):
        asked = asked.tried(2000.0 + second)
    assert asked.vain_s > Timeouts().unreachable


def test_a_pod_that_cannot_be_reached_though_the_server_answers_goes_on_where_it_is(
    bench: Bench,  # noqa: F811
    pods: Pods,  # noqa: F811
) -> None:
    begun(bench, None)
    bench.put("pods", pod(on="n1"))
    pods.unreachable = True
    bench.begin(Timeouts(unreachable=0.5))
    assert bench.world.apply(TO_N2).done
    bench.until(lambda: "MoveFailed" in bench.told.reasons)
