"""Read and check a workflow manifest: its templates, its sweeps, the containers of its trials. Pure."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from controllers.core import labels
from controllers.core.labels import LABEL_SWEEP
from hera_specon.errors import SweepError
from hera_specon.settings import check_distinct


def check_templates(names: Sequence[str], entrypoint: str | None) -> None:
    """Check the names of a workflow's templates, and that it starts with one of them.

    Raises:
        SweepError: A name comes twice, or no template is named ``entrypoint``.
    """
    check_distinct(names, "two templates of the workflow have the same name")
    if entrypoint not in names:
        problem = f"the workflow starts with entrypoint={entrypoint!r}, its templates are {', '.join(names)}"
        raise SweepError(problem)


def check_document(document: Mapping[str, Any]) -> None:
    """Check a workflow manifest as ``check_templates`` does, and that every step names a template that exists.

    Raises:
        SweepError: The manifest is wrong.
    """
    spec = document["spec"]
    templates = spec.get("templates") or []
    names = [template.get("name", "") for template in templates]
    check_templates(names, spec.get("entrypoint"))
    steps = [step for template in templates for group in template.get("steps") or [] for step in group]
    tasks = [task for template in templates for task in (template.get("dag") or {}).get("tasks") or []]
    unknown = sorted({call["template"] for call in (*steps, *tasks) if call.get("template")} - set(names))
    if unknown:
        problem = f"steps use templates that do not exist: {', '.join(map(repr, unknown))}"
        raise SweepError(problem)


def sweeps_of(document: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the names of the sweeps in a workflow manifest, in its order."""
    templates = document.get("spec", {}).get("templates") or []
    marks = (template.get("metadata", {}).get("labels", {}).get(LABEL_SWEEP) for template in templates)
    return tuple(dict.fromkeys(mark for mark in marks if mark))


Manifest = Mapping[str, Any]


def trial_templates(manifest: Manifest) -> Iterator[dict[str, Any]]:
    """Yield the templates of trials: those with a sweep's label and a container or a script."""
    for template in (manifest.get("spec") or {}).get("templates") or []:
        marks = (template.get("metadata") or {}).get("labels") or {}
        if LABEL_SWEEP in marks and (template.get("container") or template.get("script")):
            yield template


def answer_templates(manifest: Manifest) -> Iterator[dict[str, Any]]:
    """Yield the templates of steps that tell what a sweep came to."""
    for template in (manifest.get("spec") or {}).get("templates") or []:
        if labels.ANNOTATION_ANSWER in ((template.get("metadata") or {}).get("annotations") or {}):
            yield template


def runs_gang(template: Manifest, worker: Manifest) -> bool:
    """Return whether ``template`` is that of a trial whose every worker is a ``worker``."""
    steps = [step for group in template.get("steps") or [] for step in group]
    return any(step.get("template") == worker.get("name") and "withSequence" in step for step in steps)


def run_for_each(step: dict[str, Any], items: Sequence[Mapping[str, Any]]) -> None:
    """Let ``step`` run once for each of ``items``, and without any not at all: Argo would run it once."""
    step.pop("withItems", None)
    step |= {"withItems": list(items)} if items else {"withParam": "[]"}


def program(template: Manifest) -> dict[str, Any]:
    """Return the container or script of a trial's template."""
    container: dict[str, Any] = template.get("container") or template["script"]
    return container


def variable(template: Manifest, name: str) -> str:
    """Return the plain value of an environment variable, empty where it has none."""
    values = (entry.get("value") for entry in program(template).get("env") or [] if entry.get("name") == name)
    return str(next(values, None) or "")


def sweep_of(template: Manifest) -> str:
    """Return the name of the sweep that a trial's template belongs to."""
    return str(template["metadata"]["labels"][LABEL_SWEEP])
