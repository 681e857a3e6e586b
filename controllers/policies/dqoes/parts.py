"""How DQoES splits a node: as many trials at their time per step as it can hold. Pure."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from controllers.core.model import Trial, TrialId

Parts = Mapping[TrialId, float]
"""Of the cores that the trials of a node request together, from 0 to 1."""
Seconds = Mapping[TrialId, float]


@dataclass(frozen=True, slots=True)
class Split:
    """The part of a node's requests for each of its trials, all together 1; ``served`` get what they need."""

    parts: Mapping[TrialId, float]
    served: tuple[TrialId, ...]


def split(members: Sequence[Trial], took: Seconds, rank: Mapping[TrialId, float], tolerance: float) -> Split:
    """Split a node.

    A trial needs its present part times the seconds that its steps take over those that they shall take. From the
    least in rank to the greatest each gets that, as long as it fits. Those that do not fit share what is left. Where
    all fit, it goes to those without a time per step, else to the last in rank, so that the others are no faster than
    they shall be. Whoever has no time per step is sure of what its author asked for; whoever was not measured keeps
    what it has.

    Args:
        members: Trials of one node.
        took: Seconds that a step takes, of those that were measured.
        rank: Cores that the time per step of those costs: it changes less than measured needs do, so that who is
            served does not flicker.
        tolerance: Part of its time per step by which a trial may be too slow.
    """
    asked = _parts({trial.id: trial.base_cpu * len(trial.nodes) for trial in members})
    now = _parts({trial.id: trial.cpu * len(trial.nodes) for trial in members})
    goals = {trial.id: trial.goals.seconds_per_step for trial in members}
    needs = {name: now[name] * took[name] / goal for name, goal in goals.items() if goal is not None and name in took}
    sure = {name: asked[name] if goal is None else now[name] for name, goal in goals.items() if name not in needs}
    sure = {name: part / max(1.0, sum(sure.values())) for name, part in sure.items()}
    order = sorted(needs, key=lambda name: (rank[name], name))
    met = _met({name: needs[name] for name in order}, 1 - sum(sure.values()), tolerance)
    short = {name: needs[name] for name in order if name not in met}
    free = {name: asked[name] for name, goal in goals.items() if goal is None}
    given = sure | met
    left = max(0.0, 1 - sum(given.values()))
    rest = _parts(short or free or dict.fromkeys(order[-1:], 1.0))
    return Split({name: given.get(name, 0.0) + left * rest.get(name, 0.0) for name in goals}, tuple(met))


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
