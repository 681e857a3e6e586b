"""Trials' pods that wait for a controller, and how they are let go without one."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from random import Random

from controllers.core import labels
from controllers.core.model import Point, TrialId
from controllers.core.parameters import point_annotations
from controllers.search import read_search
from controllers.worlds.argo.calls.api import WORKFLOWS
from controllers.worlds.argo.calls.errors import ConflictError, NotFoundError
from controllers.worlds.argo.reading.pods import PodRecord
from controllers.worlds.argo.reading.workflows import WorkflowRecord
from controllers.worlds.argo.writing.pod_changes import open_gate
from hera_specon.cluster.access import Access, read_pods, read_workflows


@dataclass(frozen=True, slots=True)
class Held:
    """What is held for a controller: gated pods, and workflows whose moved trials would be gated again.

    ``points`` are the hyperparameters that a search gave earlier attempts of their trials.
    """

    pods: tuple[PodRecord, ...]
    adopted: tuple[WorkflowRecord, ...]
    points: Mapping[TrialId, Point]

    @property
    def nothing(self) -> bool:
        """Whether there is nothing to let go."""
        return not self.pods and not self.adopted


def find_held(access: Access, workflow: str | None) -> Held:
    """Return what is held in the namespace, or of one workflow.

    Raises:
        ApiError: The cluster does not let us look, or does not answer.
    """
    pods = read_pods(access, workflow)
    gated = [pod for pod in pods if pod.gated and not pod.over]
    points = {pod.definition.id: pod.definition.point for pod in pods if pod.definition and pod.definition.point}
    known = [record for record in read_workflows(access) if workflow in {None, record.name}]
    steered = [record for record in known if record.annotations.get(labels.ANNOTATION_ADOPTED) == record.uid]
    return Held(tuple(gated), tuple(record for record in steered if not record.finished), points)


def let_go(access: Access, held: Held) -> Sequence[str]:
    """Take our gate off the pods and the mark of a controller off the workflows; return what was done, in words.

    Other gates of the pods stay. A pod that is gone or another one by now is passed over.

    Raises:
        ApiError: The cluster refused, or does not answer.
    """
    told = []
    for record in held.adopted:
        body = {"metadata": {"uid": record.uid, "annotations": {labels.ANNOTATION_ADOPTED: None}}}
        try:
            access.api.patch(WORKFLOWS.path(record.namespace, record.name), body)
        except (NotFoundError, ConflictError):
            told.append(f"workflow {record.name} is gone")
        else:
            told.append(f"workflow {record.name}: trials that leave a node wait for no controller any more")
    for pod in held.pods:
        drawn, notes = "", dict[str, str | None]()
        if (trial := pod.definition) is not None and trial.search:
            if trial.id not in held.points:
                drawn = ", with hyperparameters drawn by chance"
            # The same chance for each attempt of a trial.
            chance = Random(trial.id)  # noqa: S311 - repeatable, guards no secret
            notes |= point_annotations(held.points.get(trial.id) or read_search(trial.search).by_chance(chance))
        try:
            open_gate(access.api, pod, None, notes)
        except (NotFoundError, ConflictError):
            told.append(f"pod {pod.name} is gone")
        else:
            told.append(f"pod {pod.name} goes where the scheduler puts it{drawn}")
    return told
