"""Several objectives and constraints where a sweep is written, and in what was run."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hera.workflows import Workflow
from optuna.pruners import MedianPruner

from controllers.core import labels
from controllers.core.results import RunResult, TrialResult
from hera_specon import Sweep, SweepError, cmaes, maximize, minimize, sampler, subject_to, tpe
from hera_specon.advice import advice
from hera_specon.errors import SubmissionError
from hera_specon.running import NoModelError, SweepOutcome
from hera_specon.submission.checks import check_for_cluster
from tests.hera_specon.built_sweeps import SPACE, built, sweep

TWO = [minimize("loss"), maximize("throughput")]
MEMORY = subject_to("memory_mb", "<=", 512)


def notes_of(templates: dict[str, Any]) -> dict[str, str]:
    found: dict[str, str] = templates["vae-trial"]["metadata"]["annotations"]
    return found


def test_the_first_objective_stands_where_a_single_one_does_and_the_others_beside_it() -> None:
    notes = notes_of(built(objective=None, objectives=TWO, constraints=[MEMORY, subject_to("accuracy", ">=", 0.9)]))
    assert notes[labels.ANNOTATION_OBJECTIVE] == "loss"
    assert notes[labels.ANNOTATION_DIRECTION] == "minimize"
    assert notes[labels.ANNOTATION_FURTHER_OBJECTIVES] == "maximize throughput"
    assert notes[labels.ANNOTATION_CONSTRAINTS] == "memory_mb <= 512, accuracy >= 0.9"


def test_one_of_several_objectives_is_the_same_as_a_single_one() -> None:
    assert built(objective=None, objectives=[minimize("loss")]) == built(objective=minimize("loss"))


@pytest.mark.parametrize(
    ("settings", "shown"),
    [
        ({"objective": None}, "neither is given"),
        ({"objectives": TWO}, "both is given"),
        ({"objective": "loss"}, "not 'loss'"),
        ({"objective": None, "objectives": ["loss"]}, "not 'loss'"),
        ({"objective": None, "objectives": minimize("loss")}, "objectives= is a list, not Objective"),
        ({"objective": None, "objectives": [minimize("loss"), maximize("loss")]}, "names a metric twice: 'loss'"),
        ({"objective": None, "objectives": [minimize(f"m{n}") for n in range(5)]}, "lists 5, and may list 4"),
        ({"objective": None, "objectives": [*TWO, minimize("m")], "trials": 2001}, "has at most 2000 trials, not 2001"),
        ({"constraints": [MEMORY] * 9}, "lists 9, and may list 8"),
        ({"constraints": ["memory_mb <= 512"]}, "constraints= lists subject_to"),
        ({"constraints": MEMORY}, "constraints= is a list, not Constraint"),
        ({"objective": None, "objectives": TWO, "pruner": MedianPruner()}, "pruner= MedianPruner: policy 'optuna'"),
        (
            {"objective": None, "objectives": TWO, "policy": "optuna:pruner=asha+ahead"},
            "policy 'optuna' takes no sweep",
        ),
        ({"objective": None, "objectives": TWO, "search": cmaes()}, "the search 'cmaes' has one objective"),
        ({"constraints": [MEMORY], "search": cmaes()}, "the search 'cmaes' knows no constraints"),
    ],
)
def test_what_makes_no_sense_is_refused_where_the_sweep_is_written(settings: dict[str, Any], shown: str) -> None:
    with Workflow(generate_name="vae-", entrypoint="vae"), pytest.raises(SweepError, match=shown):
        sweep(**settings)


@pytest.mark.parametrize("given", [("m", "<", 1), ("m", "<=", float("nan")), ("m", "<=", "512"), ("a,b", "<=", 1)])
def test_a_constraint_that_is_none_is_refused(given: Any) -> None:  # noqa: ANN401 - what people write
    with pytest.raises(SweepError):
        subject_to(*given)


def manifest(**settings: Any) -> dict[str, Any]:  # noqa: ANN401 - of a sweep
    with Workflow(generate_name="vae-", entrypoint="vae") as w:
        Sweep(
            name="vae", image="i:1", command=["python"], space=SPACE, trials=3, state_claim="claim",
            mlflow_tracking_uri="http://mlflow:5000", **settings,
        )  # fmt: skip
    found: dict[str, Any] = w.to_dict()
    return found


def test_what_goes_by_the_first_objective_alone_is_told_before_it_runs(tmp_path: Path) -> None:
    (line,) = advice(manifest(objectives=TWO, search=tpe()), tmp_path)
    assert "sweep vae has several objectives" in line
    assert "by the first, 'loss', alone" in line
    assert advice(manifest(objective=minimize("loss"), constraints=[MEMORY], search=tpe()), tmp_path) == []


def test_a_sweep_of_several_objectives_may_be_sent_to_a_cluster() -> None:
    check_for_cluster(manifest(objectives=TWO, constraints=[MEMORY], search=sampler("NSGAIISampler")))


@pytest.mark.parametrize(
    ("note", "value", "shown"),
    [
        (labels.ANNOTATION_FURTHER_OBJECTIVES, "throughput", "an objective is written such as 'minimize latency'"),
        (labels.ANNOTATION_CONSTRAINTS, "memory", "a constraint is written such as 'memory_mb <= 512'"),
        (labels.ANNOTATION_POLICY, "optuna", "policy 'optuna' takes no sweep of several objectives"),
    ],
)
def test_annotations_that_no_controller_takes_are_refused_before_they_are_sent(
    note: str, value: str, shown: str
) -> None:
    written = manifest(objectives=TWO)
    trial = next(item for item in written["spec"]["templates"] if item["name"] == "vae-trial")
    trial["metadata"]["annotations"][note] = value
    with pytest.raises(SubmissionError, match=shown):
        check_for_cluster(written)


def outcome(*trials: TrialResult) -> SweepOutcome:
    return SweepOutcome(None, (RunResult("ahead", trials),))


def trial(name: str, loss: float, **values: float) -> TrialResult:
    base = TrialResult(name, 0.0, 9.0, "n1", 0, 1, loss, sweep="s", objective="loss", values=values)
    return replace(base, further_objectives="maximize throughput")


def test_a_run_of_several_objectives_has_a_front_and_no_best() -> None:
    done = outcome(trial("s.a", 2.0, throughput=9.0), trial("s.b", 1.0, throughput=5.0), trial("s.c", 2.0))
    assert [(one.id, one.final_metric, one.values) for one in done.front] == [
        ("s.b", 1.0, {"throughput": 5.0}),
        ("s.a", 2.0, {"throughput": 9.0}),
    ]
    with pytest.raises(NoModelError, match=r"s has several objectives, so no one trial is the best: see .front"):
        _ = done.best


def test_a_run_of_one_objective_has_no_front() -> None:
    with pytest.raises(NoModelError, match=r"the sweep has one objective: see .best"):
        _ = outcome(replace(trial("s.a", 2.0), further_objectives="")).front


def test_a_front_without_any_trial_says_why() -> None:
    with pytest.raises(NoModelError, match="no trial has a finite value of each objective"):
        _ = outcome(trial("s.a", 2.0)).front


def test_where_all_trials_break_a_constraint_the_lack_of_a_best_is_explained() -> None:
    broken = replace(trial("s.a", 2.0, memory_mb=600.0), further_objectives="", constraints="memory_mb <= 512")
    with pytest.raises(NoModelError, match="breaks memory_mb <= 512 with 600"):
        _ = outcome(broken).best
