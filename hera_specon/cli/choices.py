"""Which policies and parameters a run uses, checked against its workflow before anything starts."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from controllers.core import labels
from controllers.core.errors import SpeconError
from controllers.core.policy import Policy
from hera_specon.cli.backend import Backend, Workflow

DEFAULT_POLICY = "specon+flowcon"


class PolicyChoiceError(SpeconError):
    """A policy that was asked for is not one."""


class WorkflowChoiceError(SpeconError):
    """The file gives no workflow that could be run."""


class UnknownParameterError(SpeconError):
    """A value was given for a parameter that the workflow does not have."""


def chosen_workflow(backend: Backend, file: Path) -> Workflow:
    """Return the workflow that ``file`` defines.

    Raises:
        WorkflowChoiceError: it defines none; says where and why.
    """
    try:
        return backend.load_workflow(file)
    except ValueError as error:
        message = f"Cannot run {file}: {str(error).removeprefix(f'{file}: ')}"
        raise WorkflowChoiceError(message) from error


def chosen_policies(backend: Backend, given: Sequence[str], workflow: Workflow, file: Path) -> list[Policy[Any]]:
    """Return the policies to run under: those given, else the author's, else the default.

    Raises:
        PolicyChoiceError: a policy cannot be read (says which, and where it was named), or the
            workflow's sweeps name different ones.
    """
    if given:
        return [parsed(backend.parse_policy, spec, "--policy") for spec in given]
    named = sorted({str(notes[labels.ANNOTATION_POLICY]) for notes in _annotations(workflow)})
    if len(named) > 1:
        message = f"The sweeps in {file} name different policies: {', '.join(named)}. Choose one with --policy."
        raise PolicyChoiceError(message)
    if named:
        return [parsed(backend.parse_policy, named[0], f"annotation {labels.ANNOTATION_POLICY} in {file}")]
    return [parsed(backend.parse_policy, DEFAULT_POLICY, "the default policy")]


def _annotations(workflow: Workflow) -> Iterator[Mapping[str, Any]]:
    """Yield the annotations that name a policy: those of the workflow and of its templates."""
    for place in (workflow, *((workflow.get("spec") or {}).get("templates") or [])):
        notes = (place.get("metadata") or {}).get("annotations") or {}
        if notes.get(labels.ANNOTATION_POLICY):
            yield notes


def parsed(parse_policy: Callable[[str], Policy[Any]], spec: str, where: str) -> Policy[Any]:
    """Return the policy that ``spec`` names.

    Raises:
        PolicyChoiceError: it names none; says ``where`` it stands.
    """
    try:
        return parse_policy(spec)
    except SpeconError as error:
        message = f"{where}, {spec!r}: {error}\nSee what there is with: specon policies"
        raise PolicyChoiceError(message) from error


def check_parameters(given: Mapping[str, str], workflow: Workflow, file: Path) -> None:
    """Check that the workflow has every parameter that a value is given for.

    Raises:
        UnknownParameterError: it lacks one; names those that it has.
    """
    arguments = (workflow.get("spec") or {}).get("arguments") or {}
    known = [parameter["name"] for parameter in arguments.get("parameters") or []]
    unknown = sorted(given.keys() - set(known))
    if unknown:
        has = f"it has {', '.join(known)}" if known else "it has none"
        message = f"-p {unknown[0]}={given[unknown[0]]}: the workflow in {file} has no parameter {unknown[0]!r}; {has}."
        raise UnknownParameterError(message)
