"""How many workers a trial has."""

import re
from typing import Any

import pytest
from hera.workflows import Workflow

from controllers.core import labels
from controllers.core.expressions import gang_retries, worker_gates, workers
from hera_specon import Sweep, SweepError, choice, minimize, tpe
from hera_specon.errors import SubmissionError
from hera_specon.gang_request import GangRequest
from hera_specon.submission.checks import asked_gangs, check_for_cluster
from hera_specon.submission.edits import Overrides, edit_manifest
from hera_specon.trial_retries import LIMIT
from mlflow_hooks import contract


def workflow_of(given: Any, **settings: Any) -> Workflow:  # noqa: ANN401 - authors pass what they like
    own = {name: settings.pop(name) for name in ("parallelism",) if name in settings}
    with Workflow(generate_name="a-", entrypoint="a", **own) as w:
        basics: dict[str, Any] = {"space": {"x": choice(1)}, "trials": 1, "image": "i", "command": ["c"]}
        Sweep(**basics | {"name": "a", "objective": minimize("loss"), "workers": given} | settings)
    return w


def templates(given: Any, **settings: Any) -> dict[str, dict[str, Any]]:  # noqa: ANN401 - as above
    return {one["name"]: one for one in workflow_of(given, **settings).to_dict()["spec"]["templates"]}


def trial_of(workers: Any, **settings: Any) -> dict[str, Any]:  # noqa: ANN401 - as above
    return next(one for one in templates(workers, **settings).values() if "container" in one)


def annotations(workers: Any) -> dict[str, str]:  # noqa: ANN401 - as above
    found: dict[str, str] = trial_of(workers)["metadata"]["annotations"]
    return found


def environment(workers: Any) -> dict[str, str]:  # noqa: ANN401 - as above
    return {one["name"]: one.get("value", "") for one in trial_of(workers)["container"]["env"]}


def test_a_gang_is_announced_on_its_pods_and_one_worker_is_not_mentioned() -> None:
    assert annotations(4)[labels.ANNOTATION_WORKERS] == "4"
    assert labels.ANNOTATION_WORKERS not in annotations(1)


def test_an_elastic_trial_says_the_least_and_the_most_of_its_workers() -> None:
    found = annotations((1, 4))
    assert (found[labels.ANNOTATION_MIN_WORKERS], found[labels.ANNOTATION_WORKERS]) == ("1", "4")
    assert labels.ANNOTATION_MIN_WORKERS not in annotations((4, 4))


def test_training_programs_are_told_how_many_workers_a_trial_may_have() -> None:
    assert environment((1, 4))[contract.ENV_WORKERS_MAX] == "4"
    assert contract.ENV_WORKERS_MAX not in environment(1)


@pytest.mark.parametrize("workers", [0, -1, 1.5, "two", True, 65, (0, 2), (1, 65), (1, 2, 3), (1, "four")])
def test_a_number_of_workers_that_makes_no_sense_is_refused(workers: object) -> None:
    with pytest.raises(SweepError, match=re.escape(f"from 1 to 64, or two such as (1, 4), not {workers!r}")):
        annotations(workers)


def test_the_least_above_the_most_is_refused_with_the_right_order() -> None:
    with pytest.raises(SweepError, match=re.escape("as in (1, 4), not (4, 1)")):
        annotations((4, 1))


def test_a_workflow_that_limits_its_pods_runs_no_gangs() -> None:
    with pytest.raises(SweepError, match=re.escape("Workflow(parallelism=3) limits pods")):
        trial_of((1, 4), parallelism=3)
    assert trial_of(1, parallelism=3)


def test_a_trial_of_one_worker_is_one_pod_as_ever() -> None:
    built = templates(1)
    assert list(built) == ["a", "a-trial"]
    assert built["a-trial"]["retryStrategy"]["limit"] == LIMIT
    assert "RANK" not in {one["name"] for one in built["a-trial"]["container"]["env"]}


