"""Read the workflow out of a file that an author wrote: Python with ``w``, or the YAML that Argo takes."""

import ast
import importlib.util
import json
import sys
import traceback
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.machinery import ModuleSpec, SourceFileLoader
from pathlib import Path
from types import CodeType
from typing import Any

import yaml
from hera.workflows import Workflow

from controllers.core import foreign_yaml
from hera_specon.errors import NoWorkflowError, SweepError, WorkflowFileError
from hera_specon.manifest import check_document, sweeps_of
from hera_specon.own_output import printing_to_stderr
from hera_specon.shared_names import why_not_found


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

    A Python file is run, and may import from its own folder and from the current one. What it prints goes to standard
    error: standard output may be kept for JSON. A file that never names ``w`` is not run: it may train.

    Raises:
        NoWorkflowError: It is neither Python nor YAML, or never names ``w``.
        WorkflowFileError: There is no such file, it fails (the message names the
            line), it defines no workflow, the workflow has no sweep, or Argo would refuse it.
    """
    if not path.is_file():
        raise WorkflowFileError(path, "no such file")
    readers = {".py": _from_python, ".yaml": _from_yaml, ".yml": _from_yaml}
    if path.suffix not in readers:
        raise NoWorkflowError(path, "neither Python (.py) nor YAML (.yaml, .yml)")
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


class _AlwaysTheSource(SourceFileLoader):
    """Reads the file itself: Python takes bytecode for that of a file edited twice in a second to the same size."""

    def get_code(self, fullname: str) -> CodeType:
        path = self.get_filename(fullname)
        code: CodeType = self.source_to_code(self.get_data(path), path)
        return code


def _from_python(path: Path) -> dict[str, Any]:
    if not _may_define_w(path):
        raise NoWorkflowError(path, "defines no Workflow named w (w is missing)")
    name = f"specon_workflow_file_{path.stem}"
    loader = _AlwaysTheSource(name, str(path))
    module = importlib.util.module_from_spec(ModuleSpec(name, loader, origin=str(path)))
    module.__file__ = str(path)
    sys.modules[name] = module  # dataclasses in the file look their module up
    before = list(sys.path)
    sys.path[:0] = [str(path.resolve().parent), str(Path.cwd())]
    try:
        with printing_to_stderr(), _naming_the_line(path):
            loader.exec_module(module)
        workflow = vars(module).get("w")
        if not isinstance(workflow, Workflow):
            what_is_there = "w is missing" if workflow is None else f"w is a {type(workflow).__name__}"
            problem = f"defines no Workflow named w ({what_is_there})"
            raise NoWorkflowError(path, problem)
        # Building the manifest runs code of the file too, and may import.
        with printing_to_stderr(), _naming_the_line(path):
            manifest: dict[str, Any] = json.loads(json.dumps(workflow.to_dict(), default=str))
    finally:
        sys.path[:] = before
    return manifest


def _may_define_w(path: Path) -> bool:
    """Return whether running the file may set ``w``: it names it, or takes all names of another module."""
    try:
        tree = ast.parse(path.read_bytes())
    except (SyntaxError, ValueError, RecursionError):
        return True  # running it says in which line it is wrong
    for node in ast.walk(tree):
        if isinstance(node, ast.alias):
            if "*" in node.name or "w" in {node.name, node.asname}:
                return True
        elif "w" in {getattr(node, "id", ""), getattr(node, "value", "")}:
            return True
    return False


@contextmanager
def _naming_the_line(path: Path) -> Iterator[None]:
    try:
        yield
    except (Exception, SystemExit) as error:
        problem, here = f"{type(error).__name__}: {error}", path.resolve()
        if isinstance(error, ImportError) and (told := why_not_found(error, path, [here.parent, Path.cwd()])):
            problem = f"{problem} ({told})"
        frames = traceback.extract_tb(error.__traceback__)
        lines = [frame.lineno for frame in frames if Path(frame.filename).resolve() == here]
        line = error.lineno if isinstance(error, SyntaxError) and error.lineno is not None else (lines or [None])[-1]
        raise WorkflowFileError(path, problem if line is None else f"line {line}: {problem}") from error


def _from_yaml(path: Path) -> dict[str, Any]:
    try:
        manifest = foreign_yaml.parsed(path.read_text(encoding="utf-8"))
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise WorkflowFileError(path, f"is not a single YAML document: {error}") from error
    if (
        not isinstance(manifest, dict)
        or manifest.get("kind") != "Workflow"
        or not isinstance(manifest.get("spec"), dict)
    ):
        raise WorkflowFileError(path, "is not an Argo Workflow (kind: Workflow, with a spec)")
    return manifest
