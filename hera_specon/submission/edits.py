"""From an author's file to the manifest that is sent. What the command line does not name stays as it was written."""

import copy
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from controllers.core import labels
from controllers.core.expressions import GATE_FIRST, GATE_MOVED
from controllers.core.model import Place
from controllers.policies.comparison.default import Default
from controllers.policies.registry import parse_policy
from hera_specon.errors import SubmissionError
from hera_specon.manifest import Manifest, program, sweep_of, trial_templates
from hera_specon.settings import policy_text
from hera_specon.submission.checks import check_for_cluster, is_host_path, state_claim
from hera_specon.workflow_file import WorkflowFile, load_workflow

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
    declared = ((document.get("spec") or {}).get("arguments") or {}).get("parameters") or []
    for parameter in declared:
        if parameter["name"] not in wishes.parameters:
            continue
        value, choices = wishes.parameters[parameter["name"]], parameter.get("enum")
        if choices and value not in choices:
            raise SubmissionError([f"-p {parameter['name']}={value}: is none of {', '.join(map(str, choices))}"])
        parameter.pop("valueFrom", None)
        parameter["value"] = value
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
        container = program(template)
        others = [entry for entry in container.get("env") or [] if entry.get("name") != _TRACKING_URI]
        container["env"] = [*others, {"name": _TRACKING_URI, "value": wishes.tracking_uri}]
    if wishes.gate_first or wishes.first_nodes is not None or _places_first(template):
        patch = str(template.get("podSpecPatch") or "")
        if GATE_MOVED not in patch and GATE_FIRST not in patch:
            problem = (
                f"the trials of sweep {sweep_of(template)!r} have no gate that could hold first attempts: "
                "build the workflow anew with Sweep, or leave --gate-first and --first-nodes-of out"
            )
            raise SubmissionError([problem])
        template["podSpecPatch"] = patch.replace(GATE_MOVED, GATE_FIRST)


def _places_first(template: Manifest) -> bool:
    """Return whether the policy of a trial decides itself where first attempts start."""
    try:
        policy = parse_policy(
            str(template["metadata"].get("annotations", {}).get(labels.ANNOTATION_POLICY) or Default.name)
        )
    except ValueError:
        return False  # the checks that follow say what is wrong with it
    return Place in policy.needs


def prepared(path: Path, wishes: Wishes) -> tuple[WorkflowFile, dict[str, Any]]:
    """Return the file that was read, and its manifest with the wishes in it, checked for a cluster.

    Raises:
        WorkflowFileError: The file gives no workflow with a sweep.
        SubmissionError: The workflow can't run on a cluster; every reason is listed.
    """
    file = load_workflow(path)
    manifest = edited(file.manifest, wishes)
    try:
        check_for_cluster(manifest)
    except SubmissionError as error:
        raise SubmissionError(
            [f"{path} can't be submitted:", *(f"  {problem}" for problem in error.problems)]
        ) from None
    return file, manifest


def canonical_policy(spec: str) -> str:
    """Return ``spec`` in its usual form.

    Raises:
        SubmissionError: It names no policy.
    """
    try:
        return policy_text(spec)
    except ValueError as error:
        problem = f"--policy, {spec!r}: {error}"
        raise SubmissionError([problem, "See what there is with: specon policies"]) from error


def state_claims(manifest: Manifest) -> set[str]:
    """Return the claims that the trials of a manifest keep their state on."""
    found = (state_claim(template, manifest["spec"]) for template in trial_templates(manifest))
    return {claim for claim in found if claim is not None}


def host_path_warning(manifest: Manifest) -> str | None:
    """Return what to know where trials keep their state in a folder of their node."""
    if any(is_host_path(template, manifest["spec"]) for template in trial_templates(manifest)):
        return "checkpoints go to a folder of the node (hostPath): that must be the same file system on every node"
    return None


def in_namespace(manifest: Mapping[str, Any], namespace: str) -> dict[str, Any]:
    """Return ``manifest`` for ``namespace``."""
    return {**manifest, "metadata": {**(manifest.get("metadata") or {}), "namespace": namespace}}


def namespace_written(manifest: Mapping[str, Any]) -> str | None:
    """Return the namespace that the author wrote, None where that was left open."""
    found = (manifest.get("metadata") or {}).get("namespace")
    return str(found) if found else None
