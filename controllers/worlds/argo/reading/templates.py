"""The templates of a workflow's trials, and the definitions that they give with Argo's placeholders filled in.

Whatever a workflow holds is untrusted: a short text may stand for a long one, thousands of times.
"""

import re
import threading
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

from controllers.core import labels
from controllers.core.expressions import SWEEP_UID, tries_given
from controllers.worlds.argo.calls.api import Json
from controllers.worlds.argo.calls.untrusted import at, device_kinds, devices_of, mappings, quantity, strings, text
from controllers.worlds.argo.reading.definitions import TrialDefinition, read_definition
from controllers.worlds.argo.reading.pods import Resources, env_of
from mlflow_hooks import contract

EXPERIMENT: Final = "MLFLOW_EXPERIMENT_NAME"
TRACKING_URI: Final = "MLFLOW_TRACKING_URI"
_NEEDED_ANNOTATIONS = (
    labels.ANNOTATION_OBJECTIVE,
    labels.ANNOTATION_DIRECTION,
    labels.ANNOTATION_FURTHER_OBJECTIVES,
    labels.ANNOTATION_CONSTRAINTS,
    labels.ANNOTATION_POLICY,
    labels.ANNOTATION_WEIGHT,
    labels.ANNOTATION_PRIORITY,
    labels.ANNOTATION_END_BY,
    labels.ANNOTATION_BUDGET,
    labels.ANNOTATION_END_WHEN,
    labels.ANNOTATION_AFTER,
    labels.ANNOTATION_WORKERS,
    labels.ANNOTATION_MIN_WORKERS,
    labels.ANNOTATION_PARAMS,
    labels.ANNOTATION_LINEAGE,
    labels.ANNOTATION_SEARCH,
    labels.ANNOTATION_DEADLINE,
    labels.ANNOTATION_TARGET,
    labels.ANNOTATION_SECONDS_PER_STEP,
)
"""What counts of a trial's annotations: of thousands, each could be a short placeholder for a long text."""
_NEEDED_ENV = frozenset({contract.ENV_TRIAL_ID, contract.ENV_SWEEP_ID, contract.ENV_PARAMS, EXPERIMENT, TRACKING_URI})
MOST_TEXT: Final = 2**24
"""Characters of all definitions of a workflow's steps together, and of those that are remembered."""
_MOST_FILLED = 2**14
"""Characters of a text with its values filled in: one may stand in it often."""
_MOST_DIGITS = 9
_PLACEHOLDER = re.compile(r"\{\{\s*([A-Za-z0-9_.-]+)\s*\}\}")
Values = tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class Retries:
    """What a trial's retryStrategy allows; None where that is not plain.

    ``limit`` is how many attempts Argo makes at most after the first, ``tries`` how many may come before one that
    fails and is not forgiven any more. Of these, ``failures`` are what its author forgives, and the others moves that
    it may make.
    """

    limit: int | None = None
    tries: int | None = None
    failures: int | None = None


NO_RETRIES: Final = Retries()


@dataclass(frozen=True, slots=True)
class Template:
    """What counts of a trial's template, with Argo's placeholders; hashable, so that they are filled in once."""

    labels: tuple[tuple[str, str], ...]
    annotations: tuple[tuple[str, str], ...]
    env: tuple[tuple[str, str], ...]
    asked: Resources
    retries: Retries = NO_RETRIES


def trial_templates(workflow: Json) -> dict[str, Template]:
    """Return the templates of trials by name, those of referenced WorkflowTemplates included.

    The template of a gang's worker stands under the name of the template of its trial.
    """
    stored = at(workflow, "status", "storedTemplates")
    everywhere = [
        *mappings(workflow, "spec", "templates"),
        *mappings(workflow, "status", "storedWorkflowTemplateSpec", "templates"),
        *(t for t in (stored.values() if isinstance(stored, Mapping) else ()) if isinstance(t, Mapping)),
    ]
    templates: dict[str, Template] = {}
    for template in everywhere:
        given = strings(template, "metadata", "labels")
        if labels.LABEL_SWEEP in given and labels.LABEL_TRIAL in given:
            templates.setdefault(text(template, "name"), _read(template, given))
    gangs = {text(template, "name"): template for template in everywhere if _worker_of(template) in templates}
    workers = {worker: templates.pop(worker) for worker in set(map(_worker_of, gangs.values()))}
    return templates | {
        # A gang's own expression forgives what left, so nothing of it is to be corrected.
        trial: replace(workers[_worker_of(template)], retries=Retries(_limit(template)))
        for trial, template in gangs.items()
    }


