"""From a workflow that has ended to one that trains the trials which a policy ended early to their end. Pure.

Argo cannot run a step again that has succeeded, and those of such trials have. So a new workflow continues the old one:
its trials have the same identities, find their checkpoints, and go on.
"""

import copy
import re
from collections.abc import Callable, Mapping
from typing import Any, Final

from controllers.core import labels
from controllers.core.annotations import of_sweep
from controllers.core.expressions import gates
from controllers.core.model import Point, TrialId
from controllers.worlds.argo.reading.planned import item_keys
from controllers.worlds.argo.reading.workflows import WorkflowRecord
from hera_specon.errors import SubmissionError
from hera_specon.manifest import Manifest, program, run_for_each, sweep_of, trial_templates
from hera_specon.settings import input_name
from hera_specon.space import value_text
from hera_specon.trial_template import placeholder
from mlflow_hooks import contract

_ANNOTATION: Final = re.compile(r"metadata\.annotations\['([^']+)'\]")


def ended_early(record: WorkflowRecord) -> dict[str, str]:
    """Return why trials of a workflow were ended early, by ``<sweep>.<number>``."""
    sweeps = [sweep.id.removeprefix(f"{record.sweep_uid}.") for sweep in record.sweeps]
    # The longest first: one of two sweeps may be called as the other one with its trial.
    marks = {of_sweep(labels.ANNOTATION_STOP, name): name for name in sorted(sweeps, key=len, reverse=True)}
    why_of = {}
    for note, why in record.annotations.items():
        for mark, sweep in marks.items():
            if note.startswith(mark):
                why_of[f"{sweep}.{note.removeprefix(mark)}"] = why
                break
    return dict(sorted(why_of.items()))


def continue_manifest(
    workflow: Manifest, record: WorkflowRecord, chosen: Callable[[str], bool], points: Mapping[TrialId, Point]
) -> dict[str, Any]:
    """Return the manifest of a workflow in which the ``chosen`` trials go on.

    Args:
        workflow: the one that has ended, as the cluster has it.
        record: what is known of it.
        chosen: tells by ``<sweep>.<number>`` whether a trial is to go on.
        points: the hyperparameters that a search gave its trials.

    Raises:
        SubmissionError: its trials are not in its own templates, or the hyperparameters of one are not known any more.
    """
    spec: dict[str, Any] = copy.deepcopy(dict(workflow.get("spec") or {}))
    if not spec.get("templates"):
        raise SubmissionError([f"workflow {record.name!r} has no templates of its own: submit its template again"])
    arguments = spec.setdefault("arguments", {})
    others = [
        parameter
        for parameter in arguments.get("parameters") or []
        if parameter.get("name") != labels.PARAMETER_CONTINUE
    ]
    arguments["parameters"] = [*others, {"name": labels.PARAMETER_CONTINUE, "value": record.sweep_uid}]
    for template in trial_templates({"spec": spec}):
        sweep = sweep_of(template)
        names = _freed_of_its_search(template)
        # What ended the sweep would end these trials at once.
        template["metadata"]["annotations"].pop(labels.ANNOTATION_END_WHEN, None)
        for steps in spec["templates"]:
            for step in (step for group in steps.get("steps") or [] for step in group):
                if steps.get("name") == sweep and step.get("withItems"):
                    key = item_keys(step)[labels.INPUT_TRIAL]
                    items = [item for item in step["withItems"] if chosen(f"{sweep}.{item.get(key)}")]
                    if names:
                        items = [_with_point(item, f"{sweep}.{item.get(key)}", record, points) for item in items]
                    run_for_each(step, items)
                if names and step.get("template") in {sweep + labels.SUFFIX_TRIAL, sweep + labels.SUFFIX_ARRIVAL}:
                    source = "item" if {"withItems", "withParam"} & step.keys() else "inputs.parameters"
                    given = [{"name": name, "value": f"{{{{{source}.{name}}}}}"} for name in names]
                    step.setdefault("arguments", {}).setdefault("parameters", []).extend(given)
            if names and steps.get("name") == sweep + labels.SUFFIX_ARRIVAL:
                steps["inputs"]["parameters"] += [{"name": name} for name in names]
    metadata = workflow.get("metadata") or {}
    notes = {
        name: note for name, note in (metadata.get("annotations") or {}).items() if not name.startswith(labels.DOMAIN)
    }
    made: dict[str, Any] = {"generateName": f"{record.name[:40].rstrip('-.')}-resumed-", "namespace": record.namespace}
    return {
        "apiVersion": workflow.get("apiVersion"),
        "kind": "Workflow",
        "metadata": made | ({"annotations": notes} if notes else {}),
        "spec": spec,
    }


def _freed_of_its_search(template: dict[str, Any]) -> list[str]:
    """Let a trial's template take its hyperparameters from inputs; return their names, none where it does already."""
    notes = template["metadata"].get("annotations") or {}
    if notes.pop(labels.ANNOTATION_SEARCH, None) is None:
        return []
    inputs = {contract.ENV_PARAMS: labels.INPUT_PARAMS}
    for variable in program(template).get("env") or []:
        path = ((variable.get("valueFrom") or {}).get("fieldRef") or {}).get("fieldPath")
        annotation = _ANNOTATION.fullmatch(path) if isinstance(path, str) else None
        # Its run in MLflow is still told by an annotation; and none tells it to go on from another's checkpoint again.
        if annotation is None or annotation[1] in {labels.ANNOTATION_RUN, labels.ANNOTATION_LINEAGE}:
            continue
        name = variable["name"]
        if annotation[1].startswith(labels.ANNOTATION_PARAM):
            inputs[name] = input_name(annotation[1].removeprefix(labels.ANNOTATION_PARAM))
        variable.pop("valueFrom")
        variable["value"] = placeholder(inputs.get(name, labels.INPUT_PARAMS))
    names = list(inputs.values())
    template.setdefault("inputs", {}).setdefault("parameters", []).extend({"name": name} for name in names)
    sweep = sweep_of(template)
    template["podSpecPatch"] = str(template.get("podSpecPatch") or "").replace(gates(sweep, every=True), gates(sweep))
    return names


def _with_point(
    item: Mapping[str, Any], trial: str, record: WorkflowRecord, points: Mapping[TrialId, Point]
) -> dict[str, Any]:
    """Return the item of a trial with the hyperparameters that its search gave it."""
    point = points.get(TrialId(f"{record.sweep_uid}.{trial}"))
    if not point:
        raise SubmissionError([f"the hyperparameters of trial {trial} are not known: its pods are gone"])
    return {**item, labels.INPUT_PARAMS: dict(point), **{input_name(name): value_text(value) for name, value in point}}
