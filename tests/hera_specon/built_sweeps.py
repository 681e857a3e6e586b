"""A sweep of three trials with whatever settings a test gives it, and its parts in the manifest."""

import json
from typing import Any

from hera.workflows import Workflow

from controllers.core.expressions import gates, main_container
from hera_specon import Sweep, choice, integer, log_uniform, minimize
from mlflow_hooks.contract import ENV_PARAMS

SPACE = {"lr": log_uniform(1e-4, 1e-2), "activation": choice("relu", "tanh"), "hidden": integer(32, 256)}


def sweep(**settings: object) -> Sweep:
    basics: dict[str, Any] = {
        "name": "vae",
        "image": "trainer:1",
        "command": ["python", "-m", "jobs.vae"],
        "space": SPACE,
        "trials": 3,
        "objective": minimize("loss"),
    }
    return Sweep(**basics | settings)


def built(**settings: object) -> dict[str, Any]:
    with Workflow(generate_name="vae-", entrypoint="vae") as w:
        sweep(**settings)
    return {template["name"]: template for template in w.to_dict()["spec"]["templates"]}


def items(templates: dict[str, Any]) -> list[dict[str, Any]]:
    ((step,),) = templates["vae"]["steps"]
    found: list[dict[str, Any]] = step["withItems"]
    return found


def params_of(templates: dict[str, Any], item: dict[str, Any]) -> dict[str, Any]:
    """The hyperparameters of the trial of ``item``, as its environment has them once Argo has filled it in."""
    text = environment(templates["vae-trial"])[ENV_PARAMS]
    for name, value in item.items():
        text = text.replace(f"{{{{inputs.parameters.{name}}}}}", as_argo_puts_it(value))
    found: dict[str, Any] = json.loads(text)
    return found


def as_argo_puts_it(value: object) -> str:
    """What ``{{item.x}}`` becomes: the item's JSON, a string's without its quotes (item.go of Argo 4.1)."""
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    return text[1:-1] if text.startswith('"') else text


def environment(template: dict[str, Any]) -> dict[str, str]:
    return {variable["name"]: variable["value"] for variable in template["container"]["env"] if "value" in variable}


def fields_of_the_pod(template: dict[str, Any]) -> dict[str, str]:
    variables = [variable for variable in template["container"]["env"] if "valueFrom" in variable]
    return {variable["name"]: variable["valueFrom"]["fieldRef"]["fieldPath"] for variable in variables}


def pod_patch(template: dict[str, Any], gates_then: str = "[]") -> dict[str, Any]:
    """The podSpecPatch with ``gates_then`` in the place of the expression of its gates, of a trial that goes on."""
    text = template["podSpecPatch"].replace(gates("vae"), gates_then).replace(main_container("vae"), '{"name": "main"}')
    patch: dict[str, Any] = json.loads(text)
    return patch
