"""FlowCon's share rule: the CPU of a node goes to the trials that turn it into growth (thesis ch. 4.1 and 5.1).

Algorithm 1 sorts the trials of a node into lists and sets their limits, Algorithm 2 listens for trials
that come and go. ``shares`` turns limits into requests.
"""

from dataclasses import replace

from pydantic import Field

from controllers.core.model import (
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
from controllers.core.policy import CLOCK_SLACK
from controllers.core.progress import Normalise
from controllers.policies.flowcon.shares import fair_shares, limits
from controllers.policies.flowcon.state import FlowConState, Measure, NodeMemo, TrialMemo, measured, recalled
from controllers.policies.kit.node_shares import NodeShares, node_shares, shrinks_first
from controllers.policies.kit.settings import MinChange, MinCpu, PolicySettings, StaleAfter

BACK_OFF_CAP = 8
"""How many times the interval the back-off may reach; the thesis doubles without end."""


class FlowConRule(PolicySettings):
    """Splits what a node's trials asked for anew: the sum of their requests stays as it was.

    The lists New, Watching and Completing are the categories. A trial that comes from another node keeps
    its list: its training goes on. Trials with workers on several nodes keep what they have.
    """

    alpha: float = Field(
        default=0.05, gt=0, lt=1, description="share of a trial's own best growth efficiency below which it is slow"
    )
    interval: float = Field(default=20.0, gt=0, description="seconds between two runs on a node, before any back-off")
    beta: float = Field(default=2.0, ge=1, description="the least limit of n trials is 1 / (beta n) of the node")
    stale_after: StaleAfter = 2.0
    min_change: MinChange = 0.05
    min_cpu: MinCpu = 0.01
    normalise: Normalise = Field(
        default="range", description="range compares gains over objectives of any unit; none takes the paper's raw |dE|"
    )

    def share(self, snapshot: Snapshot, state: FlowConState) -> Decision[FlowConState]:
        """Run on every node that is due, or whose trials have changed."""
        trials = recalled(snapshot, state)
        nodes: dict[NodeName, NodeMemo] = {}
        proposals: list[Proposal] = []
        for name, place in node_shares(snapshot).items():
            nodes[name], changes = self._visit(place, state.nodes.get(name), trials, snapshot.now)
            proposals += changes
        return Decision(
            FlowConState(trials, nodes),
            shrinks_first(proposals, snapshot),
            wake_at=min((node.due_at for node in nodes.values()), default=None),
            assessments={trial: Assessment(memo.category, memo.growth) for trial, memo in trials.items()},
        )

    def _visit(
        self, place: NodeShares, memo: NodeMemo | None, trials: dict[TrialId, TrialMemo], now: float
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

    def _measure(self, place: NodeShares, trials: dict[TrialId, TrialMemo], now: float) -> bool:
        """Update the memos of the node's trials; return whether any has a new measurement."""
        measure = Measure(self.alpha, self.normalise, self.stale_after * self.interval)
        before = {trial.id: trials[trial.id] for trial in place.members}
        for trial in place.members:
            trials[trial.id] = measured(trial, before[trial.id], measure, now)
        return any(trials[name].mark != memo.mark and memo.mark is not None for name, memo in before.items())

    def _share_out(self, place: NodeShares, trials: dict[TrialId, TrialMemo]) -> list[Proposal]:
        """Set the limits and return the resizes that bring the requests in line with them."""
        caps = limits({name: trials[name] for name in place.names}, self.beta)
        trials.update({name: replace(trials[name], limit=cap) for name, cap in caps.items()})
        requests = place.requests(fair_shares(caps), self.min_change, self.min_cpu)
        return [
            self._proposal(trial, requests[trial.id], trials[trial.id])
            for trial in place.members
            if trial.id in requests
        ]

    def _proposal(self, trial: Trial, cpu: float, memo: TrialMemo) -> Proposal:
        efficiency = "not measured yet" if memo.efficiency is None else f"growth efficiency {memo.efficiency:.3g}"
        reason = f"{memo.category}: {efficiency}, limit {memo.limit:.2f} of {trial.node}"
        return Proposal(Resize(trial.id, cpu), reason)
