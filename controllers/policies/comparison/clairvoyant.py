"""Policies that know how long each trial has left, as only a simulator can tell; for comparison."""

from collections.abc import Mapping
from typing import Any, ClassVar

from pydantic import Field

from controllers.core.model import Action, Resize, Trial, TrialId
from controllers.core.policy import Policy
from controllers.policies.kit.stateless import Stateless
from controllers.policies.wrappers.guarded import Guarded
from controllers.policies.wrappers.pinned import Pinned
from controllers.policies.wrappers.stacked import Stacked


class Clairvoyant(Stateless):
    """Base of those policies. A trial that has reported no step is taken to have all of its work before it."""

    needs: ClassVar[frozenset[type[Action]]] = frozenset({Resize})

    work: Mapping[TrialId, float] = Field(
        default={}, exclude=True, description="seconds that each trial needs alone; given by the simulator"
    )

    def remaining(self, trial: Trial) -> float:
        """Return the lone seconds that ``trial`` has left, each step taken to be as long as the others."""
        progress = trial.progress
        done = progress.step / progress.steps_total if progress is not None and progress.steps_total else 0.0
        return self.work.get(trial.id, 0.0) * max(0.0, 1 - done)


def informed(policy: Policy[Any], work: Mapping[TrialId, float]) -> Policy[Any]:
    """Return ``policy`` with every clairvoyant part of it told the ``work`` (lone seconds) of each trial."""
    if isinstance(policy, Clairvoyant):
        return policy.model_copy(update={"work": dict(work)})
    if isinstance(policy, Stacked):
        return Stacked(policies=tuple(informed(part, work) for part in policy.policies))
    if isinstance(policy, Guarded | Pinned):
        return policy.model_copy(update={"policy": informed(policy.policy, work)})
    return policy


def uninformed(policy: Policy[Any]) -> list[str]:
    """Return the names of those parts of ``policy`` that would have to know each trial's work and do not."""
    if isinstance(policy, Stacked):
        return [name for part in policy.policies for name in uninformed(part)]
    if isinstance(policy, Guarded | Pinned):
        return uninformed(policy.policy)
    return [policy.name] if isinstance(policy, Clairvoyant) and not policy.work else []
