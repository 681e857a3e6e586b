"""ProCon: place by the contention that each node's trials will still cause (Fu et al., IEEE Big Data 2019).

"Progress-based Container Scheduling for Short-lived Applications in a Kubernetes Cluster". It places and never moves.
"""

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import ClassVar

from pydantic import Field

from controllers.core.actions import Action, Assessment, Decision, Place
from controllers.core.model import Node, NodeName, Snapshot, Trial, TrialId
from controllers.core.policy import CLOCK_SLACK
from controllers.policies.kit.occupancy import Occupancy
from controllers.policies.kit.paces import StepMemo, time_steps
from controllers.policies.kit.places import places, still_starting, with_places
from controllers.policies.kit.settings import PolicySettings

UNTOLD = (
    "taken for an average trial: it never said how many steps it makes; use trial().steps(total) or log "
    "specon.steps_total"
)


@dataclass(frozen=True, slots=True)
class ProConState:
    """Step times of the trials that have not ended, where those were placed that have yet to start, the next look."""

    times: Mapping[TrialId, StepMemo] = field(default_factory=dict)
    starting: Mapping[TrialId, NodeName] = field(default_factory=dict)
    due_at: float = 0.0


class ProCon(PolicySettings):
    """A new trial goes to the node of least ``sum of P x number of trials``.

    ``P_j = (t_j / U_j) x left_j``: seconds of a step of trial j on average over the last interval, by the part of its
    node's cores that it used meanwhile, times the steps that it has left. Ours: a trial that was not measured yet, or
    never said how many steps it makes, has the mean P of those that are known, or 1 where none is; so an empty node
    always comes first, and before anything is measured the node with the fewest trials.
    """

    name: ClassVar[str] = "procon"
    summary: ClassVar[str] = "starts every trial on the node whose trials will still contend the least; never moves one"
    source: ClassVar[str] = "Fu et al., IEEE Big Data 2019"
    state_type: ClassVar[type[ProConState]] = ProConState
    needs: ClassVar[frozenset[type[Action]]] = frozenset({Place})
    placement: ClassVar[str] = "least remaining contention, as predicted from step times and steps left"

    interval: float = Field(default=20.0, gt=0, description="seconds between two measurements of the step times")
    stale_after: float = Field(
        default=2.0, ge=1, description="age in intervals beyond which a report measures nothing: it came late"
    )

    def decide(self, snapshot: Snapshot, state: ProConState) -> Decision[ProConState]:
        """Measure where that is due, and place what waits."""
        due = snapshot.now >= state.due_at - CLOCK_SLACK
        left = {trial.id: trial for trial in snapshot.unended}
        times = {name: memo for name, memo in state.times.items() if name in left}
        if due:
            times = time_steps(snapshot, times, self.stale_after * self.interval)
        starting = still_starting(snapshot, state.starting)
        expected = contention(snapshot, times)

        def because(node: Node, cost: float) -> str:
            return f"placing: {node.name} has the least contention to come ({cost:.3g})"

        proposals = tuple(places(snapshot, Occupancy.of(snapshot, starting), expected.cost, because))
        due_at = snapshot.now + self.interval if due else state.due_at
        untold = [name for name, trial in left.items() if trial.progress and trial.progress.steps_total is None]
        return Decision(
            ProConState(times, with_places(starting, proposals), due_at),
            proposals,
            due_at if any(trial.live for trial in left.values()) else None,
            {name: Assessment(outlook=UNTOLD) for name in untold},
        )


@dataclass(frozen=True, slots=True)
class Contention:
    """P of each trial that it is known of, and of any other."""

    known: Mapping[TrialId, float]
    other: float

    def cost(self, node: Node, trials: Sequence[Trial]) -> float:  # noqa: ARG002 - NodeCost's shape
        """Return the cost of a node with these trials."""
        return sum(self.known.get(trial.id, self.other) for trial in trials) * len(trials)


def contention(snapshot: Snapshot, times: Mapping[TrialId, StepMemo]) -> Contention:
    """Return what each trial will still contend, by its newest step time."""
    cores = {node.name: node.cpu for node in snapshot.nodes}
    known: dict[TrialId, float] = {}
    for trial in snapshot.unended:
        total = trial.progress.steps_total if trial.progress is not None else None
        there = cores.get(trial.node, 0.0) if trial.node is not None else 0.0
        latest = times.get(trial.id, StepMemo()).latest
        if latest is not None and trial.progress is not None and total is not None and there:
            used = min(1.0, latest.cores / there)
            known[trial.id] = latest.seconds / used * max(0, total - trial.progress.step)
    return Contention(known, statistics.fmean(known.values()) if known else 1.0)
