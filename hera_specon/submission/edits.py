"""From an author's file to the manifest that is sent. What the command line does not name stays as it was written."""

import copy
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from controllers.core import labels, trial_lists
from controllers.core.actions import Place
from controllers.core.after_sweeps import after_notes
from controllers.core.annotations import AnnotationError, check_fits
from controllers.core.expressions import gates, older_gates, worker_gates, workers
from controllers.core.means import NO_MEANS, Means, means_notes
from controllers.core.stop_rules import NO_RULES, StopRules, rules_notes
from controllers.policies.kit.settings import PolicyError
from controllers.policies.registry import parse_policy
from hera_specon.errors import SubmissionError
from hera_specon.manifest import Manifest, answer_templates, program, runs_gang, sweep_of, trial_templates
from hera_specon.settings import policy_text
from hera_specon.submission.checks import TRACKING_URI, check_for_cluster
from hera_specon.workflow_file import WorkflowFile, load_workflow

_OTHER_GATES: Final = ({"first": True}, {"every": True})


@dataclass(frozen=True, slots=True, kw_only=True)
class Overrides:
    """What was asked for on the command line; None leaves what the author wrote.

    ``first_nodes`` gives the node of first attempts by ``<sweep>.<number>`` of the trial, and implies ``gate_first``,
    which goes without saying for a policy that places trials itself.
    """

    parameters: Mapping[str, str] = field(default_factory=dict)
    policy: str | None = None
    image: str | None = None
    tracking_uri: str | None = None
    gate_first: bool = False
    means: Means = NO_MEANS
    stops: StopRules = NO_RULES
    after: tuple[str, ...] = ()
    first_nodes: Mapping[str, str] | None = None


def edit_manifest(manifest: Manifest, overrides: Overrides) -> dict[str, Any]:
    """Return ``manifest`` with the overrides applied.

    Raises:
        SubmissionError: A parameter is given a value that is not among its choices, a template has no gate of ours, or
            the list of first nodes is too long for an annotation.
    """
    document: dict[str, Any] = copy.deepcopy(dict(manifest))
    declared = ((document.get("spec") or {}).get("arguments") or {}).get("parameters") or []
    for parameter in declared:
        if parameter["name"] not in overrides.parameters:
            continue
        value, choices = overrides.parameters[parameter["name"]], parameter.get("enum")
        if choices and value not in choices:
            raise SubmissionError([f"-p {parameter['name']}={value}: choose one of {', '.join(map(str, choices))}"])
        parameter.pop("valueFrom", None)
        parameter["value"] = value
    for template in trial_templates(document):
        _send_elsewhere(template, overrides)
        _edit_template(template, overrides)
        _edit_gang(document, template)
    for template in answer_templates(document):
        _send_elsewhere(template, overrides)
    if overrides.first_nodes is not None:
        notes = document.setdefault("metadata", {}).setdefault("annotations", {})
        written = {labels.ANNOTATION_FIRST_NODES: trial_lists.write(overrides.first_nodes)}
        try:
            check_fits(written, notes, f"the list of the first nodes of {len(overrides.first_nodes)} trials")
        except AnnotationError as error:
            raise SubmissionError([f"{error}: leave --first-nodes-of out, or split the sweep"]) from error
        notes |= written
    return document


def _send_elsewhere(template: dict[str, Any], overrides: Overrides) -> None:
    if overrides.image is not None:
        program(template)["image"] = overrides.image
    if overrides.tracking_uri is not None:
        container = program(template)
        others = [entry for entry in container.get("env") or [] if entry.get("name") != TRACKING_URI]
        # The first one: others may be told by it.
        container["env"] = [{"name": TRACKING_URI, "value": overrides.tracking_uri}, *others]


def _edit_template(template: dict[str, Any], overrides: Overrides) -> None:
    if overrides.policy is not None:
        template["metadata"].setdefault("annotations", {})[labels.ANNOTATION_POLICY] = overrides.policy
    asked = {**means_notes(overrides.means), **rules_notes(overrides.stops), **after_notes(overrides.after)}
    if asked:
        template["metadata"].setdefault("annotations", {}).update(asked)
    notes = template["metadata"].get("annotations", {})
    takes_turns = bool({labels.ANNOTATION_WEIGHT, labels.ANNOTATION_PRIORITY} & notes.keys())
    try:
        named = notes.get(labels.ANNOTATION_POLICY)
        places_first = bool(named) and Place in parse_policy(str(named)).needs
    except PolicyError:
        places_first = False  # the checks that follow say what is wrong with the policy
    if overrides.gate_first or overrides.first_nodes is not None or places_first or takes_turns:
        patch, sweep = str(template.get("podSpecPatch") or ""), sweep_of(template)
        kinds = (*(gates(sweep, **kind) for kind in _OTHER_GATES), worker_gates(sweep, first=True))
        first = {gates(sweep): gates(sweep, first=True), worker_gates(sweep): worker_gates(sweep, first=True)}
        first |= {older_gates(sweep): gates(sweep, first=True)}
        if not any(gate in patch for gate in (*first, *kinds)):
            problem = (
                f"the trials of sweep {sweep!r} have no gate that could hold first attempts: "
                "build the workflow again with Sweep, or leave --gate-first and --first-nodes-of out"
            )
            raise SubmissionError([problem])
        for usual, other in first.items():
            patch = patch.replace(usual, other)
        template["podSpecPatch"] = patch


def _edit_gang(document: dict[str, Any], worker: Manifest) -> None:
    """Let first attempts of a gang that wait for a place begin with the least number of workers, and grow from there.

    A pod can be added to an attempt, but none can be taken away.
    """
    sweep, notes = sweep_of(worker), worker["metadata"].get("annotations") or {}
    most, least = (str(notes.get(name, "")) for name in (labels.ANNOTATION_WORKERS, labels.ANNOTATION_MIN_WORKERS))
    held = worker_gates(sweep, first=True) in str(worker.get("podSpecPatch") or "")
    if not held or not most.isdecimal() or not least.isdecimal():
        return
    for template in document["spec"]["templates"]:
        if runs_gang(template, worker):
            whole, few = workers(sweep, int(most)), workers(sweep, int(least))
            template["steps"] = json.loads(json.dumps(template["steps"]).replace(whole, few))


def prepare_manifest(path: Path, overrides: Overrides) -> tuple[WorkflowFile, dict[str, Any]]:
    """Return the file that was read, and its manifest with the overrides applied, checked for a cluster.

    Raises:
        WorkflowFileError: The file gives no workflow with a sweep.
        SubmissionError: The workflow cannot run on a cluster; every reason is listed.
    """
    file = load_workflow(path)
    manifest = edit_manifest(file.manifest, overrides)
    try:
        check_for_cluster(manifest)
    except SubmissionError as error:
        raise SubmissionError(
            [f"{path} cannot be submitted:", *(f"  {problem}" for problem in error.problems)]
        ) from None
    return file, manifest


def canonical_policy(spec: str) -> str:
    """Return ``spec`` in its usual form.

    Raises:
        SubmissionError: It names no policy.
    """
    try:
        return policy_text(spec)
    except PolicyError as error:
        problem = f"--policy, {spec!r}: {error}"
        raise SubmissionError([problem, "List the policies with: specon policies"]) from error


def in_namespace(manifest: Mapping[str, Any], namespace: str) -> dict[str, Any]:
    """Return ``manifest`` for ``namespace``."""
    return {**manifest, "metadata": {**(manifest.get("metadata") or {}), "namespace": namespace}}
