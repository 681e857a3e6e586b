"""What Hera lets pass in a workflow, and Argo would refuse only once it is submitted."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from controllers.core.labels import LABEL_SWEEP
from hera_specon.errors import SweepError
from hera_specon.names import check_distinct


def check_templates(names: Sequence[str], entrypoint: str | None) -> None:
    """Check the names of a workflow's templates, and that it starts with one of them.

    Raises:
        SweepError: A name comes twice, or ``entrypoint`` is none of them.
    """
    check_distinct(names, "the workflow has two templates of one name")
    if entrypoint not in names:
        problem = f"the workflow starts with entrypoint={entrypoint!r}, its templates are {', '.join(names)}"
        raise SweepError(problem)


def check_document(document: Mapping[str, Any]) -> None:
    """Check a workflow manifest as ``check_templates`` does, and that every step names a template that is there.

    Raises:
        SweepError: Something is amiss.
    """
    spec = document["spec"]
    templates = spec.get("templates") or []
    names = [template.get("name", "") for template in templates]
    check_templates(names, spec.get("entrypoint"))
    unknown = sorted({name for template in templates for name in _called(template)} - set(names))
    if unknown:
        problem = f"steps use templates that are not there: {', '.join(map(repr, unknown))}"
        raise SweepError(problem)


def sweeps_of(document: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the names of the sweeps in a workflow manifest, in its order."""
    templates = document.get("spec", {}).get("templates") or []
    marks = (template.get("metadata", {}).get("labels", {}).get(LABEL_SWEEP) for template in templates)
    return tuple(dict.fromkeys(mark for mark in marks if mark))


def _called(template: Mapping[str, Any]) -> Iterator[str]:
    steps = [step for group in template.get("steps") or [] for step in group]
    tasks = (template.get("dag") or {}).get("tasks") or []
    return (step["template"] for step in [*steps, *tasks] if step.get("template"))
