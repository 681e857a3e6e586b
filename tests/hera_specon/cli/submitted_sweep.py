"""A sweep to submit, and what an API server has of it."""

import json
from pathlib import Path
from typing import Any

SWEEP = """
from hera.workflows import Parameter, Workflow
from hera_specon import Sweep, choice, minimize

with Workflow(generate_name="vae-", entrypoint="vae", arguments=Parameter(name="data", value="digits")) as w:
    Sweep(
        name="vae",
        image="trainer:1",
        command=["train"],
        space={"lr": choice(0.1, 0.2)},
        search="grid",
        objective=minimize("loss"),
        state_claim="specon-state",
    )
"""
WORKFLOWS = "/apis/argoproj.io/v1alpha1/namespaces/lab/workflows"
CLAIM = "/api/v1/namespaces/lab/persistentvolumeclaims/specon-state"


def trial(manifest: dict[str, Any]) -> dict[str, Any]:
    (found,) = [template for template in manifest["spec"]["templates"] if template["name"] == "vae-trial"]
    assert isinstance(found, dict)
    return found


def written(file: str) -> dict[str, Any]:
    """The manifest of the file as its author wrote it."""
    module: dict[str, Any] = {}
    exec(Path(file).read_text(), module)  # noqa: S102 - the file of this test
    found: dict[str, Any] = json.loads(json.dumps(module["w"].to_dict()))
    return found
