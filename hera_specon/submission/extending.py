"""From a sweep that was given more trials to a workflow that trains only these, as a part of the same sweep. Pure."""

import copy
from collections.abc import Iterator, Mapping
from typing import Any, Final

from controllers.core import labels
from controllers.worlds.argo.reading.planned import item_keys
from controllers.worlds.argo.reading.workflows import WorkflowRecord
from hera_specon.errors import SubmissionError
from hera_specon.manifest import Manifest, run_for_each, sweep_of, trial_templates

_DIFFERENT: Final = "raise trials= and leave name, space, seed and search as they were"


def extend_manifest(manifest: Manifest, earlier: Manifest, record: WorkflowRecord) -> dict[str, Any]:
    """Return ``manifest`` with the trials that ``earlier`` lacks, which get the identities of the same sweep.

    Args:
        manifest: the sweep with all its trials.
        earlier: the workflow that trained the first of them, as the cluster has it.
        record: what is known of it.

    Raises:
        SubmissionError: a trial of ``earlier`` is not the same in ``manifest``, nothing is left to train, or a search
            gives the trials their hyperparameters, which would know nothing of those before.
    """
    document: dict[str, Any] = copy.deepcopy(dict(manifest))
    trained = {sweep: _by_number(step) for sweep, step in _fan_outs(earlier)}
    left = 0
    for template in trial_templates(document):
        if labels.ANNOTATION_SEARCH in (template["metadata"].get("annotations") or {}):
            problem = (
                f"sweep {sweep_of(template)!r} searches, and a search in a new workflow would know nothing of the "
                "trials before: submit it as a sweep of its own"
            )
            raise SubmissionError([problem])
    for sweep, step in _fan_outs(document):
        wanted = _by_number(step)
        for number, item in trained.get(sweep, {}).items():
            if wanted.get(number) != item:
                problem = f"trial {sweep}.{number} of workflow {record.name!r} is another one in the file: {_DIFFERENT}"
                raise SubmissionError([problem])
        keys = item_keys(step)
        items = [item for item in step["withItems"] if _number(item, keys) not in trained.get(sweep, {})]
        run_for_each(step, _at_once(items, keys[labels.INPUT_DELAY]))
        left += len(items)
    if not left:
        raise SubmissionError([f"workflow {record.name!r} has all trials of the file already: raise trials= there"])
    arguments = document["spec"].setdefault("arguments", {})
    others = [
        parameter
        for parameter in arguments.get("parameters") or []
        if parameter.get("name") != labels.PARAMETER_CONTINUE
    ]
    arguments["parameters"] = [*others, {"name": labels.PARAMETER_CONTINUE, "value": record.sweep_uid}]
    return document


def _fan_outs(manifest: Manifest) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield each sweep with the step that starts its trials."""
    sweeps = {sweep_of(template) for template in trial_templates(manifest)}
    for template in (manifest.get("spec") or {}).get("templates") or []:
        for step in (step for group in template.get("steps") or [] for step in group):
            if template.get("name") in sweeps and step.get("withItems"):
                yield template["name"], step


def _by_number(step: Mapping[str, Any]) -> dict[str, Mapping[str, Any]]:
    """Return the items by number of their trials, each value under the name of its input."""
    keys = item_keys(step)
    names = {key: name for name, key in keys.items()}
    return {
        _number(item, keys): {names.get(key, key): value for key, value in item.items()} for item in step["withItems"]
    }


def _number(item: Mapping[str, Any], keys: Mapping[str, str]) -> str:
    return str(item.get(keys[labels.INPUT_TRIAL]))


def _at_once(items: list[Mapping[str, Any]], key: str) -> list[Mapping[str, Any]]:
    """Let the first of ``items`` come at once, where each comes after a delay, which stands under ``key``."""
    delays = [float(str(item[key]).removesuffix("s")) for item in items if key in item]
    if not delays:
        return items
    return [{**item, key: f"{delay - min(delays):g}s"} for item, delay in zip(items, delays, strict=True)]
