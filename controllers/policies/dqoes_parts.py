"""How DQoES splits a node: as many trials at their time per step as it can hold. Pure."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from controllers.model import Trial, TrialId

Parts = Mapping[TrialId, float]
"""Of the cores that the trials of a node request together, from 0 to 1."""


def shared_out(members: Sequence[Trial], took: Parts, tolerance: float) -> dict[TrialId, float]:
    """Return the part of a node's requests for each of ``members``, all together 1.

    A trial needs its present part times the seconds that its steps take over those that they shall take. From the
    least need to the greatest each gets that, as long as it fits. Those that do not fit share what is left. Where all
    fit, it goes to those without a time per step, else to the one with the greatest need, so that the others are no
    faster than they shall be. Whoever has no time per step is sure of what its author asked for; whoever was not
    measured keeps what it has.

    Args:
        members: Trials of one node.
        took: Seconds that a step takes, of those that were measured.
        tolerance: Part of its time per step by which a trial may be too slow.
    """
    asked = _parts({trial.id: trial.base_cpu * len(trial.nodes) for trial in members})
    now = _parts({trial.id: trial.cpu * len(trial.nodes) for trial in members})
    goals = {trial.id: trial.goals.seconds_per_step for trial in members}
    needs = {
        name: _Need(now[name], took[name] / goal) for name, goal in goals.items() if goal is not None and name in took
    }
    sure = {name: asked[name] if goal is None else now[name] for name, goal in goals.items() if name not in needs}
    sure = {name: part / max(1.0, sum(sure.values())) for name, part in sure.items()}
    order = sorted(needs, key=lambda name: (needs[name].rank(tolerance), name))
    met = _met({name: needs[name].part for name in order}, 1 - sum(sure.values()), tolerance)
    short = {name: needs[name].part for name in order if name not in met}
    free = {name: asked[name] for name, goal in goals.items() if goal is None}
    given = sure | met
    left = max(0.0, 1 - sum(given.values()))
    rest = _parts(short or free or dict.fromkeys(order[-1:], 1.0))
    return {name: given.get(name, 0.0) + left * rest.get(name, 0.0) for name in goals}


@dataclass(frozen=True, slots=True)
class _Need:
    """What a trial has now, and how many times as long as they shall its steps take."""

    now: float
    slowness: float

    @property
    def part(self) -> float:
        return self.now * self.slowness

    def rank(self, tolerance: float) -> float:
        """Put one that is satisfied before others of about its need: measurements flicker, who is served shall not."""
        satisfied = abs(self.slowness - 1) <= tolerance
        return self.part * (1 - tolerance) if satisfied else self.part


def _met(needs: Parts, left: float, tolerance: float) -> dict[TrialId, float]:
    met: dict[TrialId, float] = {}
    for name, need in needs.items():
        if need <= left * (1 + tolerance):
            met[name] = min(need, left)
            left -= met[name]
    return met


def _parts(amounts: Parts) -> dict[TrialId, float]:
    """Return the part that each is of the sum; where all are 0, as of trials that request nothing, they are even."""
    total = sum(amounts.values())
    return {name: amount / total if total else 1 / len(amounts) for name, amount in amounts.items()}