def _retries(template: Mapping[str, Any]) -> Retries:
    tries = tries_given(text(template, "retryStrategy", "expression"))
    failures = _number(strings(template, "metadata", "annotations").get(labels.ANNOTATION_RETRIES))
    return Retries(_limit(template), tries, tries if failures is None else failures)


def _limit(template: Mapping[str, Any]) -> int | None:
    return _number(at(template, "retryStrategy", "limit"))


def _number(value: object) -> int | None:
    written = str(value)
    return int(written) if written.isdecimal() and len(written) <= _MOST_DIGITS else None


def _worker_of(template: Mapping[str, Any]) -> str:
    """Return the template that a gang's template runs for each worker; empty where it is no gang's."""
    groups = at(template, "steps")
    if at(template, "retryStrategy") is None or not isinstance(groups, list) or len(groups) != 1:
        return ""
    (step, *others) = groups[0] if isinstance(groups[0], list) and groups[0] else [None]
    return text(step, "template") if not others and at(step, "withSequence") is not None else ""


def _read(template: Mapping[str, Any], given: Mapping[str, str]) -> Template:
    item = at(template, "container") or at(template, "script")
    container = item if isinstance(item, Mapping) else {}
    # Limits: where a template gives no request of a device, the API server takes its limit for one.
    limits = at(container, "resources", "limits")
    annotations = strings(template, "metadata", "annotations")
    return Template(
        labels=tuple((name, given[name]) for name in (labels.LABEL_SWEEP, labels.LABEL_TRIAL)),
        annotations=tuple((name, annotations[name]) for name in _NEEDED_ANNOTATIONS if name in annotations),
        env=tuple((name, value) for name, value in env_of(container).items() if name in _NEEDED_ENV),
        asked=Resources(
            quantity(container, "resources", "requests", "cpu"),
            quantity(container, "resources", "requests", "memory"),
            devices_of(device_kinds(limits), lambda kind: quantity(limits, kind)),
        ),
        retries=_retries(template),
    )


class Definitions:
    """The definitions of steps that were read last: Argo sends the whole workflow whenever one of its steps changes."""

    def __init__(self) -> None:
        self._known: dict[tuple[str, Template, Values], TrialDefinition | None] = {}
        self._templates: dict[Template, Template] = {}
        self._length = 0
        self._lock = threading.Lock()

    def of(self, where: str, template: Template, values: Values) -> TrialDefinition | None:
        """Return the definition of a step; None, and a warning, if something is amiss.

        Args:
            where: what to call the step in the warning.
            template: its template.
            values: what stands for the placeholders.
        """
        with self._lock:
            key = where, template, values
            if key not in self._known:
                known = dict(values)
                parts = (template.labels, template.annotations, template.env)
                definition = read_definition(where, *(filled(part, known) for part in parts))
                self._make_room(
                    sum(len(value) for _, value in values) + (0 if definition is None else definition.length)
                )
                self._known[where, self._kept(template), values] = definition
            return self._known[key]

    def _kept(self, template: Template) -> Template:
        """Return the template that is kept in place of all that are equal to it."""
        if template not in self._templates:
            self._make_room(sum(len(value) for _, value in (*template.labels, *template.annotations, *template.env)))
            self._templates[template] = template
        return self._templates[template]

    def _make_room(self, length: int) -> None:
        if self._length + length > MOST_TEXT:
            self._known.clear()
            self._templates.clear()
            self._length = 0
        self._length += length


def filled(values: Values, known: Mapping[str, str]) -> dict[str, str]:
    """Fill in Argo's placeholders; an unknown one stays, and makes an id invalid. What gets too long is empty."""
    return {name: _with_values(value, known) if "{{" in value else value for name, value in values}


def _with_values(value: str, known: Mapping[str, str]) -> str:
    parts: list[str] = []
    length, end = 0, 0
    value = value.replace(SWEEP_UID, known[SWEEP_UID])
    for tag in _PLACEHOLDER.finditer(value):
        parts += [value[end : tag.start()], known.get(tag[1], tag[0])]
        end, length = tag.end(), length + len(parts[-2]) + len(parts[-1])
        if length > _MOST_FILLED:
            return ""
    return "".join((*parts, value[end:]))
