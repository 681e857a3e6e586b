"""Gandiva-like time slices and migration, for comparison: blind to how training goes.

After Xiao et al., "Gandiva: Introspective Cluster Scheduling for Deep Learning", OSDI 2018, whose trials take turns of
about a minute, and move from crowded to emptier servers. Profiling and packing, which need GPUs, are left out, and a
turn is a share here, not a suspension.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

from pydantic import Field

from controllers.core.actions import Action, Decision, Migrate, Proposal, Resize
from controllers.core.model import NodeName, Snapshot, Trial, TrialId
from controllers.core.policy import CLOCK_SLACK
from controllers.policies.comparison.textbook import Rank, in_order
from controllers.policies.kit.capacity import Capacity
from controllers.policies.kit.settings import PolicySettings

LEAST_GAP = 2
"""Trials that a node must have more than another to give it one: with less, they would only change places."""


@dataclass(frozen=True, slots=True)
class GandivaState:
    """Turns begun so far, when the next begins (seconds), and the trials that were asked to move."""

    turn: int = 0
    due_at: float = 0.0
    moved: tuple[TrialId, ...] = ()


class Gandiva(PolicySettings):
    """The trials of a node take turns; at each turn one trial leaves the fullest node, each trial at most once."""

    name: ClassVar[str] = "gandiva"
    summary: ClassVar[str] = "lets the trials of a node take turns and evens out how many each has; blind to progress"
    source: ClassVar[str] = "after Xiao et al., OSDI 2018; for comparison"
    state_type: ClassVar[type[GandivaState]] = GandivaState
    needs: ClassVar[frozenset[type[Action]]] = frozenset({Resize, Migrate})
    shares: ClassVar[str] = "in turns"
    moves: ClassVar[str] = "from the fullest node to the emptiest"
    most_moves: ClassVar[int | None] = 1

    quantum: float = Field(default=60.0, gt=0, description="seconds of a turn")

    def decide(self, snapshot: Snapshot, state: GandivaState) -> Decision[GandivaState]:
        """Begin the next turn where it is due, and keep shares in line with whose turn it is."""
        due = snapshot.now >= state.due_at - CLOCK_SLACK
        turn = state.turn + due
        moves = tuple(_evening(snapshot, state.moved)) if due else ()
        # A move changes who shares a node, so the shares wait for it.
        shares = () if moves else in_order(snapshot, _turns(snapshot, turn), "taking turns")
        asked = {*state.moved, *(proposal.action.trial for proposal in moves)}
        moved = tuple(trial.id for trial in snapshot.unended if trial.id in asked)
        due_at = snapshot.now + self.quantum if due else state.due_at
        live = any(trial.live for trial in snapshot.unended)
        return Decision(GandivaState(turn, due_at, moved), (*moves, *shares), wake_at=due_at if live else None)


def _turns(snapshot: Snapshot, turn: int) -> Rank:
    """Return how many turns each trial waits for its own."""
    members: dict[NodeName, list[Trial]] = {}
    for trial in snapshot.unended:
        if trial.steady and trial.node is not None:
            members.setdefault(trial.node, []).append(trial)
    places: dict[TrialId, int] = {}
    for trials in members.values():
        line = sorted(trials, key=lambda trial: (trial.submitted_at, trial.id))
        places |= {trial.id: (place - turn) % len(line) for place, trial in enumerate(line)}
    return lambda trial: places[trial.id]


def _evening(snapshot: Snapshot, asked: tuple[TrialId, ...]) -> Iterator[Proposal]:
    """Yield the move of one trial from the node with the most trials to the one with the fewest, if that helps."""
    capacity = Capacity.of(snapshot)
    heading = [trial.moving_to or trial.node for trial in snapshot.unended if trial.live]
    counts = {name: heading.count(name) for name, node in capacity.nodes.items() if node.ready}
    movable = [trial for trial in snapshot.unended if trial.whole and trial.id not in asked and trial.node in counts]
    for trial in sorted(movable, key=lambda trial: (-counts[trial.nodes[0]], -trial.submitted_at, trial.id)):
        for node in sorted(counts, key=lambda name: (counts[name], name)):
            if counts[trial.nodes[0]] - counts[node] >= LEAST_GAP and capacity.fits(trial, node):
                reason = f"evening out: {counts[trial.nodes[0]]} trials on {trial.node}, {counts[node]} on {node}"
                yield Proposal(Migrate.to(node, trial), reason)
                return
