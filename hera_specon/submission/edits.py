"""What ``specon submit`` changes in a manifest; everything else stays as its author wrote it. Pure."""

import copy
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from controllers.core import labels
from controllers.core.expressions import GATE_FIRST, GATE_MOVED
from controllers.core.model import Place
from controllers.policies import Default
from controllers.policies.kit.settings import PolicyError
from controllers.policies.registry import parse_policy
from hera_specon.submission.errors import SubmissionError
from hera_specon.submission.trial_templates import Manifest, program, sweep_of, trial_templates

_TRACKING_URI = "MLFLOW_TRACKING_URI"


@dataclass(frozen=True, slots=True, kw_only=True)
class Wishes:
    """What was asked for on the command line; None leaves what the author wrote.

    ``first_nodes`` gives the node of first attempts by ``<sweep>.<number>`` of the trial, and implies ``gate_first``,
    which goes without saying for a policy that places trials itself.
    """

    parameters: Mapping[str, str] = field(default_factory=dict)
    policy: str | None = None
    image: str | None = None
    tracking_uri: str | None = None
    gate_first: bool = False
    first_nodes: Mapping[str, str] | None = None


def edited(manifest: Manifest, wishes: Wishes) -> dict[str, Any]:
    """Return ``manifest`` with the wishes in it.

    Raises:
        SubmissionError: A parameter is given a value that is not among its choices, or a template has no gate of ours.
    """
    document: dict[str, Any] = copy.deepcopy(dict(manifest))
    _set_parameters(document, wishes.parameters)
    for template in trial_templates(document):
        _edit_template(template, wishes)
    if wishes.first_nodes is not None:
        notes = document.setdefault("metadata", {}).setdefault("annotations", {})
        notes[labels.ANNOTATION_FIRST_NODES] = json.dumps(dict(wishes.first_nodes), sort_keys=True)
    return document


def _edit_template(template: dict[str, Any], wishes: Wishes) -> None:
    if wishes.policy is not None:
        template["metadata"].setdefault("annotations", {})[labels.ANNOTATION_POLICY] = wishes.policy
    if wishes.image is not None:
        program(template)["image"] = wishes.image
    if wishes.tracking_uri is not None:
        _set_variable(program(template), _TRACKING_URI, wishes.tracking_uri)
    if wishes.gate_first or wishes.first_nodes is not None or _places_first(template):
        template["podSpecPatch"] = _gated_first(template)


def _places_first(template: Manifest) -> bool:
    """Return whether the policy of a trial decides itself where first attempts start."""
    try:
        policy = parse_policy(
            str(template["metadata"].get("annotations", {}).get(labels.ANNOTATION_POLICY) or Default.name)
        )
    except PolicyError:
        return False  # the checks that follow say what is wrong with it
    return Place in policy.needs


def _set_parameters(document: dict[str, Any], values: Mapping[str, str]) -> None:
    declared = ((document.get("spec") or {}).get("arguments") or {}).get("parameters") or []
    for parameter in declared:
        if parameter["name"] not in values:
            continue
        value, choices = values[parameter["name"]], parameter.get("enum")
        if choices and value not in choices:
            raise SubmissionError([f"-p {parameter['name']}={value}: is none of {', '.join(map(str, choices))}"])
        parameter.pop("valueFrom", None)
        parameter["value"] = value


def _set_variable(container: dict[str, Any], name: str, value: str) -> None:
    others = [entry for entry in container.get("env") or [] if entry.get("name") != name]
    container["env"] = [*others, {"name": name, "value": value}]


def _gated_first(template: Manifest) -> str:
    patch = str(template.get("podSpecPatch") or "")
    if GATE_MOVED not in patch and GATE_FIRST not in patch:
        problem = (
            f"the trials of sweep {sweep_of(template)!r} have no gate that could hold first attempts: "
            "build the workflow anew with Sweep, or leave --gate-first and --first-nodes-of out"
        )
        raise SubmissionError([problem])
    return patch.replace(GATE_MOVED, GATE_FIRST)
