"""FlowCon 1.0: elastic shares on each node (thesis ch. 4.1 and 5.1).

The CPU of a node goes to the trials that turn it into growth. Algorithm 1 sorts the trials of a node into lists and
sets their limits, Algorithm 2 listens for trials that come and go; limits then become requests.
"""

from collections.abc import Mapping
from dataclasses import replace
from operator import attrgetter
from typing import ClassVar

from pydantic import Field

from controllers.core.actions import Action, Decision, Proposal, Resize
from controllers.core.model import Category, NodeName, Snapshot, TrialId
from controllers.core.progress import Normalise
from controllers.policies.flowcon.measuring import FlowConMemo, FlowConState, NodeMemo, measure, recall
from controllers.policies.kit.capacity import Capacity
from controllers.policies.kit.settings import MinChange, MinCpu, PolicySettings, StaleAfter, Threshold
from controllers.policies.kit.shares import SharedNode, shared_node, sharers, shrinks_first

BACK_OFF_CAP = 8
"""How many times the interval the back-off may reach; the thesis doubles without end."""


class FlowConRule(PolicySettings):
    """Splits again what a node's trials asked for: the sum of their requests stays as it was.

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
        trials, capacity = recall(snapshot, state), Capacity.of(snapshot)
        nodes: dict[NodeName, NodeMemo] = {}
        proposals: list[Proposal] = []
        for name, members in sharers(snapshot).items():
            memo = state.nodes.get(name)
            if memo is not None and memo.rests(members, snapshot.now):
                nodes[name] = memo
            else:
                nodes[name], changes = self._visit(shared_node(members, capacity), memo, trials, snapshot.now)
                proposals += changes
        return Decision(
            FlowConState(trials, nodes),
            shrinks_first(proposals, snapshot),
            wake_at=min((node.due_at for node in nodes.values()), default=None),
            assessments=dict(zip(trials, map(attrgetter("assessment"), trials.values()), strict=True)),
        )

    def _visit(
        self, place: SharedNode, memo: NodeMemo | None, trials: dict[TrialId, FlowConMemo], now: float
    ) -> tuple[NodeMemo, list[Proposal]]:
        """Listen (Algorithm 2): a change of the node's trials resets its interval and runs Algorithm 1 now."""
        changed = memo is None or memo.members != place.names
        measured_any = self._measure(place, trials, now)
        interval = self.interval if memo is None or changed else memo.interval
        if all(trials[name].category is Category.CONVERGED for name in place.names):
            interval = min(interval * 2, self.interval * BACK_OFF_CAP)
        after = NodeMemo(place.names, interval, now + interval)
        return after, self._share_out(place, trials) if changed or measured_any else []

    def _measure(self, place: SharedNode, trials: dict[TrialId, FlowConMemo], now: float) -> bool:
        """Update the memos of the node's trials; return whether any has a new measurement."""
        threshold = Threshold(self.alpha, self.normalise, self.stale_after * self.interval)
        before = {trial.id: trials[trial.id] for trial in place.members}
        for trial in place.members:
            trials[trial.id] = measure(trial, before[trial.id], threshold, now)
        return any(trials[name].mark != memo.mark and memo.mark is not None for name, memo in before.items())

    def _share_out(self, place: SharedNode, trials: dict[TrialId, FlowConMemo]) -> list[Proposal]:
        """Set the limits and return the resizes that bring the requests in line with them."""
        caps = limits({name: trials[name] for name in place.names}, self.beta)
        trials.update({name: replace(trials[name], limit=cap) for name, cap in caps.items()})
        requests = place.requests(fair_shares(caps), self.min_change, self.min_cpu)
        proposals: list[Proposal] = []
        for trial in place.members:
            if trial.id in requests:
                memo = trials[trial.id]
                known = memo.efficiency
                efficiency = "not measured yet" if known is None else f"growth efficiency {known:.3g}"
                reason = f"{memo.category}: {efficiency}, limit {memo.limit:.2f} of {trial.node}"
                proposals.append(Proposal(Resize(trial.id, requests[trial.id]), reason))
        return proposals


class FlowCon(FlowConRule):
    """FlowCon's share rule alone: trials stay where the scheduler placed them."""

    name: ClassVar[str] = "flowcon"
    summary: ClassVar[str] = "gives the CPU of a node to the trials that still improve, in place"
    source: ClassVar[str] = "thesis ch. 4.1 and 5.1, Algorithms 1 and 2"
    state_type: ClassVar[type[FlowConState]] = FlowConState
    needs: ClassVar[frozenset[type[Action]]] = frozenset({Resize})
    shares: ClassVar[str] = "by growth efficiency"

    def decide(self, snapshot: Snapshot, state: FlowConState) -> Decision[FlowConState]:
        """Run on every node that is due, or whose trials have changed."""
        return self.share(snapshot, state)


def limits(memos: Mapping[TrialId, FlowConMemo], beta: float) -> dict[TrialId, float]:
    """Return each trial's soft limit as a share of the node (Algorithm 1, lines 14-26).

    A trial that was never measured gets 1, and counts in ``sum G`` as if it grew as efficiently as the
    best trial of the node ever did. All completing: every limit is 1.
    """
    if all(memo.category is Category.CONVERGED for memo in memos.values()):
        return dict.fromkeys(memos, 1.0)
    fastest = max(memo.peak for memo in memos.values())
    guesses = [fastest if memo.efficiency is None else memo.efficiency for memo in memos.values()]
    largest, floor = max(guesses), 1 / (beta * len(memos))
    # Each against the largest first, so that a sum of huge values stays finite.
    total = sum(guess / largest for guess in guesses) if largest > 0 else 0.0
    limit_of: dict[TrialId, float] = {}
    for trial, memo in memos.items():
        if memo.category is Category.WATCHING or memo.stale:
            limit_of[trial] = memo.limit
        elif memo.efficiency is None:
            limit_of[trial] = 1.0
        else:
            limit_of[trial] = max(memo.efficiency / largest / total, floor) if largest > 0 else floor
    return limit_of


def fair_shares(caps: Mapping[TrialId, float]) -> dict[TrialId, float]:
    """Split 1 max-min fairly under ``caps``: nobody can get more without one who has less getting less.

    Caps that sum to less than 1 are scaled up to 1, as what one trial does not use, others may.
    """
    total = sum(caps.values())
    if total <= 1:
        return {trial: cap / total for trial, cap in caps.items()}
    shares: dict[TrialId, float] = {}
    left, waiting = 1.0, len(caps)
    for trial in sorted(caps, key=lambda trial: (caps[trial], trial)):
        shares[trial] = min(caps[trial], left / waiting)
        left, waiting = left - shares[trial], waiting - 1
    return shares
