"""What pods are told of their run in MLflow before their program starts: those of today, and of earlier versions."""

from collections.abc import Mapping
from typing import Any

import pytest

from controllers.core import labels
from controllers.core.actions import Place
from controllers.core.model import TrialId
from mlflow_hooks import contract
from tests.controllers.worlds.argo.conftest import Bench
from tests.controllers.worlds.argo.objects import Json, over, pod, steps, trial, workflow

TOLD_BY = f"metadata.annotations['{labels.ANNOTATION_RUN}']"


def told(made: Json, path: str = TOLD_BY, params: str = '{"lr": 0.1}') -> Json:
    """Return ``made``, whose program reads its run from the annotation."""
    env = made["spec"]["containers"][1]["env"]
    env.append({"name": contract.ENV_RUN, "valueFrom": {"fieldRef": {"fieldPath": path}}})
    env.append({"name": contract.ENV_PARAMS, "value": params})
    return made


def finds_itself(made: Json) -> Json:
    """Return ``made``, whose program is found by the runs that it makes."""
    made["spec"]["containers"][1]["env"].append({"name": contract.ENV_RUN_CONTEXT, "value": "{}"})
    return told(made)


class Runs:
    """Makes runs, unless MLflow is away."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, Mapping[str, Any]]] = []
        self.away = False
        self.may_make = False

    def of(self, trial: str, params: Mapping[str, Any], *, may_make: bool) -> str:
        self.asked.append((trial, params))
        self.may_make = may_make
        return "" if self.away else f"run-{len(self.asked)}"


@pytest.fixture
def runs() -> Runs:
    return Runs()


def run_on(bench: Bench, attempt: int = 0) -> str | None:
    made = bench.pod(attempt=attempt)
    assert made is not None
    found: str | None = made["metadata"]["annotations"].get(labels.ANNOTATION_RUN)
    return found


def test_a_pod_that_waits_at_its_gate_gets_its_run_as_the_gate_opens(bench: Bench, runs: Runs) -> None:
    bench.put("workflows", workflow(steps("a", "Running", ("", None))))
    bench.put("pods", told(pod(gated=True)))
    world = bench.begin(run_of=runs.of)
    bench.settle()
    assert runs.asked == []
    world.apply(Place(TrialId(trial())))
    bench.until(lambda: run_on(bench) == "run-1")
    assert "schedulingGates" not in bench.pod()["spec"] or bench.pod()["spec"]["schedulingGates"] == []  # type: ignore[index]
    assert runs.asked == [(trial(), {"lr": 0.1})]


def test_a_pod_that_nothing_holds_back_gets_its_run_while_its_program_has_not_started(bench: Bench, runs: Runs) -> None:
    bench.put("workflows", workflow(steps("a", "Running", ("n1", None))))
    bench.put("pods", told(pod(on="n1", state="waiting", phase="Pending")))
    bench.begin(run_of=runs.of)
    bench.until(lambda: run_on(bench) == "run-1")
    bench.settle()
    assert len(runs.asked) == 1


def test_without_mlflow_the_gate_opens_all_the_same(bench: Bench, runs: Runs) -> None:
    runs.away = True
    bench.put("workflows", workflow(steps("a", "Running", ("", None))))
    bench.put("pods", told(pod(gated=True)))
    world = bench.begin(run_of=runs.of)
    bench.settle()
    world.apply(Place(TrialId(trial())))
    bench.until(lambda: not bench.pod()["spec"].get("schedulingGates"))  # type: ignore[index]
    assert run_on(bench) is None


@pytest.mark.parametrize(
    "made",
    [
        pytest.param(pod(on="n1", state="waiting", phase="Pending"), id="not told"),
        pytest.param(told(pod(on="n1", state="waiting", phase="Pending"), "metadata.name"), id="told something else"),
        pytest.param(told(pod(on="n1")), id="runs already"),
    ],
)
def test_nothing_is_asked_of_mlflow_for_a_pod_that_could_not_be_told(bench: Bench, runs: Runs, made: Json) -> None:
    bench.put("workflows", workflow(steps("a", "Running", ("n1", None))))
    bench.put("pods", made)
    bench.begin(run_of=runs.of)
    bench.settle()
    assert (runs.asked, run_on(bench)) == ([], None)


@pytest.mark.parametrize(
    ("code", "handed"), [pytest.param(75, "run-1", id="saved and left"), pytest.param(1, None, id="failed")]
)
def test_a_program_that_makes_its_own_runs_goes_on_with_one_where_the_attempt_before_saved_and_left(
    bench: Bench, runs: Runs, code: int, handed: str | None
) -> None:
    bench.put("workflows", workflow(steps("a", "Running", ("n1", str(code)), ("n1", None))))
    bench.put("pods", finds_itself(over(code, on="n1")))
    bench.put("pods", finds_itself(pod(attempt=1, on="n1", state="waiting", phase="Pending")))
    bench.begin(run_of=runs.of)
    if handed:
        bench.until(lambda: run_on(bench, 1) == handed)
    bench.settle()
    assert run_on(bench, 1) == handed
    assert not runs.may_make


def test_a_program_that_makes_its_own_runs_is_told_none_at_the_gate_of_its_first_attempt(
    bench: Bench, runs: Runs
) -> None:
    bench.put("workflows", workflow(steps("a", "Running", ("", None))))
    bench.put("pods", finds_itself(pod(gated=True)))
    world = bench.begin(run_of=runs.of)
    bench.settle()
    world.apply(Place(TrialId(trial())))
    bench.until(lambda: not bench.pod()["spec"].get("schedulingGates"))  # type: ignore[index]
    bench.settle()
    assert (runs.asked, run_on(bench)) == ([], None)
