"""Moves of trials whose deadlines their own nodes can't keep."""

from collections.abc import Iterable, Iterator, Mapping

from controllers.model import Migrate, NodeName
from controllers.policies.capacity import Ledger
from controllers.policies.deadline_forecast import Forecast
from controllers.policies.deadline_words import about


def moves(
    missing: Iterable[Forecast], ledger: Ledger, spare: Mapping[NodeName, float], cost: float
) -> Iterator[tuple[Migrate, str]]:
    """Yield moves that keep a deadline although they cost time, each with its reason, the earliest deadline first.

    Args:
        missing: Trials that may move and won't keep their deadlines where they are.
        ledger: What is requested of each node; kept up.
        spare: Cores of each node that nobody on it needs.
        cost: Seconds for which a trial that moves does not train.
    """
    left = dict(spare)
    for one in sorted(missing, key=lambda one: (one.left, one.trial.id)):
        time = one.left - cost
        need = one.pace.cores_for(one.steps / time) if time > 0 and one.pace.measured else float("inf")
        roomy = {
            name: cores
            for name, cores in left.items()
            if name != one.trial.node and cores >= max(need, one.trial.base_cpu) and ledger.fits(one.trial, name)
        }
        if roomy:
            node = min(roomy, key=lambda name: (-roomy[name], name))
            move = Migrate(one.trial.id, node)
            ledger.take(move)
            left[node] -= max(need, one.trial.base_cpu)
            yield move, f"deadline: {node} has the {need:.2g} cores that keep it in {about(one.left)}"
