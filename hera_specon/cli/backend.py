"""What the commands call, and the workflow, policies and parameters that they run with."""

import gc
import os
import shlex
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from controllers.core import labels
from controllers.core.errors import SpeconError
from controllers.core.policy import Policy
from controllers.policies.kit.settings import DEFAULT_POLICY, PolicyError
from hera_specon.cli.group import importing
from hera_specon.errors import NoWorkflowError, WorkflowFileError
from hera_specon.script_options import suggested_assignments

if TYPE_CHECKING:
    from controllers.cluster.settings import ControllerSettings
    from controllers.local_run.order import LocalSettings
    from controllers.local_run.run import LocalRun
    from controllers.local_run.services import Screen


Workflow = Mapping[str, Any]


def run_controller(settings: "ControllerSettings", stop: threading.Event) -> None:
    """Run the controller. It imports nothing that only sweeps on this machine need: that would cost memory."""
    from controllers.tracking.access import import_slim  # noqa: PLC0415 - see the module's docstring

    import_slim()
    from controllers.cluster import run  # noqa: PLC0415

    # What was imported stays: looking through it for garbage again and again would be half of all collecting.
    gc.freeze()
    run.run_controller(settings, stop)


@dataclass(frozen=True, slots=True)
class Backend:
    """The functions behind the commands; a test hands ``main`` its own as ``obj``."""

    load_workflow: Callable[[Path], Workflow]
    parse_policy: Callable[[str], Policy[Any]]
    run_locally: "Callable[[Workflow, Path, Sequence[Policy[Any]], LocalSettings, Screen], LocalRun]"
    run_controller: "Callable[[ControllerSettings, threading.Event], None]" = run_controller


def real_backend() -> Backend:
    """Return the functions that really run sweeps.

    MLflow is kept from printing to stdout, which may be for JSON, and from telling its makers how it is used.
    """
    os.environ.setdefault("MLFLOW_SUPPRESS_PRINTING_URL_TO_STDOUT", "true")
    os.environ.setdefault("MLFLOW_DISABLE_TELEMETRY", "true")
    from controllers.local_run.run import run_locally  # noqa: PLC0415 - see the module's docstring
    from controllers.policies.registry import parse_policy  # noqa: PLC0415
    from hera_specon.workflow_file import load_workflow  # noqa: PLC0415

    return Backend(lambda path: load_workflow(path).manifest, parse_policy, run_locally)


class PolicyChoiceError(SpeconError):
    """A policy that was asked for is not one."""


class WorkflowChoiceError(SpeconError):
    """The file gives no workflow that can run."""


class UnknownParameterError(SpeconError):
    """A value was given for a parameter that the workflow does not have."""


def chosen_workflow(backend: Backend, file: Path) -> Workflow:
    """Return the workflow that ``file`` defines.

    Raises:
        WorkflowChoiceError: it defines none; says where and why.
    """
    try:
        with importing():
            return backend.load_workflow(file)
    except WorkflowFileError as error:
        message = f"Cannot run {file}: {str(error).removeprefix(f'{file}: ')}"
        if isinstance(error, NoWorkflowError):
            message += f"\n{_in_one_line(file)}"
        raise WorkflowChoiceError(message) from error


def _in_one_line(file: Path) -> str:
    """Return how to sweep ``file`` if it is a training script."""
    swept = shlex.join(["specon", "run", str(file), *suggested_assignments(file), "--minimize", "loss"])
    return f"If it is a training script, sweep its hyperparameters in one line, for example:\n  {swept}"


def chosen_policies(backend: Backend, given: Sequence[str], workflow: Workflow, file: Path) -> list[Policy[Any]]:
    """Return the policies to run under: those given, else the author's, else the default.

    Raises:
        PolicyChoiceError: a policy cannot be read (says which, and where it was named), or the
            workflow's sweeps name different ones.
    """
    if given:
        return [parse_spec(backend.parse_policy, spec, "--policy") for spec in given]
    named = sorted({str(notes[labels.ANNOTATION_POLICY]) for notes in _annotations(workflow)})
    if len(named) > 1:
        message = f"The sweeps in {file} name different policies: {', '.join(named)}. Choose one with --policy."
        raise PolicyChoiceError(message)
    if named:
        return [parse_spec(backend.parse_policy, named[0], f"annotation {labels.ANNOTATION_POLICY} in {file}")]
    return [parse_spec(backend.parse_policy, DEFAULT_POLICY, "the default policy")]


def _annotations(workflow: Workflow) -> Iterator[Mapping[str, Any]]:
    """Yield the annotations that name a policy: those of the workflow and of its templates."""
    for place in (workflow, *((workflow.get("spec") or {}).get("templates") or [])):
        notes = (place.get("metadata") or {}).get("annotations") or {}
        if notes.get(labels.ANNOTATION_POLICY):
            yield notes


def parse_spec(parse_policy: Callable[[str], Policy[Any]], spec: str, where: str) -> Policy[Any]:
    """Return the policy that ``spec`` names.

    Raises:
        PolicyChoiceError: it names none; says ``where`` it stands.
    """
    try:
        return parse_policy(spec)
    except PolicyError as error:
        message = f"{where}, {spec!r}: {error}\nList the policies with: specon policies"
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
