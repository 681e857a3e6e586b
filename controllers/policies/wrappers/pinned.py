"""First attempts that wait for a place get one: the node they are pinned to, or the default scheduler's choice."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from controllers.core.actions import Decision, Place, Proposal
from controllers.core.model import Node, NodeName, Phase, Snapshot, Trial, TrialId
from controllers.policies.kit.capacity import Capacity, request_shape
from controllers.policies.kit.places import nodes_placed_on, waiting, with_room
from controllers.policies.wrappers.wrapper import AroundOne


class Pinned(AroundOne):
    """Lets every gated first attempt start, each where ``first_nodes`` says, and leaves the rest to ``policy``.

    The thesis compares two runs from the same initial placement; this repeats that of an earlier run. A trial
    that is not named, or whose node is not there, not ready or too small for it, goes where the default scheduler
    puts it. Only for a node that the campaign's other trials fill for now does a trial wait, as it did in the run that
    is repeated. These trials end, so it starts at some time.

    A trial that a search gives its hyperparameters starts only where there is room: the later it is asked, the more the
    search knows.

    A policy that needs ``Place`` decides itself when and where a trial that is not named starts: it may hold it back.
    Under any other, what an earlier policy suspended goes on: no other part would ever start it again.

    A gang starts with all its workers at once, near each other, as soon as they have room. Only under a policy that
    does nothing at all is it left to the default scheduler, which places pod by pod.

    Wraps the guards as well: the pin is what its owner asked for, and world and kube-scheduler keep to capacity.
    Its needs are those of the policy within: a world that gates no first attempt needs no ``Place`` for the pins.
    """

    first_nodes: Mapping[str, str] = {}
    short: Callable[[TrialId], str] = str
    """Gives the id of a trial that is the same in every run of its sweep; ``first_nodes`` is by that."""

    def decide(self, snapshot: Snapshot, state: Any) -> Decision[Any]:  # noqa: ANN401 - each policy has its own state
        """Ask the policy within, then place what waits: a pin goes before what that policy wants for the trial."""
        wanted = self.policy.decide(snapshot, state)
        places = nodes_placed_on(wanted.proposals)
        decides_itself = Place in self.policy.needs
        nodes = {node.name: node for node in snapshot.nodes}
        left: list[Trial] = []
        for trial in waiting(snapshot):
            pinned = trial.phase is Phase.PENDING and self.short(trial.id) in self.first_nodes
            if pinned or not (decides_itself or trial.id in places):
                left.append(trial)
        asking = [trial for trial in left if trial.search and not trial.parameters]
        held_back = {trial.id for trial in with_room(snapshot, asking)[1]} if asking else set()
        ours = {trial.id: self._placing(trial, nodes) for trial in left if trial.id not in held_back}
        if self.policy.needs:
            ours = _whole(ours, snapshot)
        theirs = (proposal for proposal in wanted.proposals if proposal.action.trial not in ours)
        return replace(wanted, proposals=(*ours.values(), *theirs))

    def _placing(self, trial: Trial, nodes: Mapping[NodeName, Node]) -> Proposal:
        if trial.phase is Phase.SUSPENDED:
            return Proposal(Place(trial.id), "it was suspended, and this policy suspends no trial")
        wanted = self.first_nodes.get(self.short(trial.id))
        if wanted is None:
            return Proposal(Place(trial.id), "its first attempt waits for a place, and none was chosen for it")
        problem = _problem(trial, nodes.get(NodeName(wanted)))
        if problem:
            return Proposal(Place(trial.id), f"its first node {wanted!r} {problem}")
        node = NodeName(wanted)
        # Under a policy that acts on nothing, nobody finds nodes for the other workers of a gang.
        place = Place.on(node, trial) if self.policy.needs else Place(trial.id, (node,) * trial.workers)
        return Proposal(place, "its first node was chosen by its owner")


def _whole(proposals: Mapping[TrialId, Proposal], snapshot: Snapshot) -> dict[TrialId, Proposal]:
    """Return ``proposals`` with a node for each worker of a gang, and without gangs that find no room together."""
    capacity, whole = Capacity.of(snapshot), dict[TrialId, Proposal]()
    for name, proposal in proposals.items():
        action = capacity.completed(proposal.action)
        if action is not None:
            capacity.apply(action)
            whole[name] = replace(proposal, action=action)
    return whole


def _problem(trial: Trial, node: Node | None) -> str | None:
    if node is None:
        return "is not there"
    if not node.ready:
        return "is not ready"
    cpu, memory, devices, may_use = request_shape(trial)
    if may_use is not None and node.name not in may_use:
        return "is none that its selectors, affinity and tolerations let it use"
    if cpu > node.cpu or memory > node.memory:
        return "is too small for it"
    if not devices.within(node.devices):
        return f"does not have {devices}"
    return None if node.only_for <= devices.kinds() else f"takes only trials with {', '.join(sorted(node.only_for))}"
