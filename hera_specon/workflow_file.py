"""Read the workflow out of a file that an author wrote: Python with ``w``, or the YAML that Argo takes."""

import importlib.util
import json
import sys
import traceback
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml
from hera.workflows import Workflow

from hera_specon.errors import SweepError, WorkflowFileError
from hera_specon.manifest import check_document, sweeps_of


@dataclass(frozen=True, slots=True)
class WorkflowFile:
    """A workflow manifest and where it came from.

    ``manifest`` is JSON-ready, ``name`` the workflow's name or what its generated name starts with, and ``sweeps``
    are the names of its sweeps, at least one.
    """

    path: Path
    name: str
    manifest: Mapping[str, Any]
    sweeps: tuple[str, ...]


def load_workflow(path: Path) -> WorkflowFile:
    """Return the workflow of a Python file that defines ``w``, or of a YAML file.

    A Python file is run, and may import from its own folder and from the current one.

    Raises:
        WorkflowFileError: There is no such file, it is neither Python nor YAML, it fails (the message names the
            line), it defines no workflow, the workflow has no sweep, or Argo would refuse it.
    """
    if not path.is_file():
        raise WorkflowFileError(path, "no such file")
    readers = {".py": _from_python, ".yaml": _from_yaml, ".yml": _from_yaml}
    if path.suffix not in readers:
        raise WorkflowFileError(path, "neither Python (.py) nor YAML (.yaml, .yml)")
    manifest = readers[path.suffix](path)
    sweeps = sweeps_of(manifest)
    if not sweeps:
        raise WorkflowFileError(path, "the workflow has no sweep; add a Sweep(...) to it")
    try:
        check_document(manifest)
    except SweepError as error:
        raise WorkflowFileError(path, str(error)) from error
    metadata = manifest.get("metadata") or {}
    return WorkflowFile(
        path=path,
        name=str(metadata.get("name") or metadata.get("generateName") or "workflow").rstrip("-"),
        manifest=manifest,
        sweeps=sweeps,
    )


def _from_python(path: Path) -> dict[str, Any]:
    with _importable(path.resolve().parent, Path.cwd()):
        with _naming_the_line(path):
            module = _run(path)
        workflow = _defined(path, vars(module).get("w"))
        with _naming_the_line(path):
            manifest: dict[str, Any] = json.loads(json.dumps(workflow.to_dict(), default=str))
    return manifest


@contextmanager
def _naming_the_line(path: Path) -> Iterator[None]:
    try:
        yield
    except (Exception, SystemExit) as error:
        raise WorkflowFileError(path, _where(path, error)) from error


def _run(path: Path) -> object:
    name = f"specon_workflow_file_{path.stem}"
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise WorkflowFileError(path, "Python can't load it")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # dataclasses in the file look their module up
    spec.loader.exec_module(module)
    return module


@contextmanager
def _importable(*folders: Path) -> Iterator[None]:
    before = list(sys.path)
    sys.path[:0] = [str(folder) for folder in folders]
    try:
        yield
    finally:
        sys.path[:] = before


def _defined(path: Path, workflow: object) -> Workflow:
    if not isinstance(workflow, Workflow):
        found = "w is missing" if workflow is None else f"w is a {type(workflow).__name__}"
        problem = f"defines no Workflow named w ({found})"
        raise WorkflowFileError(path, problem)
    return workflow


def _where(path: Path, error: BaseException) -> str:
    problem = f"{type(error).__name__}: {error}"
    if isinstance(error, SyntaxError) and error.lineno is not None:
        return f"line {error.lineno}: {problem}"
    own = [
        frame for frame in traceback.extract_tb(error.__traceback__) if Path(frame.filename).resolve() == path.resolve()
    ]
    return f"line {own[-1].lineno}: {problem}" if own else problem


def _from_yaml(path: Path) -> dict[str, Any]:
    try:
        manifest = yaml.safe_load(path.read_text(encoding="utf-8"))
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise WorkflowFileError(path, f"is no single YAML document: {error}") from error
    if (
        not isinstance(manifest, dict)
        or manifest.get("kind") != "Workflow"
        or not isinstance(manifest.get("spec"), dict)
    ):
        raise WorkflowFileError(path, "holds no Argo Workflow (kind: Workflow, with a spec)")
    return manifest
