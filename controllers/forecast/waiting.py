"""How a trial waits rather than computes, as a forecast reckons with it. Pure."""

from dataclasses import dataclass
from typing import Final

from controllers.core.model import Snapshot, TrialId
from controllers.policies.kit.waits import LEAST_USED, ONE_CORE, chance_of_waiting, waiting_per_work
from controllers.policies.kit.work_left import SweepMeasurements

MOST_PER_WORK: Final = 1e10


@dataclass(frozen=True, slots=True)
class Waits:
    """That a trial waits, with a ``chance``: then it does so for ``seconds`` in each second of work."""

    chance: float = 0.0
    seconds: float = 0.0


COMPUTES: Final = Waits()


def waits_of(busy: float | None, step: float, cost: float, cores: float, speed: float) -> Waits:
    """Return how a trial waits whose steps take ``cost`` core seconds on ``cores``, and are of the work ``step``.

    Args:
        busy: The part of its share that it uses.
        step: Core seconds as on a single core.
        cost: Core seconds.
        cores: What it uses on average.
        speed: Of its work, while it computes.
    """
    chance = chance_of_waiting(busy)
    if not chance or step <= 0 or cores <= 0:
        return COMPUTES
    return Waits(chance, min(MOST_PER_WORK, waiting_per_work(step, cost / cores, speed)))


def free_cores(snapshot: Snapshot, measured: SweepMeasurements) -> dict[TrialId, float]:
    """Return the cores that each trial which may wait has while it computes: at least what it is entitled to."""
    free: dict[TrialId, float] = {}
    for node in snapshot.nodes:
        there = [trial for trial in snapshot.unended if trial.live and trial.node == node.name]
        requested, used = sum(trial.cpu for trial in there), sum(measured.trials[trial.id].cores for trial in there)
        for trial in there:
            memo = measured.trials[trial.id]
            if chance_of_waiting(memo.busy):
                entitled = node.supplied * trial.cpu / requested if requested > 0 else 0.0
                free[trial.id] = min(ONE_CORE, max(entitled, node.supplied - (used - memo.cores), LEAST_USED))
    return free
