"""Gangs admitted whole and never scaled, for comparison: in strict order, and as Volcano does."""

from typing import ClassVar

from controllers.core.actions import Action, Decision, Place, Proposal
from controllers.core.model import Snapshot
from controllers.policies.kit.capacity import Capacity
from controllers.policies.kit.places import waiting
from controllers.policies.kit.settings import NoState, Stateless


class GangFifo(Stateless):
    """Starts trials strictly in order, each with all its workers: who does not fit holds up the others."""

    name: ClassVar[str] = "gang-fifo"
    summary: ClassVar[str] = "starts trials strictly in order, each with all its workers or not at all; scales none"
    source: ClassVar[str] = "a textbook's; for comparison"
    needs: ClassVar[frozenset[type[Action]]] = frozenset({Place})
    placement: ClassVar[str] = "all workers of the first in line near each other, or nobody starts"
    holds_up: ClassVar[bool] = True

    def decide(self, snapshot: Snapshot, state: NoState) -> Decision[NoState]:
        """Place what waits, in the order of submission."""
        capacity = Capacity.of(snapshot)
        proposals: list[Proposal] = []
        for trial in sorted(waiting(snapshot), key=lambda trial: (trial.submitted_at, trial.id)):
            nodes = capacity.gathered(trial, capacity.most_workers(trial))
            if nodes:
                place = Place(trial.id, nodes)
                capacity.apply(place)
                proposals.append(Proposal(place, f"its {len(nodes)} workers fit together"))
            elif self.holds_up:
                break
        return Decision(state, tuple(proposals))


class Volcano(GangFifo):
    """Starts trials as they were submitted, each with all its workers; who does not fit is passed over.

    What Volcano's actions and plugins do by default for jobs of one priority: ``allocate`` goes through the jobs in
    order, and its plugin ``gang`` lets a job start only with all its members. Nobody reserves room for a large one.
    """

    name: ClassVar[str] = "volcano"
    summary: ClassVar[str] = "starts each trial with all its workers as soon as they fit; scales none"
    source: ClassVar[str] = "Volcano's gang plugin (volcano.sh), as we read it; for comparison"
    placement: ClassVar[str] = "all workers near each other; trials that do not fit are passed over"
    holds_up: ClassVar[bool] = False
