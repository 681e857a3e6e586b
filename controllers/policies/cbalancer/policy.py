"""C-Balancer: profile how trials contend, and move one where that speeds up the most (Dhumal and Janakiram 2020).

"C-Balancer: A System for Container Profiling and Scheduling", arXiv:2009.08912. Of its profiles and its search for a
placement only the outline is used; the measure of contention and the rule are our own.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import ClassVar

from pydantic import Field

from controllers.core.model import Action, Decision, Migrate, Proposal, Snapshot, TrialId
from controllers.core.policy import CLOCK_SLACK
from controllers.policies.cbalancer.profile import Profile, profiled
from controllers.policies.cbalancer.rule import balancing
from controllers.policies.kit.occupancy import Occupancy
from controllers.policies.kit.settings import PolicySettings
from controllers.policies.kit.single_moves import SingleMoves, answered, headed


@dataclass(frozen=True, slots=True)
class CBalancerState:
    """Profiles of the trials that have not ended, the moves, and when to look again (seconds)."""

    profiles: Mapping[TrialId, Profile] = field(default_factory=dict)
    moves: SingleMoves = field(default_factory=SingleMoves)
    due_at: float = 0.0


class CBalancer(PolicySettings):
    """Every ``interval`` the trials are profiled, and some leave the most contended nodes, each at most once.

    **Profile.** A trial's appetite: the cores that it uses where nothing holds it back, which is when its node is not
    busy (below 95 %) or it leaves part of its fair share unused; until that was seen, all cores of its node. Its wear:
    core seconds of a step now, as a multiple of the least it was ever measured with.

    **Slowdown** of a node: ``max(1, sum of appetites / cores) x mean wear`` of its trials: how many times longer they
    take for being together.

    **Rule.** From the node of greatest slowdown down: of all its trials and all nodes with room, the move after which
    the trials of both nodes are slowed least in sum, if that takes ``least_gain`` off the sum.
    """

    name: ClassVar[str] = "cbalancer"
    summary: ClassVar[str] = "profiles how trials slow each other down, and moves them to where they do so less"
    source: ClassVar[str] = "Dhumal and Janakiram 2020, arXiv:2009.08912 (outline; measure and rule are ours)"
    needs: ClassVar[frozenset[type[Action]]] = frozenset({Migrate})
    moves: ClassVar[str] = "from the most slowed node to where the sum of slowdowns becomes least"
    most_moves: ClassVar[int | None] = 1

    interval: float = Field(default=30.0, gt=0, description="seconds between two profiles of the trials")
    stale_after: float = Field(
        default=2.0, ge=1, description="age in intervals beyond which a report profiles nothing: it came late"
    )
    least_gain: float = Field(
        default=0.1, gt=0, lt=1, description="part of two nodes' slowdown that a move between them must take off"
    )

    @property
    def state_type(self) -> type[CBalancerState]:
        """Type of the state."""
        return CBalancerState

    def initial(self) -> CBalancerState:
        """Return the state before the first decision."""
        return CBalancerState()

    def decide(self, snapshot: Snapshot, state: CBalancerState) -> Decision[CBalancerState]:
        """Profile and balance where that is due."""
        due = snapshot.now >= state.due_at - CLOCK_SLACK
        moves = answered(snapshot, state.moves)
        left = {trial.id for trial in snapshot.trials if not trial.phase.ended}
        profiles = {name: profile for name, profile in state.profiles.items() if name in left}
        proposals = []
        if due:
            profiles = profiled(snapshot, profiles, self.stale_after * self.interval)
            occupancy = Occupancy.of(headed(snapshot, moves), {})
            for move, reason in balancing(occupancy, profiles, moves, self.least_gain):
                proposals.append(Proposal(move, reason))
                moves = moves.with_asked(occupancy.ledger.trials[move.trial], move.node)
        due_at = snapshot.now + self.interval if due else state.due_at
        live = any(trial.live for trial in snapshot.trials)
        return Decision(CBalancerState(profiles, moves, due_at), tuple(proposals), due_at if live else None)
