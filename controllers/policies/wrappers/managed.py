"""What owners ask of their trials, and an arbiter of sweeps, goes before what any policy wants for them."""

from dataclasses import replace
from typing import Any, Final

from controllers.core.actions import Decision, Proposal, Stop, Suspend
from controllers.core.model import Ask, Snapshot, Trial
from controllers.policies.wrappers.wrapper import AroundOne

BY_OWNER: Final = "its owner asked for it"
FOR_OTHERS: Final = "other sweeps have less than their part: specon queue"


class Managed(AroundOne):
    """Suspends and stops the trials that are asked for it, and leaves the rest to ``policy``.

    A trial that is to pause, or to yield to other sweeps, waits for no place, as the policy within sees it; what that
    wants for it is dropped. Once nobody asks any more, it waits for a place like any other that was suspended. Wraps
    the guards as well: they keep policies from acting too often, not owners.
    """

    def decide(self, snapshot: Snapshot, state: Any) -> Decision[Any]:  # noqa: ANN401 - each policy has its own state
        """Propose what is asked for, and what the policy within wants for all other trials."""
        asked = snapshot.asked
        if not asked:
            return self.policy.decide(snapshot, state)
        wanted = self.policy.decide(snapshot.withholding(asked.keys()), state)
        theirs = (proposal for proposal in wanted.proposals if proposal.action.trial not in asked)
        ours = (
            proposal
            for trial in snapshot.unended
            if trial.id in asked and (proposal := _proposal(trial, asked[trial.id]))
        )
        return replace(wanted, proposals=(*ours, *theirs))


def _proposal(trial: Trial, ask: Ask) -> Proposal | None:
    """Return what carries out ``ask`` now; None where that has to wait, or is done."""
    if ask is Ask.STOP and (trial.steady or trial.waits):
        return Proposal(Stop(trial.id, BY_OWNER), BY_OWNER)
    if ask is not Ask.STOP and trial.steady:
        return Proposal(Suspend(trial.id), BY_OWNER if ask is Ask.PAUSE else FOR_OTHERS)
    return None
