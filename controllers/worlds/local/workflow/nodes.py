"""Where the parts of a workflow stand at one moment."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any

from controllers.worlds.local.workflow.steps import Delay, PodStep
from controllers.worlds.local.workflow.templates import Call, StepTemplate
from mlflow_hooks.foreign_json import parsed


class NodePhase(StrEnum):
    """Where a node of the workflow stands. ``HELD`` and ``WAITING`` ones do not exist yet in Argo."""

    WAITING = "Waiting"
    HELD = "Held"
    RUNNING = "Running"
    SUCCEEDED = "Succeeded"
    FAILED = "Failed"
    ERROR = "Error"
    SKIPPED = "Skipped"
    OMITTED = "Omitted"

    @property
    def ended(self) -> bool:
        """Whether nothing more will come of it."""
        return self not in {NodePhase.WAITING, NodePhase.HELD, NodePhase.RUNNING}

    @property
    def bad(self) -> bool:
        """Whether it ended otherwise than it should."""
        return self in {NodePhase.FAILED, NodePhase.ERROR}


@dataclass(frozen=True, slots=True)
class NodeStatus:
    """One run of a template: where it stands, and what should exist because of it.

    ``started`` tells whether anything in it has begun, so that it keeps its place under ``parallelism``.
    ``until`` is when it ended, where the expander was told when its parts did.
    """

    phase: NodePhase
    pods: tuple[PodStep, ...] = ()
    delays: tuple[Delay, ...] = ()
    started: bool = False
    outputs: Mapping[str, str] = field(default_factory=dict)
    message: str = ""
    until: float = 0.0


@dataclass(frozen=True, slots=True)
class Branch:
    """A call and its nodes: one, or one per item of its loop."""

    call: Call
    nodes: tuple[NodeStatus, ...]

    @property
    def phase(self) -> NodePhase:
        """Where the call as a whole stands."""
        for node in self.nodes:
            if not node.phase.ended:
                return node.phase
        bad = next((node.phase for node in self.nodes if node.phase.bad), None)
        if bad is not None or self.call.loop is None:
            return bad or self.nodes[0].phase
        return NodePhase.SUCCEEDED if self.nodes else NodePhase.SKIPPED

    @property
    def fault(self) -> NodeStatus | None:
        """The first node that ended badly and whose call does not carry on then."""
        return next((node for node in self.nodes if node.phase.bad and not carries_on(self.call, node.phase)), None)

    @property
    def outputs(self) -> Mapping[str, str]:
        """What later calls can read of this one."""
        if self.call.loop is None:
            return self.nodes[0].outputs
        return aggregate([node.outputs for node in self.nodes if node.phase is NodePhase.SUCCEEDED]) | {
            "status": self.phase
        }


def carries_on(call: Call, phase: NodePhase) -> bool:
    """Return whether ``call`` lets the others go on after it ended in ``phase``."""
    return call.on_failed if phase is NodePhase.FAILED else call.on_error if phase is NodePhase.ERROR else False


def admit(branches: Sequence[Branch], template: StepTemplate, before: Sequence[NodeStatus]) -> list[Branch]:
    """Hold back the nodes for which ``template``'s parallelism has no room, or all new ones after a failFast."""
    nodes = [node for branch in branches for node in branch.nodes]
    room = len(nodes) if template.parallelism is None else template.parallelism
    room -= sum(node.phase is NodePhase.RUNNING and node.started for node in nodes)
    if template.fail_fast and any(node.phase.bad for node in (*before, *nodes)):
        room = 0
    admitted = []
    for branch in branches:
        kept: list[NodeStatus] = []
        for node in branch.nodes:
            new = node.phase is NodePhase.RUNNING and not node.started
            kept.append(NodeStatus(NodePhase.HELD) if new and room <= 0 else node)
            room -= new
        admitted.append(replace(branch, nodes=tuple(kept)))
    return admitted


def gave_up(template: StepTemplate, nodes: Sequence[NodeStatus]) -> bool:
    """Tell whether a failFast template has a failure and nothing that still runs."""
    phases = {node.phase for node in nodes}
    return template.fail_fast and any(phase.bad for phase in phases) and NodePhase.RUNNING not in phases


def aggregate(outputs: Sequence[Mapping[str, str]]) -> dict[str, str]:
    """Return the results of a loop's steps as one JSON list; a result that is JSON itself goes in as such."""
    results = [_json_or_text(output["outputs.result"]) for output in outputs if "outputs.result" in output]
    return {"outputs.result": json.dumps(results, separators=(",", ":"), ensure_ascii=False)}


def _json_or_text(text: str) -> Any:  # noqa: ANN401 - any JSON value
    try:
        return parsed(text)
    except json.JSONDecodeError:
        return text
