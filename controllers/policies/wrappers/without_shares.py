"""A policy where no share of a running trial can be changed: all else that it wants is done."""

from dataclasses import replace
from typing import Any

from controllers.core.actions import Action, Decision, Resize
from controllers.core.model import Snapshot
from controllers.policies.wrappers.wrapper import AroundOne


class WithoutShares(AroundOne):
    """Holds back every change of a share that ``policy`` wants, since none can be made; ``why`` says why not."""

    why: str

    @property
    def needs(self) -> frozenset[type[Action]]:
        """What the policy within needs besides."""
        return self.policy.needs - {Resize}

    def decide(self, snapshot: Snapshot, state: Any) -> Decision[Any]:  # noqa: ANN401 - each policy has its own state
        """Ask the policy within, and leave its resizes out."""
        wanted = self.policy.decide(snapshot, state)
        resizes = [proposal for proposal in wanted.proposals if isinstance(proposal.action, Resize)]
        if not resizes:
            return wanted
        kept = tuple(proposal for proposal in wanted.proposals if not isinstance(proposal.action, Resize))
        held_back = tuple((proposal, self.why) for proposal in resizes)
        return replace(wanted, proposals=kept, vetoed=(*wanted.vetoed, *held_back))
