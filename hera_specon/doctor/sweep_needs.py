"""What the trials of a workflow need of a cluster. Pure."""

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from controllers.core import kueue, labels
from controllers.core.expressions import HELPER_CPU, HELPER_MEMORY
from controllers.worlds.argo.calls.untrusted import quantity
from controllers.worlds.argo.reading.planned import planned_trials
from hera_specon.manifest import Manifest, program, sweep_of, trial_templates

DEFAULT_ACCOUNT: Final = "default"


@dataclass(frozen=True, slots=True, kw_only=True)
class PodNeeds:
    """What the pods of one sweep need.

    Attributes:
        sweep: its name.
        pods: how many may run at once, one for each worker.
        cpu: cores that a pod requests, with those of Argo's helper.
        memory: bytes, alike; 0 where the trial requests none.
        cpu_limit: cores of the trial's own limit, 0 without one.
        memory_limit: bytes, alike.
        own_cpu: cores that the trial's container requests.
    """

    sweep: str
    pods: int
    cpu: float
    memory: float
    cpu_limit: float
    memory_limit: float
    own_cpu: float


@dataclass(frozen=True, slots=True, kw_only=True)
class SweepNeeds:
    """What the sweeps of a workflow need.

    Attributes:
        manifest: the workflow.
        account: the service account by which Argo's executor in its pods reports.
        each: the needs of each sweep.
        waits: sweeps whose trials start only once a controller lets them.
        queue: Kueue's queue that its pods ask for; empty without one.
        grouped: whether they are a pod group of Kueue's.
    """

    manifest: Manifest
    account: str
    each: tuple[PodNeeds, ...]
    waits: tuple[str, ...]
    queue: str
    grouped: bool


def sweep_needs(manifest: Manifest) -> SweepNeeds:
    """Return what the sweeps in ``manifest`` need."""
    spec = manifest.get("spec") or {}
    templates = list(trial_templates(manifest))
    marks = [*_labels(manifest), *(mark for template in templates for mark in _labels(template))]
    marks += _labels({"metadata": spec.get("podMetadata")})
    searched = [sweep_of(template) for template in templates if labels.ANNOTATION_SEARCH in _notes(template)]
    return SweepNeeds(
        manifest=manifest,
        account=_account(spec, templates),
        each=tuple(_pod_needs(template, spec) for template in templates),
        waits=tuple(searched),
        queue=next((str(value) for name, value in marks if name == kueue.LABEL_QUEUE), ""),
        grouped=any(name == kueue.LABEL_GROUP for name, _ in marks),
    )


def _account(spec: Manifest, templates: list[dict[str, Any]]) -> str:
    """Return the account of the executor: its own, else that of the pods, of a template before the workflow's."""
    places = [*templates, spec]
    executors = (str((place.get("executor") or {}).get("serviceAccountName") or "") for place in places)
    accounts = (str(place.get("serviceAccountName") or "") for place in places)
    return next(filter(None, (*executors, *accounts)), DEFAULT_ACCOUNT)


def _labels(thing: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    yield from (((thing.get("metadata") or {}).get("labels")) or {}).items()


def _notes(template: Mapping[str, Any]) -> Mapping[str, Any]:
    return (template.get("metadata") or {}).get("annotations") or {}


def _pod_needs(template: Manifest, spec: Manifest) -> PodNeeds:
    name, resources = sweep_of(template), program(template).get("resources") or {}
    trials = max(1, len(planned_trials({"spec": spec}, [name], {})))
    fans = [item for item in spec.get("templates") or [] if item.get("name") == name]
    bounds = [fan.get("parallelism") for fan in fans] + [spec.get("parallelism")]
    workers = str(_notes(template).get(labels.ANNOTATION_WORKERS, "1"))
    at_once = min([trials, *(bound for bound in bounds if isinstance(bound, int) and bound > 0)])
    cpu, memory = (quantity(resources, "requests", what) for what in ("cpu", "memory"))
    return PodNeeds(
        sweep=name,
        pods=at_once * (int(workers) if workers.isdecimal() else 1),
        cpu=cpu + quantity({"cpu": HELPER_CPU}, "cpu"),
        memory=memory + quantity({"memory": HELPER_MEMORY}, "memory") if memory else 0.0,
        cpu_limit=quantity(resources, "limits", "cpu"),
        memory_limit=quantity(resources, "limits", "memory"),
        own_cpu=cpu,
    )


def fitting(left: float, each: float) -> float:
    """Return how many pods that take ``each`` fit into what is ``left``; endlessly many where they take nothing."""
    return math.floor(left / each + 1e-9) if each > 0 else math.inf
