"""A sweep's workflow as Hera writes it, filled in as Argo fills it in for each trial."""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from hera.workflows import Resources, Workflow

from benchmarks.scale.size import NAMESPACE, TRIAL_CPU
from controllers.core import labels
from controllers.core.expressions import SWEEP_UID, main_container
from controllers.worlds.argo.reading.planned import item_keys
from hera_specon import Sweep, log_uniform, minimize

Json = dict[str, Any]
SWEEP: Final = "vae"
_GATES: Final = re.compile(r', "schedulingGates": \{\{.*?\}\}(?=\})')


@dataclass(frozen=True, slots=True)
class TrialFacts:
    """A trial of a workflow: ``number`` as its sweep counts it, and its only hyperparameter."""

    number: str
    learning_rate: str

    @property
    def inputs(self) -> Mapping[str, str]:
        """Values of the trial template's input parameters."""
        return {labels.INPUT_TRIAL: self.number, "lr": self.learning_rate}


@dataclass(frozen=True, slots=True)
class SweepManifest:
    """A workflow with one sweep, not yet created; ``body`` is its JSON."""

    name: str
    body: Json
    trials: tuple[TrialFacts, ...] = field(repr=False)

    @property
    def experiment(self) -> str:
        """MLflow experiment of the sweep."""
        return self.name

    @property
    def template(self) -> Json:
        """The template of its trials."""
        return next(t for t in self.body["spec"]["templates"] if t["name"] == SWEEP + labels.SUFFIX_TRIAL)


def sweep_manifest(number: int, trials: int, policy: str, tracking_uri: str) -> SweepManifest:
    """Return the workflow number ``number``, with a sweep of ``trials`` trials."""
    name = f"sweep-{number:03d}"
    with Workflow(name=name, namespace=NAMESPACE, entrypoint=SWEEP) as workflow:
        Sweep(
            name=SWEEP,
            image="hera-specon/trainer:0.2.0",
            command=["python", "-m", "workflows.jobs.pytorch.vae", "--steps=1500"],
            space={"lr": log_uniform(3e-4, 1e-2)},
            trials=trials,
            seed=number,
            objective=minimize("loss"),
            policy=policy,
            resources=Resources(cpu_request=f"{TRIAL_CPU * 1000:g}m", memory_request="256Mi"),
            state_claim="specon-state",
            experiment=name,
            mlflow_tracking_uri=tracking_uri,
        )
    body = json.loads(json.dumps(workflow.to_dict()))
    entry = next(t for t in body["spec"]["templates"] if t["name"] == SWEEP)
    step = entry["steps"][0][0]
    keys = item_keys(step)
    facts = (TrialFacts(item[keys[labels.INPUT_TRIAL]], item[keys["lr"]]) for item in step["withItems"])
    return SweepManifest(name, body, tuple(facts))


def filled_in(value: Any, known: Mapping[str, str]) -> Any:  # noqa: ANN401 - any JSON
    """Return ``value`` with Argo's placeholders replaced in every string."""
    if isinstance(value, str):
        for name, text in known.items():
            value = value.replace(name, text)
        return value
    if isinstance(value, list):
        return [filled_in(item, known) for item in value]
    return {key: filled_in(item, known) for key, item in value.items()} if isinstance(value, dict) else value


def placeholders(trial: TrialFacts, workflow_uid: str) -> Mapping[str, str]:
    """Return what Argo knows of a trial, by the text it replaces."""
    inputs = {f"{{{{inputs.parameters.{name}}}}}": value for name, value in trial.inputs.items()}
    return {SWEEP_UID: workflow_uid, "{{workflow.uid}}": workflow_uid, **inputs}


def pod_patch(template: Json, *, gated: bool) -> Json:
    """Return the template's podSpecPatch with its expressions evaluated, for a trial that is not stopped."""
    text = template["podSpecPatch"].replace(f", {main_container(SWEEP)}", "")
    plain = json.loads(_GATES.sub("", text))
    gates = [{"name": labels.GATE_PLACEMENT}] if gated else []
    return {**plain, "schedulingGates": gates}
