"""A policy that has one gang grow and shrink by a script."""

from typing import Any, ClassVar

from pydantic import Field

from controllers.core.actions import Action, Decision, Migrate, Place, Proposal
from controllers.core.model import NodeName, Snapshot, Trial
from controllers.policies.kit.settings import NoState, Stateless

GROWS, SHRINKS = 40, 90
"""Steps from which on the trial shall have 3 workers, and 2."""


class Scripted(Stateless):
    """Grows and shrinks each gang as ``sizes`` says: from which step on it shall be on which nodes, by step."""

    name: ClassVar[str] = "scripted"
    summary: ClassVar[str] = "grows and shrinks a gang by a script"
    source: ClassVar[str] = "made to measure and to test"
    needs: ClassVar[frozenset[type[Action]]] = frozenset({Place, Migrate})

    sizes: Any = Field(exclude=True, default=())

    def decide(self, snapshot: Snapshot, state: NoState) -> Decision[NoState]:
        """Want what the script says."""
        wanted = (proposal for trial in snapshot.unended if (proposal := self._wish(trial)) is not None)
        return Decision(state, tuple(wanted), wake_at=snapshot.now + 1)

    def _wish(self, trial: Trial) -> Proposal | None:
        made = trial.progress.step if trial.progress else 0
        nodes: tuple[NodeName, ...]
        step, nodes = [(at, nodes) for at, nodes in self.sizes if made >= at][-1]
        if trial.waits:
            return Proposal(Place(trial.id, nodes), f"at step {step}")
        if trial.steady and trial.nodes != nodes:
            return Proposal(Migrate(trial.id, nodes), f"at step {step}")
        return None
