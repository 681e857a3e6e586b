"""First attempts that wait for a place get one: the node they are pinned to, or the default scheduler's choice."""

from collections.abc import Callable, Mapping
from typing import Any

from pydantic import BaseModel, ConfigDict, SkipValidation

from controllers.core.model import Action, Decision, Node, NodeName, Phase, Place, Proposal, Snapshot, Trial, TrialId
from controllers.core.policy import Policy


class Pinned(BaseModel):
    """Lets every gated first attempt start, each where ``first_nodes`` says, and leaves the rest to ``policy``.

    The thesis compares two runs from the same initial placement; this repeats that of an earlier run. A trial
    that is not named, or whose node is not there, not ready or too small for it, goes where the default scheduler
    puts it. Only for a node that the campaign's other trials fill for now does a trial wait, as it did in the run that
    is repeated; so none waits for ever.

    A policy that needs ``Place`` decides itself when and where a trial that is not named starts: it may hold it back.

    Wraps the guards as well: the pin is what its owner asked for, and world and kube-scheduler keep to capacity.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", arbitrary_types_allowed=True)

    policy: SkipValidation[Policy[Any]]
    first_nodes: Mapping[str, str] = {}
    short: Callable[[TrialId], str] = str
    """Gives the id of a trial that is the same in every run of its sweep; ``first_nodes`` is by that."""

    @property
    def name(self) -> str:
        """Name of the policy within."""
        return self.policy.name

    @property
    def needs(self) -> frozenset[type[Action]]:
        """What the policy within needs: a world that gates no first attempt needs no ``Place`` either."""
        return self.policy.needs

    @property
    def state_type(self) -> type[Any]:
        """Type of the state of the policy within."""
        return self.policy.state_type

    def initial(self) -> Any:  # noqa: ANN401 - each policy has its own state
        """Return the state of the policy within before the first decision."""
        return self.policy.initial()

    def decide(self, snapshot: Snapshot, state: Any) -> Decision[Any]:  # noqa: ANN401 - as above
        """Ask the policy within, then place what waits: a pin goes before what that policy wants for the trial."""
        within = self.policy.decide(snapshot, state)
        placed = {proposal.action.trial for proposal in within.proposals if isinstance(proposal.action, Place)}
        admits = Place in self.policy.needs
        left = [
            trial
            for trial in snapshot.trials
            if waits(trial) and not ((admits or trial.id in placed) and self._free(trial))
        ]
        nodes = {node.name: node for node in snapshot.nodes}
        ours = [self._placing(trial, nodes) for trial in left]
        chosen = {proposal.action.trial for proposal in ours}
        theirs = [proposal for proposal in within.proposals if proposal.action.trial not in chosen]
        return Decision(
            state=within.state,
            proposals=(*ours, *theirs),
            wake_at=within.wake_at,
            assessments=within.assessments,
            vetoed=within.vetoed,
        )

    def _free(self, trial: Trial) -> bool:
        return self.short(trial.id) not in self.first_nodes

    def _placing(self, trial: Trial, nodes: Mapping[NodeName, Node]) -> Proposal:
        wanted = self.first_nodes.get(self.short(trial.id))
        if wanted is None:
            return Proposal(Place(trial.id), "its first attempt waits for a place, and none was chosen for it")
        problem = _problem(trial, nodes.get(NodeName(wanted)))
        if problem:
            return Proposal(Place(trial.id), f"its first node {wanted!r} {problem}")
        return Proposal(Place(trial.id, NodeName(wanted)), "its first node was chosen by its owner")


def waits(trial: Trial) -> bool:
    """Return whether the trial's first attempt is held until it has a place."""
    return trial.gated and trial.phase is Phase.PENDING


def _problem(trial: Trial, node: Node | None) -> str | None:
    if node is None:
        return "is not there"
    if not node.ready:
        return "is not ready"
    fits = trial.base_cpu * trial.workers <= node.cpu and trial.memory * trial.workers <= node.memory
    return None if fits else "is too small for it"
