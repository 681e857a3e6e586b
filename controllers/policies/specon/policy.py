"""SpeCon: send converged trials away from those that still grow (thesis ch. 4.2 and 5.2).

Algorithm 3 (``categories``) categorises, Algorithm 4 (``placement``) places, Algorithm 5 (``rebalance``)
evens out what is left.
"""

from collections.abc import Iterator
from typing import ClassVar, Literal

from pydantic import Field

from controllers.core.model import Action, Assessment, Decision, Migrate, NodeName, Proposal, Snapshot, Trial, TrialId
from controllers.core.policy import CLOCK_SLACK
from controllers.core.progress import Normalise
from controllers.policies.kit.settings import PolicySettings, StaleAfter
from controllers.policies.specon.categories import Threshold, categorised, went_on_declining
from controllers.policies.specon.placement import destination
from controllers.policies.specon.rebalance import rebalance
from controllers.policies.specon.state import MoveKind, SpeConState, TrialMemo, recalled
from controllers.policies.specon.turn import Turn


class SpeCon(PolicySettings):
    """Moves each trial at most once for having converged, and at most once to even out the nodes.

    Trials with several workers are categorised and counted but left where they are.
    """

    name: ClassVar[str] = "specon"
    summary: ClassVar[str] = "moves trials that have converged away from those that still improve quickly"
    source: ClassVar[str] = "thesis ch. 4.2 and 5.2, Algorithms 3-5"
    needs: ClassVar[frozenset[type[Action]]] = frozenset({Migrate})
    moves: ClassVar[str] = "converged trials, to the node of least weight of categories"
    most_moves: ClassVar[int | None] = 2

    alpha: float = Field(
        default=0.01,
        gt=0,
        lt=1,
        description="gain per interval, as a share of all gained so far, that is slow",
    )
    interval: float = Field(default=30.0, gt=0, description="seconds between two categorisations of a trial")
    stale_after: StaleAfter = 2.0
    normalise: Normalise = Field(
        default="range", description="range compares gains over objectives of any unit; none takes the paper's raw |dE|"
    )
    strict: bool = Field(
        default=True, description="move only where the destination, with the trial, scores below the node it leaves"
    )
    rebalance_when: Literal["converged", "migrated"] = Field(
        default="converged",
        description="what every live trial must be before nodes are evened out: the thesis's text says the first, "
        "its listing the second, which trials that no neighbour waits for never become",
    )

    @property
    def state_type(self) -> type[SpeConState]:
        """Type of the state."""
        return SpeConState

    def initial(self) -> SpeConState:
        """Return the state before the first decision."""
        return SpeConState()

    def decide(self, snapshot: Snapshot, state: SpeConState) -> Decision[SpeConState]:
        """Categorise what is due, and ask for the moves that follow."""
        turn = Turn(snapshot, recalled(snapshot, state))
        due = snapshot.now >= state.due_at - CLOCK_SLACK
        declining = self._categorise(turn) if due else ()
        proposals = list(self._migrations(turn, declining))
        if due or state.trials.keys() - turn.memos.keys():
            proposals += self._rebalancing(turn)
        due_at = snapshot.now + self.interval if due else state.due_at
        return Decision(
            SpeConState(due_at, turn.memos),
            tuple(proposals),
            wake_at=due_at if turn.placed else None,
            assessments={trial: Assessment(memo.category, memo.growth) for trial, memo in turn.memos.items()},
        )

    def _categorise(self, turn: Turn) -> tuple[TrialId, ...]:
        """Run Algorithm 3; return the trials that ask for a move."""
        threshold = Threshold(self.alpha, self.normalise, self.stale_after * self.interval)
        steady = [trial for trial, memo in turn.memos.items() if turn.trials[trial].steady and not memo.migrated]
        before = {trial: turn.memos[trial] for trial in steady}
        for trial in steady:
            turn.memos[trial] = categorised(turn.trials[trial], before[trial], threshold, turn.snapshot.now)
        return tuple(trial for trial in steady if went_on_declining(before[trial], turn.memos[trial]))

    def _migrations(self, turn: Turn, declining: tuple[TrialId, ...]) -> Iterator[Proposal]:
        """Serve requests one at a time with Algorithm 4, each after the moves before it."""
        for trial in filter(turn.movable, declining):
            own = turn.trials[trial].node
            if own is None or turn.board.unconverged(own) <= 1:
                continue
            node = destination(turn.board, turn.trials[trial], strict=self.strict)
            if node == own:
                turn.settle(trial)
            elif node is not None:
                reason = self._reason(turn, trial, own, node)
                turn.board.move(trial, node)
                yield turn.ask(trial, MoveKind.CONVERGED, node, reason)

    def _reason(self, turn: Turn, trial: TrialId, own: NodeName, node: NodeName) -> str:
        scores = f"{node} scores {turn.board.score(node):g}, {own} {turn.board.score(own):g}"
        return f"converged: growth {turn.memos[trial].growth:.3g} is below alpha {self.alpha:g} and falling; {scores}"

    def _rebalancing(self, turn: Turn) -> Iterator[Proposal]:
        """Run Algorithm 5 once every live trial has settled."""
        if any(self._settled_at(turn.trials[trial], turn.memos[trial]) is None for trial in turn.placed):
            return
        settled = {trial: self._settled_at(turn.trials[trial], turn.memos[trial]) for trial in turn.placed}
        offered = {
            trial: at
            for trial, at in settled.items()
            if at is not None and turn.movable(trial) and not turn.memos[trial].rebalanced
        }
        for trial, node in rebalance(turn.board, offered):
            reason = f"rebalancing: every trial has converged and {node} has the room"
            yield turn.ask(trial, MoveKind.REBALANCE, node, reason)

    def _settled_at(self, trial: Trial, memo: TrialMemo) -> float | None:
        if memo.migrated or (self.rebalance_when == "migrated" and trial.workers == 1):
            return memo.migrated_at
        return memo.converged_at
