"""Whether a cluster takes a workflow of so many trials, and Argo's record of them. Pure."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

from controllers.core import labels
from controllers.worlds.argo.reading.planned import MOST_TRIALS
from hera_specon.errors import SubmissionError
from hera_specon.manifest import Manifest, runs_gang, sweep_of, trial_templates

MOST_OF_ARGO: Final = 2**20
"""Bytes of a workflow with its packed record above which Argo ends it as an error, where it offloads no record
(MAX_WORKFLOW_SIZE, workflow/packer/packer.go of Argo 4.1)."""
MOST_OF_ETCD: Final = 3 * 2**19
"""Bytes of a request that etcd takes (its --max-request-bytes)."""
_BESIDE: Final = 2**17
"""Bytes for what a controller and Kubernetes add: stops, sizes of gangs, managed fields."""
_NODE: Final = 56
"""Bytes that each of Argo's nodes takes in its packed record, as ``python -m benchmarks.workflow_sizes`` measures."""
_VALUE: Final = 14
"""Bytes that each value of such a node takes there, measured in the same way."""
_ATTEMPTS: Final = 2
"""The record must have room for so many attempts of a trial: each move, and each failure, makes another."""
_OF_ARRIVAL: Final = 4
"""Nodes of a trial that waits before it comes."""


@dataclass(frozen=True, slots=True)
class Size:
    """How many trials a workflow has, and bytes: of the workflow, of its trials in it, and of Argo's packed record."""

    trials: int
    workflow: int
    items: int
    record: int

    def fit(self, *, offloaded: bool) -> int:
        """Return how many such trials fit; ``offloaded`` tells that Argo keeps its record elsewhere."""
        most, each = (MOST_OF_ETCD, self.items) if offloaded else (MOST_OF_ARGO, self.items + self.record)
        room = most - _BESIDE - (self.workflow - self.items)
        return max(0, min(MOST_TRIALS, room * self.trials // max(1, each)))


def size_of(manifest: Manifest) -> Size:
    """Return how large a workflow is, and its record once each trial has had two attempts."""
    trials = items = record = 0
    for step, nodes in _fan_outs(manifest):
        values = len((step.get("arguments") or {}).get("parameters") or [])
        trials += len(step["withItems"])
        items += _bytes(step["withItems"])
        record += len(step["withItems"]) * nodes * (_NODE + values * _VALUE)
    return Size(trials, _bytes(manifest), items, record)


def check_size(manifest: Manifest, *, offloaded: bool) -> None:
    """Check that a cluster takes a workflow and its record.

    Args:
        manifest: The workflow as it will be sent.
        offloaded: Whether Argo keeps the record of large workflows in a database there.

    Raises:
        SubmissionError: It does not; the message has the sizes, and how many trials would fit.
    """
    size = size_of(manifest)
    fit = size.fit(offloaded=offloaded)
    if size.trials <= fit:
        return
    told = f"{size.trials:,} trials are too many for one workflow, which has {size.workflow:,} bytes with them"
    if fit == MOST_TRIALS:
        limit = f": a controller reads {fit:,} of a workflow"
    elif offloaded:
        limit = f": etcd takes {MOST_OF_ETCD:,} in all, so {fit:,} of them fit"
    else:
        limit = (
            f"; Argo's record of two attempts of each takes about {size.record:,} more when it is packed, and Argo "
            f"takes {MOST_OF_ARGO:,} in all: {fit:,} of them fit"
        )
    problems = [told + limit, "submit several sweeps of fewer trials, each with a name= and seed= of its own"]
    if not offloaded:
        database = "persistence with nodeStatusOffLoad: true"
        more = size.fit(offloaded=True)
        problems.append(f"or have Argo keep such records in a database ({database}) and give --offloaded: {more:,} fit")
    raise SubmissionError(problems)


def _fan_outs(manifest: Manifest) -> Iterator[tuple[dict[str, Any], int]]:
    """Yield each step that starts the trials of a sweep, and how many nodes Argo makes for one of them."""
    templates = {template.get("name"): template for template in (manifest.get("spec") or {}).get("templates") or []}
    for pod in trial_templates(manifest):
        sweep = sweep_of(pod)
        gang = any(runs_gang(template, pod) for template in templates.values())
        most = int((pod["metadata"].get("annotations") or {}).get(labels.ANNOTATION_WORKERS, 1))
        nodes = 1 + _ATTEMPTS * (2 + most if gang else 1)
        for group in (templates.get(sweep) or {}).get("steps") or []:
            for step in (call for call in group if call.get("withItems")):
                arrives = step.get("template") == sweep + labels.SUFFIX_ARRIVAL
                yield step, nodes + _OF_ARRIVAL * arrives


def _bytes(value: object) -> int:
    return len(json.dumps(value, separators=(",", ":"), ensure_ascii=False).encode())
