"""TRADL: CPU for the trials that are still short of their targets.

After Zheng et al., "Target-based resource allocation for deep learning applications in a multi-tenancy system" (TRADL),
as its abstract and the FlowCon thesis describe it: a trial that has reached its target loss makes room.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

from pydantic import Field

from controllers.core.actions import Action, Decision, Proposal, Resize
from controllers.core.goals import reached
from controllers.core.model import Snapshot, Trial, TrialId
from controllers.core.progress import usable
from controllers.policies.kit.settings import MinChange, MinCpu, PolicySettings, StaleAfter
from controllers.policies.kit.shares import SharedNode, shared_nodes, shrinks_first


@dataclass(frozen=True, slots=True)
class TradlState:
    """Trials that have not ended and have reached their targets, by name."""

    past: tuple[TrialId, ...] = ()


class Tradl(PolicySettings):
    """Two tiers on each node: who is past its target keeps a floor, the others share what that frees.

    They share it as they share the node: by what their authors asked for. A trial without a target is never past it.
    Once all of a node are past theirs, each has again what was asked for.
    """

    name: ClassVar[str] = "tradl"
    summary: ClassVar[str] = "shrinks trials that have reached their targets for those still short of theirs"
    source: ClassVar[str] = "TRADL (abstract); thesis ch. 2"
    state_type: ClassVar[type[TradlState]] = TradlState
    needs: ClassVar[frozenset[type[Action]]] = frozenset({Resize})
    goal: ClassVar[str] = "target"
    shares: ClassVar[str] = "a floor for those past their targets, the rest for the others"

    interval: float = Field(default=20.0, gt=0, description="seconds between two looks at the metrics")
    floor: float = Field(
        default=0.1, gt=0, le=1, description="part of what it asked for that a trial keeps once it is past its target"
    )
    min_change: MinChange = 0.05
    min_cpu: MinCpu = 0.01
    stale_after: StaleAfter = 3.0

    def decide(self, snapshot: Snapshot, state: TradlState) -> Decision[TradlState]:
        """Share out each node by who has reached its target."""
        left = snapshot.unended
        past = {trial.id for trial in left if trial.id in state.past or self._reached(trial, snapshot.now)}
        changes = (proposal for node in shared_nodes(snapshot).values() for proposal in self._changes(node, past))
        return Decision(
            TradlState(tuple(sorted(past))),
            shrinks_first(changes, snapshot),
            wake_at=snapshot.now + self.interval if any(trial.live for trial in left) else None,
        )

    def _reached(self, trial: Trial, now: float) -> bool:
        target, progress = trial.goals.target, usable(trial.progress, now, self.stale_after * self.interval)
        return target is not None and progress is not None and reached(progress.best, target, trial.direction)

    def _changes(self, node: SharedNode, past: set[TrialId]) -> Iterator[Proposal]:
        asked = {trial.id: trial.base_cpu * len(trial.nodes) for trial in node.members}
        here = sorted(past & asked.keys())  # sums of floats depend on their order
        floors = {name: self.floor * asked[name] for name in here} if len(here) < len(asked) else {}
        rest = sum(asked.values()) - sum(floors.values())
        short = sum(asked[name] for name in asked if name not in floors)
        if short <= 0:
            return
        cores = {name: floors.get(name, asked[name] / short * rest) for name in asked}
        parts = {name: of_trial / sum(asked.values()) for name, of_trial in cores.items()}
        for name, cpu in node.requests(parts, self.min_change, self.min_cpu).items():
            reason = "past its target: the others go first" if name in floors else "short of its target"
            yield Proposal(Resize(name, cpu), reason if floors else "all have reached their targets, or none has")
