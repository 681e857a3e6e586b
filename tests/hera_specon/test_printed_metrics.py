"""Sweeps of programs that print their metrics: what is refused, and what gets into the pod."""

import json
from typing import Any

import pytest
from hera.workflows import Gauge

from hera_specon import SweepError, printed, printed_json
from mlflow_hooks import contract
from mlflow_hooks.printed.command import program_of
from mlflow_hooks.printed.form import PrintedForm
from tests.hera_specon.built_sweeps import built, environment, pod_patch

LOSS = r"epoch (?P<step>\d+): loss=(?P<loss>\S+)"


@pytest.mark.parametrize(
    ("settings", "why"),
    [
        (
            {"metrics": r"loss=(\S+)"},
            r"metrics= is printed\(...\), .* or metrics of Argo's, not 'loss=",
        ),
        ({"metrics": printed("loss=(.+)")}, r"metrics=: the pattern 'loss=\(\.\+\)' has no named group"),
        ({"metrics": printed("(?P<acc>.+)")}, "metrics=: the objective 'loss' is not among them: 'acc'"),
        ({"metrics": printed_json("loss", "a%b")}, "metrics=: MLflow takes no metric of the name 'a%b'"),
        ({"metrics": printed_json("loss", "../b")}, "as a path it is another"),
        ({"metrics": printed_json("loss", "specon.cpu_seconds")}, "a metric 'specon.cpu_seconds' is ours to log"),
        ({"metrics": [printed(LOSS), printed()]}, r"several printed\(...\): give one all the patterns"),
        ({"metrics": printed(LOSS), "workers": 2}, "a trial of several workers logs its metrics by the hooks"),
        ({"metrics": printed(LOSS, reader="")}, "reader= is the name of an image, not ''"),
    ],
)
def test_what_could_never_work_is_refused_where_the_sweep_is_defined(settings: dict[str, Any], why: str) -> None:
    with pytest.raises(SweepError, match=why):
        built(**settings)


def test_json_needs_the_names_of_its_metrics() -> None:
    with pytest.raises(SweepError, match="needs the keys that hold metrics"):
        printed_json()


def test_the_reader_stands_before_the_program_and_knows_its_form() -> None:
    trial = built(metrics=printed(LOSS))["vae-trial"]
    command = trial["container"]["command"]
    assert command == ["python3", "-P", "-m", "mlflow_hooks.printed", "--", "python", "-m", "jobs.vae"]
    assert PrintedForm.decode(environment(trial)[contract.ENV_PRINTED]) == PrintedForm(patterns=(LOSS,))


def test_metrics_that_argo_tells_prometheus_stay_beside_printed_ones() -> None:
    gauge = Gauge(name="trials", help="trials that ended", realtime=False, value="1")
    both, alone, neither = (built(metrics=given)["vae-trial"] for given in ([printed(LOSS), gauge], gauge, None))
    assert both["metrics"] == alone["metrics"] != neither.get("metrics")
    assert contract.ENV_PRINTED in environment(both)
    assert contract.ENV_PRINTED not in environment(alone)


def test_words_that_depend_on_hyperparameters_are_put_together_behind_the_reader() -> None:
    flags = {"activation": {"relu": "--relu", "tanh": None}}
    trial = built(metrics=printed_json("loss", step="epoch"), flags=flags)["vae-trial"]
    assert program_of(trial["container"]["command"])[:2] == ("sh", "-c")


def test_without_printed_metrics_nothing_stands_before_the_program() -> None:
    trial = built()["vae-trial"]
    assert trial["container"]["command"] == ["python", "-m", "jobs.vae"]
    assert contract.ENV_PRINTED not in environment(trial)
    assert [container["name"] for container in pod_patch(trial)["initContainers"]] == ["init"]


def test_a_program_without_python_gets_one_from_the_readers_image() -> None:
    trial = built(metrics=printed(LOSS, reader="lab/trainer:1"))["vae-trial"]
    carrier = pod_patch(trial)["initContainers"][1]
    (mount,) = (mount for mount in trial["container"]["volumeMounts"] if mount["name"] == "specon-python")
    (volume,) = (volume for volume in trial["volumes"] if volume["name"] == "specon-python")
    assert (carrier["image"], volume["emptyDir"]) == ("lab/trainer:1", {"sizeLimit": "512Mi"})
    assert carrier["command"][-1] == carrier["volumeMounts"][0]["mountPath"] == mount["mountPath"]
    assert mount["readOnly"] is True
    assert carrier["securityContext"] == {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}}
    assert trial["container"]["command"][0] == f"{mount['mountPath']}/loader"
    assert program_of(trial["container"]["command"]) == ("python", "-m", "jobs.vae")


def test_an_authors_own_init_containers_stay() -> None:
    own = json.dumps({"initContainers": [{"name": "data", "image": "data:1"}]})
    trial = built(metrics=printed(LOSS, reader="lab/trainer:1"), pod_spec_patch=own)["vae-trial"]
    names = [container["name"] for container in pod_patch(trial)["initContainers"]]
    assert names == ["data", "init", "specon-python"]
