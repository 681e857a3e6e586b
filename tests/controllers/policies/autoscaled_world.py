"""A small cluster whose nodes come when a pod asks for one, and go when they are empty; time is what tests make it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from controllers.core.actions import Action, Place
from controllers.core.engine import Engine
from controllers.core.model import Node, NodeKind, NodeName, Phase, Sample, Trial, TrialId
from controllers.core.policy import Policy
from controllers.core.ports import DONE, Outcome
from tests.controllers.policies.policy_fakes import trial
from tests.controllers.quiet_world import QuietWorld

BIG = NodeKind("big", 4.0, boots_s=90.0, more=3.0)
UNKNOWN = NodeKind("", float("inf"))


def gated(name: str, **changes: Any) -> Trial:  # noqa: ANN401 - any field of Trial
    """Return a trial of one core that waits for its first place."""
    return trial(name, **{"phase": Phase.PENDING, "gated": True, "attempt": 0, **changes})


@dataclass
class AutoscaledWorld(QuietWorld):
    """Runs each trial for ``length`` seconds; ``boots`` tells whether any node comes.

    ``kind`` is what comes, ``told`` what is told of it before a node of it is ready. A pod that names no node is
    scheduled onto any with room, as soon as there is one.
    """

    waiting: list[Trial]
    kind: NodeKind = BIG
    told: NodeKind = BIG
    length: float = 60.0
    boots: bool = True
    every_s: float = 5.0
    now: float = 0.0
    there: dict[NodeName, float] = field(default_factory=dict)
    """When each node is ready."""
    ends: dict[TrialId, float] = field(default_factory=dict)
    most_nodes: int = 0
    saved: str | None = None

    def __post_init__(self) -> None:
        self._trials = {one.id: one for one in self.waiting}
        self._named = 0

    def trials(self) -> Sequence[Trial]:
        return list(self._trials.values())

    def nodes(self) -> Sequence[Node]:
        return [Node(name, self.kind.cpu, ready=at <= self.now, kind="big") for name, at in self.there.items()]

    def kinds(self) -> Sequence[NodeKind]:
        if not self.told.name and not any(at <= self.now for at in self.there.values()):
            return [self.told]
        coming = sum(at > self.now for at in self.there.values())
        return [replace(self.kind, more=self.kind.more - len(self.there), coming=coming)]

    def apply(self, action: Action) -> Outcome:
        if isinstance(action, Place):
            nodes = action.nodes
            self._trials[action.trial] = replace(self._trials[action.trial], phase=Phase.PENDING, gated=False)
            if nodes:
                self._start(action.trial, nodes[0])
        return DONE

    def asking(self) -> list[TrialId]:
        return [one.id for one in self._trials.values() if one.phase is Phase.PENDING and not one.gated]

    def step(self) -> None:
        """Let ``every_s`` seconds go by: trials end, empty nodes go, the scheduler and the autoscaler look once."""
        self.now += self.every_s
        for name in [name for name, at in self.ends.items() if at <= self.now]:
            self._trials[name] = replace(self._trials[name], phase=Phase.SUCCEEDED, nodes=())
            del self.ends[name]
        for name in self.asking():
            roomy = [node.name for node in self.nodes() if node.ready and self._free(node.name) >= 1]
            if roomy:
                self._start(name, roomy[0])
        lacking = len(self.asking()) - sum(int(self.kind.cpu) for at in self.there.values() if at > self.now)
        if self.boots and lacking > 0 and len(self.there) < BIG.more:
            self._named += 1
            self.there[NodeName(f"n{self._named}")] = self.now + self.kind.boots_s
        used = {one.node for one in self._trials.values()}
        for node in [node for node, at in self.there.items() if at + 60 < self.now and node not in used]:
            del self.there[node]
        self.most_nodes = max(self.most_nodes, len(self.there))

    def load(self) -> str | None:
        return self.saved

    def save(self, state: Any, *, urgent: bool) -> None:  # noqa: ANN401 - a function that writes it
        del urgent
        self.saved = state()

    def poll(self) -> Mapping[TrialId, Sample]:
        return {}

    def steer(self, policy: Policy[Any], seconds: float) -> Engine[Any]:
        """Let an engine that begins here steer for so long."""
        engine = Engine(policy, self, self, self)
        until = self.now + seconds
        while self.now < until:
            engine.tick(self.now)
            self.step()
        return engine

    def phases(self) -> dict[str, int]:
        phases = [one.phase.value for one in self._trials.values()]
        return {phase: phases.count(phase) for phase in sorted(set(phases))}

    def _free(self, node: NodeName) -> float:
        return self.kind.cpu - sum(one.cpu for one in self._trials.values() if one.node == node)

    def _start(self, name: TrialId, node: NodeName) -> None:
        assert self._free(node) >= 1, f"{name} does not fit on {node}"
        self._trials[name] = replace(self._trials[name], phase=Phase.RUNNING, nodes=(node,), gated=False, attempt=1)
        self.ends[name] = self.now + self.length
