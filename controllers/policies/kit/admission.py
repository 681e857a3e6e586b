"""First attempts that wait for a place, let in by rank."""

from collections.abc import Callable, Iterator
from typing import Any

from controllers.core.model import NodeName, Place, Proposal, Snapshot, Trial
from controllers.policies.kit.capacity import Ledger
from controllers.policies.wrappers.pinned import waits


def admitted(
    snapshot: Snapshot, ledger: Ledger, rank: Callable[[Trial], Any], reason: Callable[[Trial], str]
) -> Iterator[Proposal]:
    """Yield a place for each waiting trial that has room somewhere, the one of least ``rank`` first.

    It goes where the most cores are not requested. One that fits nowhere does not hold up a smaller one. ``ledger`` is
    what is requested so far, and is kept up.
    """
    for trial in sorted(filter(waits, snapshot.trials), key=lambda trial: (rank(trial), trial.id)):
        node = roomiest(ledger, trial)
        if node is not None:
            place = Place(trial.id, node)
            ledger.take(place)
            yield Proposal(place, reason(trial))


def roomiest(ledger: Ledger, trial: Trial) -> NodeName | None:
    """Return the node with the most cores to spare that ``trial`` fits on, None where it fits on none."""
    free = {name: node.cpu - ledger.requested(name) for name, node in ledger.nodes.items() if ledger.fits(trial, name)}
    return min(free, key=lambda name: (-free[name], name), default=None)


def by_deadline(trial: Trial) -> tuple[float, float]:
    """Rank by deadline, then by submission; trials without a deadline come last."""
    deadline = trial.goals.deadline_at
    return (float("inf") if deadline is None else deadline), trial.submitted_at
