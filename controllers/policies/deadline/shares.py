"""Splitting a node among trials with deadlines: the fewest cores that keep each, and who can't be kept."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from controllers.core.model import Trial, TrialId
from controllers.policies.deadline.forecast import Forecast, Prospect


@dataclass(frozen=True, slots=True)
class Split:
    """Cores of each trial of a node; ``given_up`` are within reach of their deadlines alone, not beside the others."""

    shares: Mapping[TrialId, float]
    given_up: frozenset[TrialId]


@dataclass(frozen=True, slots=True)
class Terms:
    """What trials get that no deadline says anything about: those without any hope, and new ones.

    ``floor`` is a part of what a trial asked for, but at least ``min_cpu`` cores; ``probe`` is in cores.
    """

    floor: float
    min_cpu: float
    probe: float

    def least(self, trial: Trial) -> float:
        """Return the cores that ``trial`` keeps in any case."""
        return max(self.floor * trial.base_cpu, self.min_cpu)


def split(forecasts: Sequence[Forecast], cores: float, terms: Terms) -> Split:
    """Return the shares of a node's trials, which sum to ``cores`` at most where the floors do.

    Everybody keeps the floor, and what can't be decided on keeps what it has. Then those that can be kept together
    get what they need, the one with the least slack first; then new trials; then those without a deadline.
    """
    shares = {one.trial.id: _least(one, terms) for one in forecasts}
    left = cores - sum(shares.values())
    hopeful = [one for one in forecasts if one.prospect is Prospect.WITHIN_REACH]
    kept = together(hopeful, left + sum(terms.least(one.trial) for one in hopeful))
    new = [one for one in forecasts if one.prospect is Prospect.UNKNOWN]
    free = [one for one in forecasts if one.prospect is Prospect.FREE]
    for one in sorted(kept, key=lambda one: (one.slack, one.trial.id)):
        left -= _give(shares, one, one.need, left)
    even = max(0.0, left) / len(new) if new else 0.0
    for one in sorted(new, key=_urgency):
        left -= _give(shares, one, max(one.trial.base_cpu, min(terms.probe, even)), left)
    for one in sorted(free, key=_urgency):
        left -= _give(shares, one, one.trial.base_cpu, left)
    return Split(shares, frozenset(one.trial.id for one in hopeful) - {one.trial.id for one in kept})


def together(hopeful: Sequence[Forecast], cores: float) -> list[Forecast]:
    """Return the most trials that can all keep their deadlines on ``cores`` cores.

    In the order of deadlines, all that is due by each must be done by then; where it can't be, the trial with the
    greatest demand so far is given up (Moore, Management Science 15(1), 1968: the fewest late jobs on one machine;
    exact where every trial can use all cores, else an approximation).
    """
    kept: list[Forecast] = []
    demand = 0.0
    for one in sorted(hopeful, key=lambda one: (one.left, one.trial.id)):
        kept.append(one)
        demand += one.demand
        if demand > max(0.0, cores) * one.left:
            worst = max(kept, key=lambda one: (one.demand, one.trial.id))
            kept.remove(worst)
            demand -= worst.demand
    return kept


def _give(shares: dict[TrialId, float], one: Forecast, want: float, left: float) -> float:
    more = min(max(0.0, want - shares[one.trial.id]), max(0.0, left))
    shares[one.trial.id] += more
    return more


def _least(one: Forecast, terms: Terms) -> float:
    return one.trial.cpu if one.prospect is Prospect.STALE else terms.least(one.trial)


def _urgency(one: Forecast) -> tuple[float, float, str]:
    return one.left, one.trial.submitted_at, one.trial.id