def test_a_gangs_attempt_is_one_attempt_of_a_step_that_runs_all_workers() -> None:
    built = templates((1, 4))
    trial, worker = built["a-trial"], built["a-worker"]
    assert set(trial) == {"name", "steps", "inputs", "retryStrategy"}
    assert "retryStrategy" not in worker
    ((step,),) = trial["steps"]
    assert (step["name"], step["template"], step["withSequence"]) == ("worker", "a-worker", {"count": workers("a", 4)})
    passed = {one["name"]: one["value"] for one in step["arguments"]["parameters"]}
    assert list(passed) == [one["name"] for one in worker["inputs"]["parameters"]]
    assert passed == {
        "trial": "{{inputs.parameters.trial}}",
        "x": "{{inputs.parameters.x}}",
        "gang-attempt": "{{retries}}",
        "gang-rank": "{{item}}",
        "gang-workers": workers("a", 4),
    }
    assert trial["retryStrategy"]["expression"] == gang_retries("a", 3)


def test_workers_find_their_rank_size_address_and_a_token_that_all_of_them_share() -> None:
    worker = templates(2)["a-worker"]
    given = {one["name"]: one.get("value") or one["valueFrom"]["fieldRef"] for one in worker["container"]["env"]}
    assert given["RANK"] == "{{inputs.parameters.gang-rank}}"
    assert given["WORLD_SIZE"] == {"fieldPath": "metadata.annotations['hera-specon.io/world-size']"}
    assert given["SPECON_ATTEMPT"] == {"fieldPath": "metadata.annotations['hera-specon.io/attempt-token']"}
    assert given["SPECON_POD_IP"] == {"fieldPath": "status.podIP"}
    notes = worker["metadata"]["annotations"]
    assert notes["hera-specon.io/attempt-token"] == "{{workflow.uid}}.{{inputs.parameters.gang-attempt}}"
    assert worker_gates("a") in worker["podSpecPatch"]


def test_a_gang_that_a_search_holds_begins_with_the_least_number_of_workers() -> None:
    built = templates((2, 4), search=tpe(), trials=3)
    ((step,),) = built["a-trial"]["steps"]
    assert step["withSequence"] == {"count": workers("a", 2)}
    assert worker_gates("a", first=True) in built["a-worker"]["podSpecPatch"]


def manifest(given: Any, policy: str = "default") -> dict[str, Any]:  # noqa: ANN401 - as above
    settings = {"policy": policy, "state_claim": "state", "mlflow_tracking_uri": "http://mlflow:5000"}
    found: dict[str, Any] = workflow_of(given, **settings).to_dict()
    return found


def test_where_first_attempts_wait_a_gang_is_submitted_with_the_least_number_of_workers() -> None:
    held = edit_manifest(manifest((2, 4)), Overrides(gate_first=True))
    by_name = {one["name"]: one for one in held["spec"]["templates"]}
    ((step,),) = by_name["a-trial"]["steps"]
    assert (step["withSequence"]["count"], step["arguments"]["parameters"][-1]["value"]) == (workers("a", 2),) * 2
    assert worker_gates("a", first=True) in by_name["a-worker"]["podSpecPatch"]
    check_for_cluster(held)


def test_a_gang_as_sweep_builds_it_can_be_submitted() -> None:
    check_for_cluster(manifest((1, 4)))


@pytest.mark.parametrize(
    ("most", "least", "why"),
    [("65", "1", "'65' as annotation"), ("4", "5", "'5' as annotation"), ("4", "0", "'0'"), ("x", "1", "'x'")],
)
def test_numbers_of_workers_that_make_no_sense_are_not_submitted(most: str, least: str, why: str) -> None:
    broken = manifest((1, 4))
    worker = next(one for one in broken["spec"]["templates"] if one["name"] == "a-worker")
    worker["metadata"]["annotations"] |= {labels.ANNOTATION_WORKERS: most, labels.ANNOTATION_MIN_WORKERS: least}
    with pytest.raises(SubmissionError, match=re.escape(why)):
        check_for_cluster(broken)


def test_a_workflow_that_limits_its_pods_is_not_submitted_with_gangs() -> None:
    limited = manifest((1, 4))
    limited["spec"]["parallelism"] = 3
    with pytest.raises(SubmissionError, match="parallelism=3 would cut in parts"):
        check_for_cluster(limited)


def test_what_the_least_number_of_workers_asks_for_is_counted_over_whole_nodes() -> None:
    asked = asked_gangs(manifest((3, 4)))
    assert asked == {"a": GangRequest(3, 1.0, 0.0)}
    assert [asked["a"].held_by(cpu, 1e9) for cpu in (0.5, 2.5, 3.0, 90.0)] == [0, 2, 3, 3]
    assert asked_gangs(manifest((1, 4))) == {}
