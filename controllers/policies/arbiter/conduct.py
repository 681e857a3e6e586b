"""What trials said and did: whether they end when they say so, and leave when they are asked. Pure."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Final

from controllers.core.model import TrialId
from controllers.policies.arbiter.demands import Claimant, SweepDemand

MOST_DOUBTS: Final = 10
"""Promises that a namespace has to keep at most until it is believed again."""


@dataclass(frozen=True, slots=True)
class Since:
    """When something was first seen of an attempt, in seconds of the arbiter's clock."""

    attempt: int
    at: float


@dataclass(frozen=True, slots=True)
class Promise:
    """An attempt of a namespace's trial said that it would have ended ``by`` then; ``broken`` tells that it had not."""

    namespace: str
    attempt: int
    by: float
    broken: bool = False


@dataclass(frozen=True, slots=True)
class Conduct:
    """What the arbiter remembers of how trials behave.

    ``promises`` are by running trial, the first of each attempt. ``doubts`` says of a namespace how many of its
    promises must come true before it is believed again. ``unsteady`` says since when a trial is leaving or on the move.
    """

    promises: Mapping[TrialId, Promise] = field(default_factory=dict)
    doubts: Mapping[str, int] = field(default_factory=dict)
    unsteady: Mapping[TrialId, Since] = field(default_factory=dict)

    def ends_soon(self, trial: Claimant, soon: float) -> bool:
        """Return whether a trial says that it ends within ``soon`` seconds, and is to be believed."""
        if not says_soon(trial, soon):
            return False
        promise = self.promises.get(trial.id)
        return promise is not None and not promise.broken and not self.doubts.get(promise.namespace)

    def deaf(self, now: float, hears: float) -> frozenset[TrialId]:
        """Return the trials that are leaving or on the move for longer than ``hears`` seconds."""
        return frozenset(trial for trial, since in self.unsteady.items() if now - since.at >= hears)


def conduct_after(now: float, sweeps: Iterable[SweepDemand], before: Conduct, soon: float) -> Conduct:
    """Return what is to be remembered after a look at all trials that have not ended.

    A promise is broken once the trial still runs ``soon`` seconds after the end that it promised first.
    """
    there = {trial.id: (sweep.namespace, trial) for sweep in sweeps for trial in sweep.trials}
    doubts, promises = dict(before.doubts), dict[TrialId, Promise]()
    for name, promise in before.promises.items():
        if name not in there:
            if not promise.broken:
                doubts[promise.namespace] = doubts.get(promise.namespace, 0) - 1
            continue
        _, trial = there[name]
        if not trial.steady or trial.attempt != promise.attempt:
            continue  # it was made to leave before its end: nobody knows whether that would have come
        late = not promise.broken and now > promise.by + soon
        if late:
            doubts[promise.namespace] = min(MOST_DOUBTS, doubts.get(promise.namespace, 0) + 1)
        promises[name] = replace(promise, broken=True) if late else promise
    for name, (namespace, trial) in there.items():
        if name not in promises and trial.steady and trial.left_s is not None and says_soon(trial, soon):
            promises[name] = Promise(namespace, trial.attempt, now + trial.left_s)
    running = [trial for _, trial in there.values() if trial.nodes]
    unsteady = seen_since(now, (trial for trial in running if not trial.steady), before.unsteady)
    return Conduct(promises, {name: number for name, number in doubts.items() if number > 0}, unsteady)


def seen_since(now: float, trials: Iterable[Claimant], before: Mapping[TrialId, Since]) -> dict[TrialId, Since]:
    """Return since when each of ``trials`` has been seen in its present attempt."""
    seen: dict[TrialId, Since] = {}
    for trial in trials:
        known = before.get(trial.id)
        seen[trial.id] = known if known and known.attempt == trial.attempt else Since(trial.attempt, now)
    return seen


def says_soon(trial: Claimant, soon: float) -> bool:
    """Return whether a trial says that it ends within ``soon`` seconds."""
    return trial.left_s is not None and trial.left_s <= soon
