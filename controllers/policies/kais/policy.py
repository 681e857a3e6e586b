"""KaiS's two time scales with a network that was trained in the project's simulator.

After "KaiS: learned dispatch and orchestration" as its abstract tells it: a graph network embeds a system of any size,
requests are dispatched at once, and services are orchestrated now and then. Here a request is a trial's first attempt,
and the orchestration are moves and shares. How the network is made and trained is our own.
"""

from typing import TYPE_CHECKING, Any, ClassVar

from pydantic import Field

from controllers.core.actions import Action, Assessment, Decision, Migrate, Place, Proposal, Resize
from controllers.core.model import NodeName, Snapshot, TrialId
from controllers.core.policy import CLOCK_SLACK
from controllers.policies.kais.state import MOST_MOVES, KaisState, LookSettings
from controllers.policies.kit.arrivals import with_submissions
from controllers.policies.kit.capacity import reconcile
from controllers.policies.kit.measured_trials import MeasuredNode
from controllers.policies.kit.places import still_starting, with_places
from controllers.policies.kit.settings import MinChange, MinCpu, PolicySettings, StaleAfter
from controllers.policies.kit.work_left import SweepMeasurements, measure_sweep

if TYPE_CHECKING:
    from controllers.policies.kais.choosing import Chooser
    from controllers.policies.kais.weights import Trained


class Kais(PolicySettings):
    """Places, moves and shares by the scores of a small network that was trained on simulated sweeps.

    **Placement**, the fast scale. Each first attempt goes, as soon as it fits somewhere, to the node that scores most.

    **Moves and shares**, the slow scale. At each interval every possible move is scored against staying, and every
    node gets the way to share it that scores most.

    Gangs, trials with devices, and clusters unlike those of the training are left to the default scheduler.

    Raises:
        BadWeightsError: The file of weights is not the one that this code was trained for.
    """

    name: ClassVar[str] = "kais"
    summary: ClassVar[str] = "a small network, trained on simulated sweeps, scores places, moves and ways to share"
    source: ClassVar[str] = "after KaiS (abstract)"
    state_type: ClassVar[type[KaisState]] = KaisState
    needs: ClassVar[frozenset[type[Action]]] = frozenset({Place, Resize, Migrate})
    placement: ClassVar[str] = "the node that a trained network scores most"
    shares: ClassVar[str] = "of five ways to share a node, the one that it scores most"
    moves: ClassVar[str] = "those that it scores more than to stay"
    most_moves: ClassVar[int | None] = MOST_MOVES

    interval: float = Field(default=10.0, gt=0, description="seconds between two looks for moves and shares")
    stale_after: StaleAfter = 6.0
    min_change: MinChange = 0.05
    min_cpu: MinCpu = 0.01

    def model_post_init(self, context: Any, /) -> None:  # noqa: ANN401, ARG002 - pydantic's shape
        """Refuse a bad file of weights before anything runs."""
        self._trained()

    def decide(self, snapshot: Snapshot, state: KaisState) -> Decision[KaisState]:
        """Measure, place what waits, and where a look is due or a node has changed, move and share."""
        known = measure_sweep(snapshot, state.measured)
        asked = state.moves.answered(snapshot)
        starting = still_starting(snapshot, state.starting)
        submitted = with_submissions(state.submitted, snapshot)
        due = snapshot.now >= state.due_at - CLOCK_SLACK
        changed = _other_trials(state.measured, known)
        next_state = KaisState(known, starting, asked, submitted, snapshot.now + self.interval if due else state.due_at)
        live = any(trial.live for trial in snapshot.unended)
        wake_at = next_state.due_at if live else None
        if not (due or changed or any(trial.waits for trial in snapshot.unended)):
            return Decision(next_state, wake_at=wake_at)
        wishes, guessed = self._wishes(snapshot, next_state, changed, due=due)
        kept, vetoed = reconcile(wishes, snapshot)
        for proposal in kept:
            if isinstance(proposal.action, Migrate):
                asked = asked.with_asked(snapshot.named[proposal.action.trial], proposal.action.node)
        after = KaisState(known, with_places(starting, kept), asked, submitted, next_state.due_at)
        return Decision(after, kept, wake_at, guessed, vetoed)

    def _wishes(
        self, snapshot: Snapshot, state: KaisState, changed: set[NodeName], *, due: bool
    ) -> tuple[list[Proposal], dict[TrialId, Assessment]]:
        """Return what the network wants, and what it goes by of trials whose length is not known."""
        from controllers.policies.kais.wanting import wishes  # noqa: PLC0415 - controllers of other policies need no numpy

        settings = LookSettings(self.stale_after * self.interval, self.min_change, self.min_cpu)
        return wishes(settings, self._trained(), self._chooser(), snapshot, state, changed, due=due)

    def _trained(self) -> "Trained":
        """Return the network; training puts another in its place."""
        from controllers.policies.kais.weights import read  # noqa: PLC0415 - as in _wishes

        return read()

    def _chooser(self) -> "Chooser":
        """Return what chooses by scores; training puts another in its place."""
        from controllers.policies.kais.choosing import BEST  # noqa: PLC0415 - as in _wishes

        return BEST


def _other_trials(before: SweepMeasurements, after: SweepMeasurements) -> set[NodeName]:
    """Return the nodes whose trials are not those that they were."""
    nothing = MeasuredNode()
    return {
        name
        for name, node in after.nodes.items()
        if (old := before.nodes.get(name, nothing)) is not node
        and [trial for trial, _ in old.requests] != [trial for trial, _ in node.requests]
    }
