"""Actions that several rules want at the same time, made to agree."""

from collections.abc import Iterable, Iterator, Sequence

from controllers.core.model import Migrate, Proposal, Snapshot, TrialId
from controllers.policies.kit.capacity import Ledger

Veto = tuple[Proposal, str]


def reconciled(proposals: Iterable[Proposal], snapshot: Snapshot) -> tuple[tuple[Proposal, ...], tuple[Veto, ...]]:
    """Return those of ``proposals`` that go together, and the others each with what speaks against it.

    A trial gets one action at most: a move of it wins over a change of its share, otherwise the first wins. What no
    longer fits its node because of that is left out too, and comes back with the next decision.
    """
    ordered = list(proposals)
    verdicts = list(_verdicts(ordered, snapshot)) if ordered else []
    kept = tuple(proposal for proposal, objection in verdicts if objection is None)
    return kept, tuple((proposal, objection) for proposal, objection in verdicts if objection is not None)


def _verdicts(ordered: Sequence[Proposal], snapshot: Snapshot) -> Iterator[tuple[Proposal, str | None]]:
    """Yield each proposal with what speaks against it beside the others, if anything."""
    chosen = _chosen(ordered)
    ledger = Ledger.of(snapshot)
    for proposal in ordered:
        action = proposal.action
        if chosen[action.trial] is not proposal:
            yield proposal, "another action on the same trial goes first"
        elif ledger.allows(action):
            ledger.take(action)
            yield proposal, None
        else:
            yield proposal, "no room on the node for this beside the other actions"


def _chosen(proposals: Iterable[Proposal]) -> dict[TrialId, Proposal]:
    chosen: dict[TrialId, Proposal] = {}
    for proposal in sorted(proposals, key=lambda proposal: not isinstance(proposal.action, Migrate)):
        chosen.setdefault(proposal.action.trial, proposal)
    return chosen
