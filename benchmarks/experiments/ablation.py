"""A policy without one kind of its actions, to see what each of its rules is worth."""

from dataclasses import dataclass, replace
from typing import Any

from controllers.core.actions import Action, Decision
from controllers.core.model import Snapshot
from controllers.core.policy import Policy
from controllers.lab.simulation.evaluation import ExperimentPlan
from controllers.policies.kit.settings import RULE_OF
from controllers.policies.wrappers.wrapper import AroundOne


class Without(AroundOne):
    """Drops every action of the kind ``left_out`` that ``policy`` wants, and lets all others through.

    The policy is not told; to it, an action that is dropped looks like one that was refused. Without ``Place``, no
    first attempt is held back: the default scheduler places it.
    """

    left_out: type[Action]

    @property
    def name(self) -> str:
        """Name of the policy, and of the rule that it lacks."""
        return f"{self.policy.name} without {RULE_OF[self.left_out][0]}"

    @property
    def needs(self) -> frozenset[type[Action]]:
        """Whatever the policy needs, but for what is left out."""
        return self.policy.needs - {self.left_out}

    def decide(self, snapshot: Snapshot, state: Any) -> Decision[Any]:  # noqa: ANN401 - each policy has its own state
        """Ask the policy and drop what is left out."""
        wanted = self.policy.decide(snapshot, state)
        kept = (proposal for proposal in wanted.proposals if not isinstance(proposal.action, self.left_out))
        return replace(wanted, proposals=tuple(kept))


@dataclass(frozen=True)
class AblationPlan(ExperimentPlan):
    """An experiment in which no policy takes actions of the kind ``without``; None lets all do what they want."""

    without: type[Action] | None = None

    def effective(self) -> tuple[Policy[Any], ...]:
        """Return the policies with the experiment's parameters, without that kind of action."""
        policies, left_out = super().effective(), self.without
        return policies if left_out is None else tuple(Without(policy=one, left_out=left_out) for one in policies)
