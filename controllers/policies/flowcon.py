"""FlowCon: give the CPU of a node to the trials that turn it into growth (thesis ch. 4.1 and 5.1).

Algorithm 1 sorts the trials of a node into lists and sets their limits, Algorithm 2 listens for trials
that come and go. ``flowcon_shares`` turns limits into requests.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import ClassVar

from pydantic import Field

from controllers.model import (
    Action,
    Assessment,
    Category,
    Decision,
    NodeName,
    Proposal,
    Resize,
    Snapshot,
    Trial,
    TrialId,
)
from controllers.policies.capacity import Ledger
from controllers.policies.flowcon_shares import fair_shares, limits, settled
from controllers.policies.flowcon_state import FlowConState, Measure, NodeMemo, TrialMemo, measured, recalled
from controllers.policies.settings import PolicySettings
from controllers.progress import Normalise

BACK_OFF_CAP = 8
"""How many times the interval the back-off may reach; the thesis doubles without end."""
CLOCK_SLACK = 1e-6
"""Seconds by which a wake-up may be early: sums of intervals are not exact."""


@dataclass(frozen=True, slots=True)
class _Place:
    """A node and its trials that may be resized."""

    node: NodeName
    members: tuple[Trial, ...]
    ledger: Ledger

    @property
    def budget(self) -> float:
        """Cores that are theirs to share."""
        asked = sum(trial.base_cpu * len(trial.nodes) for trial in self.members)
        others = self.ledger.requested(self.node) - sum(trial.cpu * len(trial.nodes) for trial in self.members)
        return max(0.0, min(asked, self.ledger.nodes[self.node].cpu - others))

    @property
    def names(self) -> tuple[TrialId, ...]:
        return tuple(trial.id for trial in self.members)


class FlowCon(PolicySettings):
    """Splits what a node's trials asked for anew: the sum of their requests stays as it was.

    The lists New, Watching and Completing are the categories. A trial that comes from another node keeps
    its list: its training goes on. Trials with workers on several nodes keep what they have.
    """

    name: ClassVar[str] = "flowcon"
    summary: ClassVar[str] = "gives the CPU of a node to the trials that still improve, in place"
    source: ClassVar[str] = "thesis ch. 4.1 and 5.1, Algorithms 1 and 2"
    needs: ClassVar[frozenset[type[Action]]] = frozenset({Resize})

    alpha: float = Field(
        default=0.05, gt=0, lt=1, description="share of a trial's own best growth efficiency below which it is slow"
    )
    interval: float = Field(default=20.0, gt=0, description="seconds between two runs on a node, before any back-off")
    beta: float = Field(default=2.0, ge=1, description="the least limit of n trials is 1 / (beta n) of the node")
    stale_after: float = Field(
        default=2.0, ge=1, description="age in intervals beyond which a report decides nothing: it came late"
    )
    min_change: float = Field(
        default=0.05, ge=0, lt=1, description="least change of a request that is worth making, as a share of it"
    )
    min_cpu: float = Field(default=0.01, gt=0, description="least request of a worker in cores, so that it never stops")
    normalise: Normalise = Field(
        default="range", description="range compares gains over objectives of any unit; none takes the paper's raw |dE|"
    )

    @property
    def state_type(self) -> type[FlowConState]:
        """Type of the state."""
        return FlowConState

    def initial(self) -> FlowConState:
        """Return the state before the first decision."""
        return FlowConState()

    def decide(self, snapshot: Snapshot, state: FlowConState) -> Decision[FlowConState]:
        """Run on every node that is due, or whose trials have changed."""
        trials = recalled(snapshot, state)
        nodes: dict[NodeName, NodeMemo] = {}
        proposals: list[Proposal] = []
        for name, place in _places(snapshot).items():
            nodes[name], changes = self._visit(place, state.nodes.get(name), trials, snapshot.now)
            proposals += changes
        return Decision(
            FlowConState(trials, nodes),
            _shrinks_first(proposals, snapshot),
            wake_at=min((node.due_at for node in nodes.values()), default=None),
            assessments={trial: Assessment(memo.category, memo.growth) for trial, memo in trials.items()},
        )

    def _visit(
        self, place: _Place, memo: NodeMemo | None, trials: dict[TrialId, TrialMemo], now: float
    ) -> tuple[NodeMemo, list[Proposal]]:
        """Listen (Algorithm 2): a change of the node's trials resets its interval and runs Algorithm 1 now."""
        changed = memo is None or memo.members != place.names
        if memo is not None and not changed and now < memo.due_at - CLOCK_SLACK:
            return memo, []
        measured_any = self._measure(place, trials, now)
        interval = self.interval if memo is None or changed else memo.interval
        if all(trials[name].category is Category.CONVERGED for name in place.names):
            interval = min(interval * 2, self.interval * BACK_OFF_CAP)
        after = NodeMemo(place.names, interval, now + interval)
        return after, self._share_out(place, trials) if changed or measured_any else []

    def _measure(self, place: _Place, trials: dict[TrialId, TrialMemo], now: float) -> bool:
        """Update the memos of the node's trials; return whether any has a new measurement."""
        measure = Measure(self.alpha, self.normalise, self.stale_after * self.interval)
        before = {trial.id: trials[trial.id] for trial in place.members}
        for trial in place.members:
            trials[trial.id] = measured(trial, before[trial.id], measure, now)
        return any(trials[name].mark != memo.mark and memo.mark is not None for name, memo in before.items())

    def _share_out(self, place: _Place, trials: dict[TrialId, TrialMemo]) -> list[Proposal]:
        """Set the limits and return the resizes that bring the requests in line with them."""
        caps = limits({name: trials[name] for name in place.names}, self.beta)
        trials.update({name: replace(trials[name], limit=cap) for name, cap in caps.items()})
        shares = fair_shares(caps)
        now = {trial.id: trial.cpu * len(trial.nodes) for trial in place.members}
        budget = place.budget
        wanted = {trial.id: self._wanted(trial, shares[trial.id] * budget) for trial in place.members}
        granted = settled(now, wanted, budget)
        return [
            self._proposal(trial, granted[trial.id] / len(trial.nodes), trials[trial.id])
            for trial in place.members
            if self._worth_it(trial, granted[trial.id] / len(trial.nodes))
        ]

    def _wanted(self, trial: Trial, cpu: float) -> float:
        """Return the cores of all workers: as many as ``cpu`` where that is a change worth making."""
        workers = len(trial.nodes)
        each = max(cpu / workers, self.min_cpu)
        return each * workers if self._worth_it(trial, each) else trial.cpu * workers

    def _worth_it(self, trial: Trial, cpu: float) -> bool:
        return cpu != trial.cpu and abs(cpu - trial.cpu) >= self.min_change * trial.cpu

    def _proposal(self, trial: Trial, cpu: float, memo: TrialMemo) -> Proposal:
        efficiency = "not measured yet" if memo.efficiency is None else f"growth efficiency {memo.efficiency:.3g}"
        reason = f"{memo.category}: {efficiency}, limit {memo.limit:.2f} of {trial.node}"
        return Proposal(Resize(trial.id, cpu), reason)


def _places(snapshot: Snapshot) -> Mapping[NodeName, _Place]:
    """Return the nodes that have trials to resize, by name."""
    ledger = Ledger.of(snapshot)
    members: dict[NodeName, list[Trial]] = {}
    for trial in snapshot.unended:
        if trial.steady and trial.nodes.count(trial.nodes[0]) == len(trial.nodes) and trial.nodes[0] in ledger.nodes:
            members.setdefault(trial.nodes[0], []).append(trial)
    return {name: _Place(name, tuple(members[name]), ledger) for name in sorted(members)}


def _shrinks_first(proposals: list[Proposal], snapshot: Snapshot) -> tuple[Proposal, ...]:
    """Return ``proposals`` in an order that never asks for more of a node than it ends up with."""
    now = {trial.id: trial.cpu for trial in snapshot.unended}
    return tuple(
        sorted(
            proposals,
            key=lambda proposal: (
                isinstance(proposal.action, Resize) and proposal.action.cpu > now[proposal.action.trial]
            ),
        )
    )
