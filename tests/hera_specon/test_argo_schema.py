"""Generated workflows against Argo's own schema, with unknown fields refused as its strict mode does."""

import copy
import json
import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml
from hera.workflows import DAG, Artifact, Parameter, Resources, Steps, Workflow
from hera.workflows.models import ContinueOn, Toleration, VolumeMount
from jsonschema import Draft202012Validator

from hera_specon import FlowCon, SpeCon, Sweep, at_random, every, maximize
from hera_specon.doctor.tryout.workflow import image_workflow, sweep_workflow
from tests.hera_specon.built_sweeps import SPACE, sweep

MODULE = "github.com/argoproj/argo-workflows/v4@v4.0.7"
CRD = "manifests/base/crds/full/argoproj.io_workflows.yaml"


def crd_text() -> str:
    """Argo's full CRD from the Go module cache, or the file that SPECON_ARGO_CRD names."""
    given = os.environ.get("SPECON_ARGO_CRD")
    if given:
        return Path(given).read_text(encoding="utf-8")
    go = shutil.which("go")
    if go is None:
        pytest.skip("ARGO'S SCHEMA IS NOT CHECKED: no go to fetch it with, and SPECON_ARGO_CRD is not set")
    done = subprocess.run([go, "mod", "download", "-json", MODULE], capture_output=True, text=True, check=False)
    if done.returncode:
        pytest.skip(f"ARGO'S SCHEMA IS NOT CHECKED: go can't fetch {MODULE}: {done.stdout or done.stderr}")
    return (Path(json.loads(done.stdout)["Dir"]) / CRD).read_text(encoding="utf-8")


def strict(schema: Any) -> Any:  # noqa: ANN401 - any JSON
    """The schema with unknown fields refused, wherever Kubernetes would drop them."""
    if isinstance(schema, list):
        return [strict(part) for part in schema]
    if not isinstance(schema, dict):
        return schema
    if schema.get("x-kubernetes-int-or-string"):
        return {"type": ["integer", "string"]}
    closed = {key: strict(part) for key, part in schema.items()}
    open_ended = {"additionalProperties", "x-kubernetes-preserve-unknown-fields"} & schema.keys()
    if isinstance(schema.get("properties"), dict) and "type" in schema and not open_ended:
        closed["additionalProperties"] = False
    return closed


@pytest.fixture(scope="module")
def validator() -> Draft202012Validator:
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    crd = yaml.load(crd_text(), Loader=loader)  # noqa: S506 - both loaders are safe ones
    (version,) = crd["spec"]["versions"]
    schema = version["schema"]["openAPIV3Schema"]
    # The API server checks an object's metadata itself; the CRD leaves it open.
    return Draft202012Validator(strict(schema))


def errors(validator: Draft202012Validator, manifest: object) -> list[str]:
    return [f"{error.json_path}: {error.message[:200]}" for error in validator.iter_errors(manifest)]


def plain() -> Workflow:
    with Workflow(generate_name="vae-", entrypoint="vae") as w:
        sweep()
    return w


def with_everything() -> Workflow:
    with Workflow(generate_name="vae-", entrypoint="vae", arguments=Parameter(name="data", value="digits")) as w:
        sweep(
            arrivals=every(50),
            policy=[SpeCon(), FlowCon()],
            args=["--epochs=3"],
            env={"OMP_NUM_THREADS": "1"},
            inputs=[Parameter(name="data", default="digits"), Artifact(name="weights", path="/in/weights")],
            labels={"team": "vision"},
            annotations={"note": "x"},
            resources=Resources(cpu_request="250m", memory_request="512Mi"),
            volume_mounts=[VolumeMount(name="data", mount_path="/data")],
            state_claim="specon-state",
            node_selector={"disk": "ssd"},
            tolerations=[Toleration(key="spot", operator="Exists")],
            pod_spec_patch="priorityClassName: low",
        )
    return w


def in_steps() -> Workflow:
    scattered = sweep(arrivals=at_random(within=300, seed=1))
    with Workflow(generate_name="vae-", entrypoint="main") as w, Steps(name="main"):
        scattered(name="search")
    return w


def function_in_dag() -> Workflow:
    @Sweep.script(image="trainer:1", space=SPACE, trials=2, objective=maximize("accuracy"), parallelism=2)
    def train(lr: float, activation: str, hidden: int) -> None:
        print(lr, activation, hidden)  # noqa: T201 - a stand-in for training

    with Workflow(generate_name="train-", entrypoint="main") as w, DAG(name="main"):
        train()
    return w


def with_gangs() -> Workflow:
    with Workflow(generate_name="vae-", entrypoint="vae") as w:
        sweep(workers=(1, 4), inputs=[Parameter(name="data", default="digits"), Artifact(name="weights", path="/in/w")])
    return w


def with_answer() -> Workflow:
    search = sweep(register="vae", arrivals=every(5), workers=2)
    with Workflow(generate_name="vae-", entrypoint="main") as w, Steps(name="main"):
        search(continue_on=ContinueOn(failed=True))
        search.top(3)
    return w


@pytest.mark.parametrize("build", [with_gangs, plain, with_everything, in_steps, function_in_dag, with_answer])
def test_argo_takes_every_field_of_a_generated_workflow(
    build: Callable[[], Workflow], validator: Draft202012Validator
) -> None:
    assert errors(validator, yaml.safe_load(build().to_yaml())) == []


def test_argo_takes_every_field_of_a_try_out(validator: Draft202012Validator) -> None:
    how: dict[str, Any] = {"name": "specon-doctor-1", "cpu": 0.05, "gated": True, "timeout_s": 120}
    made = [sweep_workflow(build().to_dict(), **how) for build in (with_gangs, with_everything, function_in_dag)]
    made.append(image_workflow("trainer:1", "http://mlflow:5000", **how))
    assert [errors(validator, manifest) for manifest in made] == [[]] * 4


def test_a_misspelt_field_would_be_noticed(validator: Draft202012Validator) -> None:
    manifest = plain().to_dict()
    places: list[Callable[[Any], dict[str, object]]] = [
        lambda m: m["spec"],
        lambda m: m["spec"]["templates"][0],
        lambda m: m["spec"]["templates"][0]["steps"][0][0],
        lambda m: m["spec"]["templates"][1]["container"],
        lambda m: m["spec"]["templates"][1]["container"]["env"][0],
        lambda m: m["spec"]["templates"][1]["retryStrategy"],
        lambda m: m["spec"]["templates"][1]["metadata"],
        lambda m: m["spec"]["templates"][1]["inputs"]["parameters"][0],
    ]
    for place in places:
        broken = copy.deepcopy(manifest)
        place(broken)["retryStrategie"] = {}
        assert errors(validator, broken), place(broken)
