"""Several policies at once."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Self, cast

from pydantic import SkipValidation

from controllers.core.actions import Assessment, Decision, Proposal
from controllers.core.model import Snapshot, TrialId
from controllers.core.policy import Policy
from controllers.policies.kit.capacity import reconcile
from controllers.policies.wrappers.wrapper import Wrapper


class Stacked(Wrapper):
    """Puts the decisions of ``policies`` together, in their order, as far as they go together (``reconcile``).

    Each looks at the same snapshot, unless one before it has narrowed that (``Decision.narrowed``). Reasons begin with
    the name of the policy that gives them: two policies may put the same trial into different categories, and people
    see the category of the first.
    """

    policies: SkipValidation[tuple[Policy[Any], ...]]

    @property
    def within(self) -> tuple[Policy[Any], ...]:
        """The policies."""
        return self.policies

    def around(self, within: Sequence[Policy[Any]]) -> Self:
        """Return a stack of other policies."""
        return self.model_copy(update={"policies": tuple(within)})

    @property
    def state_type(self) -> type[tuple[Any, ...]]:
        """A tuple of the policies' states."""
        inner = tuple(policy.state_type for policy in self.policies)
        return cast("type[tuple[Any, ...]]", tuple.__class_getitem__(inner))

    def initial(self) -> tuple[Any, ...]:
        """Return the states before the first decision."""
        return tuple(policy.initial() for policy in self.policies)

    def decide(self, snapshot: Snapshot, state: tuple[Any, ...]) -> Decision[tuple[Any, ...]]:
        """Ask every policy; wake for the one that wants to be asked first."""
        decisions: list[Decision[Any]] = []
        seen = snapshot
        for policy, inner in zip(self.policies, state, strict=True):
            decisions.append(policy.decide(seen, inner))
            seen = decisions[-1].narrowed or seen
        decided = list(zip(self.policies, decisions, strict=True))
        proposals = [_name_policy(policy, proposal) for policy, decision in decided for proposal in decision.proposals]
        vetoed = [
            (_name_policy(policy, proposal), why) for policy, decision in decided for proposal, why in decision.vetoed
        ]
        kept, clashing = reconcile(proposals, snapshot)
        assessments: dict[TrialId, Assessment] = {}
        for decision in decisions:
            assessments = {**decision.assessments, **assessments}
        return Decision(
            state=tuple(decision.state for decision in decisions),
            proposals=kept,
            wake_at=min((decision.wake_at for decision in decisions if decision.wake_at is not None), default=None),
            assessments=assessments,
            vetoed=(*vetoed, *clashing),
        )


def _name_policy(policy: Policy[Any], proposal: Proposal) -> Proposal:
    """Return the proposal with the name of its policy before the reason."""
    return replace(proposal, reason=f"{policy.name}: {proposal.reason}")
