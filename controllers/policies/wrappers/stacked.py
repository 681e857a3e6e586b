"""Several policies at once, each looking at the same snapshot."""

from collections.abc import Iterable, Mapping
from typing import Any, ClassVar, cast

from pydantic import BaseModel, ConfigDict, SkipValidation

from controllers.core.model import Action, Assessment, Decision, Snapshot, TrialId
from controllers.core.policy import Policy
from controllers.policies.kit.reconciled import reconciled


class Stacked(BaseModel):
    """Puts the decisions of ``policies`` together, in their order, as far as they go together (``reconciled``)."""

    model_config = ConfigDict(frozen=True, extra="forbid", arbitrary_types_allowed=True)
    separator: ClassVar[str] = "+"

    policies: SkipValidation[tuple[Policy[Any], ...]]

    @property
    def name(self) -> str:
        """Names of the policies, joined by ``+``."""
        return self.separator.join(policy.name for policy in self.policies)

    @property
    def needs(self) -> frozenset[type[Action]]:
        """Whatever any of the policies needs."""
        return frozenset().union(*(policy.needs for policy in self.policies))

    @property
    def state_type(self) -> type[tuple[Any, ...]]:
        """A tuple of the policies' states."""
        parts = tuple(policy.state_type for policy in self.policies)
        return cast("type[tuple[Any, ...]]", tuple.__class_getitem__(parts))

    def initial(self) -> tuple[Any, ...]:
        """Return the states before the first decision."""
        return tuple(policy.initial() for policy in self.policies)

    def decide(self, snapshot: Snapshot, state: tuple[Any, ...]) -> Decision[tuple[Any, ...]]:
        """Ask every policy; wake for whichever wants to be asked first."""
        pairs = zip(self.policies, state, strict=True)
        decisions = [policy.decide(snapshot, part) for policy, part in pairs]
        proposals = [proposal for decision in decisions for proposal in decision.proposals]
        kept, clashing = reconciled(proposals, snapshot)
        vetoed = [veto for decision in decisions for veto in decision.vetoed]
        return Decision(
            state=tuple(decision.state for decision in decisions),
            proposals=kept,
            wake_at=min((decision.wake_at for decision in decisions if decision.wake_at is not None), default=None),
            assessments=_first_of_each(decision.assessments for decision in decisions),
            vetoed=(*vetoed, *clashing),
        )


def _first_of_each(parts: Iterable[Mapping[TrialId, Assessment]]) -> dict[TrialId, Assessment]:
    merged: dict[TrialId, Assessment] = {}
    for part in parts:
        merged = {**part, **merged}
    return merged
