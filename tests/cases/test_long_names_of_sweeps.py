"""A sweep with a long name is stopped, moved and resumed as any other; a name that is too long is refused."""

import re

import pytest
from hera.workflows import Workflow

from controllers.core import annotations, labels
from controllers.core.annotations import of_trial
from controllers.core.expressions import tries_given
from controllers.worlds.argo.reading.workflows import record_of
from hera_specon import Sweep, SweepError, choice, minimize
from hera_specon.errors import SubmissionError
from hera_specon.submission.checks import check_for_cluster
from hera_specon.submission.resuming import continue_manifest, ended_early
from tests.hera_specon.cli.cluster_objects import Json

_KUBERNETES_NAME = re.compile(r"[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?")
LONGEST = 55
OF_TRIALS = (labels.ANNOTATION_STOP, labels.ANNOTATION_GANG, labels.ANNOTATION_LEFT, labels.ANNOTATION_TRIES)


def built(name: str, trials: int = 3, workers: int = 1) -> Json:
    with Workflow(generate_name="long-", entrypoint=name) as workflow:
        Sweep(
            name=name,
            image="trainer:1",
            command=["train"],
            space={"lr": choice(0.1, 0.2)},
            trials=trials,
            objective=minimize("loss"),
            state_claim="specon-state",
            workers=workers,
            mlflow_tracking_uri="http://mlflow:5000",
        )
    found: Json = workflow.to_dict()
    return found


def named(length: int) -> str:
    return ("x" * (length - 9) + "-rates-lr")[-length:]


@pytest.mark.parametrize("length", range(45, LONGEST + 1))
@pytest.mark.parametrize("number", ["t000", "t9999", "t19999"])
def test_every_annotation_named_after_a_trial_is_one_that_kubernetes_takes(length: int, number: str) -> None:
    for kind in OF_TRIALS:
        prefix, _, name = of_trial(kind, named(length), number).partition("/")
        fits = _KUBERNETES_NAME.fullmatch(name) is not None
        assert prefix == "hera-specon.io"
        assert fits or annotations.why_unnameable(named(length), number)


@pytest.mark.parametrize("length", [52, 53, 54, LONGEST])
@pytest.mark.parametrize("workers", [1, 2])
def test_argo_and_the_controller_call_the_annotations_of_a_trial_alike(length: int, workers: int) -> None:
    manifest = built(named(length), workers=workers)
    check_for_cluster(manifest)
    asked = set(re.findall(r"\['(io/[^']+-)' \+ inputs", str(manifest).replace("\\'", "'")))
    kinds = OF_TRIALS if workers > 1 else (labels.ANNOTATION_STOP, labels.ANNOTATION_TRIES)
    beginnings = {of_trial(kind, named(length), "").partition(".")[2] for kind in kinds}
    assert beginnings <= asked
    for template in manifest["spec"]["templates"]:
        if expression := (template.get("retryStrategy") or {}).get("expression"):
            assert tries_given(expression) is not None


def test_two_long_names_that_begin_alike_have_annotations_of_their_own() -> None:
    one, other = "x" * 54 + "a", "x" * 54 + "b"
    assert of_trial(labels.ANNOTATION_STOP, one, "t000") != of_trial(labels.ANNOTATION_STOP, other, "t000")


def test_a_name_that_worked_before_has_the_annotations_it_had() -> None:
    assert of_trial(labels.ANNOTATION_STOP, "x" * 51, "t007") == f"hera-specon.io/stop-{'x' * 51}-t007"


def test_a_name_too_long_for_so_many_trials_is_refused_where_it_is_given() -> None:
    with pytest.raises(SweepError, match=r"10001 trials.*make the name of the sweep 1 shorter"):
        built("x" * 51, trials=10_001)


def test_a_number_too_long_for_an_annotation_is_refused_before_it_is_sent() -> None:
    manifest = built("vae")
    (fan_out,) = [template for template in manifest["spec"]["templates"] if template["name"] == "vae"]
    fan_out["steps"][0][0]["withItems"][0]["trial"] = "t" * 60
    with pytest.raises(SubmissionError, match=r"trial vae\.t+ would have an annotation.*make the name"):
        check_for_cluster(manifest)


@pytest.mark.parametrize("name", ["vae", "x" * LONGEST])
def test_a_trial_that_was_stopped_is_found_again_under_its_own_name(name: str) -> None:
    made = built(name)
    marks = {of_trial(labels.ANNOTATION_STOP, name, "t001"): "its owner wants that"}
    made["metadata"] = {"name": "long-" + "x" * 34 + ".-x", "uid": "uid", "namespace": "lab", "annotations": marks}
    record = record_of(made)
    assert record is not None
    assert ended_early(record) == {f"{name}.t001": "its owner wants that"}
    again = continue_manifest(made, record, lambda trial: trial == f"{name}.t001", {})
    assert re.fullmatch(r"[a-z0-9]([-.]?[a-z0-9])*-resumed-", again["metadata"]["generateName"])
    assert "annotations" not in again["metadata"]
