"""The commands: every change to a trial's pods, or to what its workflow says of it. Each is about one attempt.

The marks on the pods record how far a move has come, so a controller that is killed at any instant goes on from there.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import ClassVar, Final

from controllers.core import labels
from controllers.core.model import Point
from controllers.worlds.argo.meaning.attempts import Attempt
from controllers.worlds.argo.reading.nodes import NodeRecord
from controllers.worlds.argo.reading.pods import PodRecord
from controllers.worlds.argo.reading.resize_answers import ResizeAnswer, answer_in

_MOST_BETWEEN_S: Final = 30.0
"""Seconds between two tries to reach a pod that count as in vain: for longer, nobody tried."""
Annotations = Mapping[str, str | None]
"""Annotations to be written; None takes one away."""


@dataclass(frozen=True, slots=True)
class Told:
    """What people are told by an Event: the reason in one CamelCase word, and a note."""

    reason: str
    note: str
    warning: bool = field(default=False, kw_only=True)


def bound_to(attempt: Attempt, nodes: Sequence[NodeRecord | None]) -> tuple[NodeRecord | None, ...]:
    """Return what the workers of an attempt are bound to: ``nodes``, or none where their devices are not known."""
    return (None,) * len(nodes) if attempt.devices_unread else tuple(nodes)


@dataclass(frozen=True, slots=True)
class Annotate:
    """Write annotations on the workflow, then on the attempt's first pod.

    ``reserves`` are the nodes whose room is the trial's from then on. ``told`` is for once it is done, as with each
    command.
    """

    attempt: Attempt
    on_pod: Annotations = field(default_factory=dict)
    on_workflow: Annotations = field(default_factory=dict)
    told: Told | None = None
    reserves: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Leave:
    """Mark that the attempt is to leave, and only then ask it: a controller that is killed in between finds the marks.

    They go on the workflow first. An attempt that waits, at its gates or for room, is not asked. ``begins`` is told at
    once.
    ``signals`` tells that it is asked by a signal, not by an annotation.
    """

    attempt: Attempt
    begins: Told
    signals: bool
    on_pod: Annotations = field(default_factory=dict)
    on_workflow: Annotations = field(default_factory=dict)
    told: ClassVar[Told | None] = None

    @property
    def asks(self) -> bool:
        """Whether the attempt is asked."""
        return not any(worker.gated or not worker.node for worker in self.attempt.workers)


@dataclass(frozen=True, slots=True)
class AskToLeave:
    """Ask the trainers to save a checkpoint and exit: by SIGTERM, or without ``signals`` by an annotation."""

    attempt: Attempt
    signals: bool
    told: ClassVar[Told | None] = None


@dataclass(frozen=True, slots=True)
class Kill:
    """Kill the trainers, which did not leave in their grace period."""

    attempt: Attempt

    @property
    def told(self) -> Told:
        """What is told once it is done."""
        grace_s = self.attempt.lead.grace_s
        return Told("MoveForced", f"it did not leave in its {grace_s} s of grace and is killed", warning=True)


@dataclass(frozen=True, slots=True)
class Evict:
    """Evict ``pods``, if no PodDisruptionBudget forbids it: Argo makes others in their place, or the next attempt.

    First the marks of a move or a place go from ``unmarked``: with them, the pods in their place would be bound to the
    same nodes again. ``waits`` gives the programs the grace period of their pods; else nobody waits for the kubelets.
    """

    attempt: Attempt
    pods: tuple[PodRecord, ...]
    told: Told
    unmarked: tuple[Attempt, ...] = ()
    waits: bool = False


@dataclass(frozen=True, slots=True)
class OpenGates:
    """Take the gates of all workers away that are still there.

    ``nodes`` has what each worker is bound to, None where the scheduler finds a place for it. ``point`` are
    hyperparameters that a search gave the trial.
    """

    attempt: Attempt
    nodes: tuple[NodeRecord | None, ...]
    reason: str
    moved_from: str = ""
    point: Point = ()

    @property
    def told(self) -> Told:
        """What is told once it is done."""
        if self.attempt.gang:
            return Told("Placed", f"gates of {len(self.nodes)} workers opened: {self.reason}")
        (node,) = self.nodes
        return Told("Placed", f"gate opened{f' for {node.name}' if node else ''}: {self.reason}")


@dataclass(frozen=True, slots=True)
class SetShare:
    """Ask for ``cpu`` cores for each worker, in place."""

    attempt: Attempt
    cpu: float
    told: ClassVar[Told | None] = None


@dataclass(frozen=True, slots=True)
class WithdrawShare:
    """Take back the request for a share that a node cannot give."""

    attempt: Attempt

    @property
    def told(self) -> Told:
        """What is told once it is done."""
        share = self.attempt.share
        note = f"it keeps {share.has:g} cores instead of {share.wanted:g}: {self.answer.line}"
        return Told("ResizeWithdrawn", note, warning=True)

    @property
    def answer(self) -> ResizeAnswer:
        """What the kubelet said against the share."""
        return answer_in(self.attempt.share.said or f"{self.attempt.node} cannot give as much")


@dataclass(frozen=True, slots=True)
class HandOverRun:
    """Write the trial's run in MLflow on a pod that nothing holds back, in the seconds before its program starts.

    It is the first worker's: the others log nothing.
    """

    attempt: Attempt
    told: ClassVar[Told | None] = None


@dataclass(frozen=True, slots=True)
class KeepNodes:
    """Ask Karpenter to leave the nodes of an attempt alone, or, where it does not ``stay``, take that back."""

    attempt: Attempt
    stay: bool
    told: ClassVar[Told | None] = None

    @property
    def on_pods(self) -> Annotations:
        """What is written on the pods of all workers."""
        word = "true" if self.stay else None
        return {labels.ANNOTATION_DO_NOT_DISRUPT: word, labels.ANNOTATION_STAYS: word}


Command = Annotate | Leave | AskToLeave | Kill | Evict | OpenGates | SetShare | WithdrawShare | HandOverRun | KeepNodes


@dataclass(frozen=True, slots=True)
class LeaveRequest:
    """How the request to leave fares that this process made of an attempt. Times are Unix seconds.

    ``tried_at`` is when it was last tried at an API server that answered, and ``vain_s`` for how many seconds by then
    in vain: what was asked for while that server or this process was away has not been tried. ``delivered_at`` is None
    until the pod has taken it; ``kills`` counts the attempts to kill the trainer since.
    """

    tried_at: float | None = None
    vain_s: float = 0.0
    delivered_at: float | None = None
    kills: int = 0

    def tried(self, now: float) -> "LeaveRequest":
        """Return it as tried once more."""
        since = 0.0 if self.tried_at is None else min(_MOST_BETWEEN_S, max(0.0, now - self.tried_at))
        return replace(self, tried_at=now, vain_s=self.vain_s + since)
