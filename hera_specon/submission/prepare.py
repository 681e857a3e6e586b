"""From an author's file to the manifest that is sent."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from controllers.policies.kit.settings import PolicyError
from hera_specon.policy_choice import policy_text
from hera_specon.submission.checks import check_for_cluster
from hera_specon.submission.edits import Wishes, edited
from hera_specon.submission.errors import SubmissionError
from hera_specon.submission.state_check import is_host_path, state_claim
from hera_specon.submission.trial_templates import Manifest, trial_templates
from hera_specon.workflow_file import WorkflowFile, load_workflow


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
    except PolicyError as error:
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
