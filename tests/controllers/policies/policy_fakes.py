"""Short ways to write snapshots, and a small cluster that answers actions as real ones do: not always."""

import math
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import Any

from controllers.core.actions import Decision, Migrate, Proposal, Resize, Stop
from controllers.core.model import Direction, Goals, Node, NodeName, Phase, Progress, Sample, Snapshot, Trial, TrialId
from controllers.core.policy import Policy
from controllers.core.progress import merge

EPSILON = 1e-6
STEPS = 15
"""Of each trial of ``FakeCluster``, which has goals that differ from trial to trial."""


def trial(name: str, *nodes: str, cpu: float = 1.0, **changes: Any) -> Trial:  # noqa: ANN401 - any field of Trial
    running = Trial(
        id=TrialId(name),
        phase=Phase.RUNNING,
        cpu=cpu,
        base_cpu=cpu,
        memory=0.0,
        direction=Direction.MINIMIZE,
        submitted_at=0.0,
        nodes=tuple(NodeName(node) for node in nodes),
        attempt=1,
        workers=max(1, len(nodes)),
    )
    return replace(running, **changes)


def node(name: str, cpu: float = 100.0, **changes: Any) -> Node:  # noqa: ANN401 - any field of Node
    return replace(Node(NodeName(name), cpu), **changes)


def snapshot(now: float, trials: Iterable[Trial], nodes: Iterable[Node]) -> Snapshot:
    return Snapshot(now, tuple(trials), tuple(nodes))


def progress(value: float, at: float, *, first: float = 100.0, best: float | None = None, cpu: float = 0.0) -> Progress:
    return Progress(first, min(first, value) if best is None else best, value, int(at), at, cpu)


def moves(decision: Decision[Any]) -> list[tuple[str, str]]:
    actions = [proposal.action for proposal in decision.proposals]
    return [(action.trial, action.node) for action in actions if isinstance(action, Migrate)]


def resizes(decision: Decision[Any]) -> dict[str, float]:
    actions = [proposal.action for proposal in decision.proposals]
    return {action.trial: action.cpu for action in actions if isinstance(action, Resize)}


@dataclass
class FakeCluster:
    """Trials on nodes; moves take until ``finish_move``, and may fail. Refuses what would break capacity."""

    nodes: dict[NodeName, Node]
    now: float = 0.0
    trials: dict[TrialId, Trial] = field(default_factory=dict)
    moved: list[tuple[TrialId, NodeName, NodeName]] = field(default_factory=list)

    def snapshot(self) -> Snapshot:
        nodes = [replace(node, cpu_used=min(node.cpu, self.requested(name))) for name, node in self.nodes.items()]
        return snapshot(self.now, self.trials.values(), nodes)

    def requested(self, name: NodeName) -> float:
        here = sum(t.cpu * t.nodes.count(name) for t in self.trials.values() if not t.phase.ended)
        coming = sum(t.cpu * t.workers for t in self.trials.values() if t.phase is Phase.MOVING and t.moving_to == name)
        return here + coming

    def room(self, name: NodeName) -> float:
        return self.nodes[name].cpu - self.requested(name) if self.nodes[name].ready else -math.inf

    def check(self) -> None:
        for name, place in self.nodes.items():
            assert self.requested(name) <= place.cpu + EPSILON, f"{name}: {self.requested(name)} of {place.cpu}"

    def submit(self, name: str, cpu: float) -> None:
        roomy = [node for node in self.nodes if self.room(node) >= cpu]
        where = (max(roomy, key=self.room),) if roomy else ()
        phase = Phase.RUNNING if where else Phase.PENDING
        number = len(self.trials)
        goals = Goals(
            deadline_at=self.now + 100.0 * (number % 5) if number % 5 else None,
            target=30.0 if number % 2 else None,
            seconds_per_step=10.0 * (number % 3) or None,
        )
        self.trials[TrialId(name)] = trial(name, *where, cpu=cpu, phase=phase, submitted_at=self.now, goals=goals)

    def report(self, name: TrialId, value: float, at: float) -> None:
        known = self.trials[name]
        step = 1 + (known.progress.step if known.progress else 0)
        # What is older than the sweep tells nothing of its steps.
        sample = Sample(value, step, at, cpu_seconds=at * known.cpu, steps_total=STEPS if at >= 0 else None)
        self.trials[name] = replace(known, progress=merge(known.progress, sample, known.direction))

    def apply(self, proposal: Proposal) -> None:
        action = proposal.action
        known = self.trials[action.trial]
        assert known.phase is Phase.RUNNING
        if isinstance(action, Resize):
            assert action.cpu > 0
            self.trials[action.trial] = replace(known, cpu=action.cpu)
        elif isinstance(action, Stop):
            self.trials[action.trial] = replace(known, phase=Phase.STOPPED, nodes=())
        else:
            assert isinstance(action, Migrate)
            assert known.node is not None
            self.moved.append((action.trial, known.node, action.node))
            self.trials[action.trial] = replace(known, phase=Phase.MOVING, destination=(action.node,))
        self.check()

    def finish_move(self, name: TrialId, *, success: bool) -> None:
        known = self.trials[name]
        if known.phase is not Phase.MOVING:
            return
        where = known.moving_to if success else known.node
        assert where is not None
        self.trials[name] = replace(
            known, phase=Phase.RUNNING, nodes=(where,), destination=(), attempt=known.attempt + 1
        )

    def crash(self, name: TrialId) -> None:
        known = self.trials[name]
        if known.phase is Phase.RUNNING:
            self.trials[name] = replace(known, phase=Phase.PENDING, nodes=())

    def place_pending(self) -> None:
        for name, known in sorted(self.trials.items()):
            roomy = [node for node in self.nodes if self.room(node) >= known.cpu]
            if known.phase is Phase.PENDING and roomy:
                where = (max(roomy, key=self.room),)
                self.trials[name] = replace(known, phase=Phase.RUNNING, nodes=where, attempt=known.attempt + 1)

    def end(self, name: TrialId) -> None:
        if self.trials[name].phase is Phase.RUNNING:
            self.trials[name] = replace(self.trials[name], phase=Phase.SUCCEEDED, nodes=())


def run(policy: Policy[Any], snapshots: Iterable[Snapshot]) -> list[Decision[Any]]:
    """Return the decisions over ``snapshots``, each going on with the state of the one before."""
    state, decisions = policy.initial(), []
    for seen in snapshots:
        decisions.append(policy.decide(seen, state))
        state = decisions[-1].state
    return decisions
