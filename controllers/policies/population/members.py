"""How the trials of a population stand at each interval of their training, and who goes on from whose checkpoint. Pure.

Trials are compared at the same step. Each is compared once at an interval, as soon as most of the others have come as
far, with all of those.
"""

import hashlib
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from controllers.core.lineage import trial_number
from controllers.core.model import Direction, Phase, Progress, Trial, TrialId

ENOUGH: Final = 0.75
"""Part of a population that has come to an interval before anyone is compared there."""
MOST_TRIES: Final = 5
"""How often a clone is asked for: then the trial goes on as it is. Its parent may have kept no checkpoint."""
_SLACK: Final = 1e-9


@dataclass(frozen=True, slots=True)
class PopulationMember:
    """A trial of a population.

    ``losses`` are how bad it was at each interval that it has come to, smaller being better, None where its objective
    was no number. ``compared`` counts the intervals that it was compared at. Reports up to the step ``after`` are those
    of a model that it no longer has. ``parent`` is the trial whose checkpoint it shall go on from, and ``tries`` how
    often that was asked for. ``clones`` counts those that were made.
    """

    losses: tuple[float | None, ...] = ()
    compared: int = 0
    after: int = -1
    parent: TrialId | None = None
    tries: int = 0
    clones: int = 0


@dataclass(frozen=True, slots=True)
class PopulationState:
    """The members by trial, also those whose trials have ended: others are compared with them."""

    members: Mapping[TrialId, PopulationMember] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Intervals:
    """Where the intervals of a training end: each takes ``length`` steps, or that part of all where it is below 1."""

    length: float

    def reached(self, step: int, total: float | None) -> int:
        """Return at how many intervals' ends a trial has been that has made ``step`` (from 0) of ``total`` steps.

        The end of the training is none. 0 where nobody knows how long it is.
        """
        if self.length < 1 and not total:
            return 0
        every = self.length * total if self.length < 1 and total else self.length
        ends = math.floor((step + 1) / every + _SLACK)
        return min(ends, math.ceil(total / every - _SLACK) - 1) if total else ends


def last_step(progress: Progress | None) -> int:
    """Return the last step that a trial has reported, be its objective a number or not; -1 where it has none."""
    if progress is None:
        return -1
    return max(progress.step, progress.dropped_report[1] if progress.dropped_report else -1)


class PopulationRanks:
    """The trials of one sweep, and what is known of each.

    Args:
        trials: All of the sweep.
        members: What was known of them.
        intervals: Where they are compared.
        total: Steps in all of a trial that does not tell its own.

    Attributes:
        enough: The last interval that enough have come to.
    """

    def __init__(
        self,
        trials: Sequence[Trial],
        members: Mapping[TrialId, PopulationMember],
        intervals: Intervals,
        total: float | None,
    ) -> None:
        self.trials = {trial.id: trial for trial in trials}
        before = {trial.id: members.get(trial.id, PopulationMember()) for trial in trials}
        settled = {name: self._settled(self.trials[name], member, before) for name, member in before.items()}
        self.members = {
            name: _reported(self.trials[name], member, intervals, total) for name, member in settled.items()
        }
        self._lost = {name for name, member in self.members.items() if _diverged(self.trials[name], member)}
        self.enough = self._enough()
        for name in self._lost:
            # It may report nothing any more that is a number, so it need not come to an interval to be compared.
            losses = self.members[name].losses
            self.members[name] = replace(self.members[name], losses=losses + (None,) * (self.enough - len(losses)))

    @staticmethod
    def _settled(
        trial: Trial, member: PopulationMember, members: Mapping[TrialId, PopulationMember]
    ) -> PopulationMember:
        """Return ``member`` once its trial is the clone that it should be: it stands where its parent stood."""
        if len(trial.lineage) <= member.clones:
            return member
        parent = members.get(trial.lineage[-1], PopulationMember())
        return PopulationMember(
            parent.losses,
            max(member.compared, len(parent.losses)),
            last_step(trial.progress),
            clones=len(trial.lineage),
        )

    def _enough(self) -> int:
        """Return the last interval that enough have come to of those that did not diverge."""
        sound = [name for name in self._counted() if name not in self._lost]
        ends = sorted((len(self.members[name].losses) for name in sound), reverse=True)
        needed = math.ceil(ENOUGH * len(ends))
        return ends[needed - 1] if ends else 0

    def _counted(self) -> list[TrialId]:
        """Return who is compared with: not those that have failed or were stopped, who may have come to little."""
        return [name for name, trial in self.trials.items() if trial.phase not in {Phase.FAILED, Phase.STOPPED}]

    def at(self, interval: int) -> list[TrialId]:
        """Return who has come to the end of ``interval`` (from 1), the best first."""
        there = [name for name in self._counted() if len(self.members[name].losses) >= interval]
        return sorted(there, key=lambda name: (*_rank(self.members[name], interval), name))

    def compare(self, quantile: float, seed: int) -> None:
        """Compare each trial at the last interval that it has come to, where enough others have come as far, too.

        One that is among the worst ``quantile`` shall go on from the checkpoint of one of the best, drawn by ``seed``.
        One that is no worse than the best stays.
        """
        for name in sorted(self.members):
            member, trial = self.members[name], self.trials[name]
            interval = len(member.losses)
            if not member.compared < interval <= self.enough or trial.phase.ended:
                continue
            order = self.at(interval)
            few = min(max(1, math.floor(quantile * len(order))), len(order) // 2)
            parents = [one for one in order[:few] if self._is_parent(one)]
            worse = name in order[len(order) - few :] and parents
            if worse and _rank(self.members[parents[0]], interval) < _rank(member, interval) and may_be_clone(trial):
                chosen = parents[draw(f"{seed}:{trial_number(name)}:{interval}") % len(parents)]
                member = replace(member, parent=chosen, tries=0)
            self.members[name] = replace(member, compared=interval)

    def _is_parent(self, name: TrialId) -> bool:
        """Whether a trial trains on and has a model of its own to give."""
        return not self.trials[name].phase.ended and self.members[name].parent is None

    def drop_lost(self) -> None:
        """Let those go on as they are whose parent has ended, or whose clone did not come about."""
        for name, member in self.members.items():
            if member.parent is None:
                continue
            parent = self.trials.get(member.parent)
            gone = parent is None or parent.phase.ended or self.trials[name].phase.ended
            if gone or member.tries >= MOST_TRIES:
                self.members[name] = replace(member, parent=None, tries=0)

    def tried(self, name: TrialId) -> None:
        """Note that a clone was asked for."""
        self.members[name] = replace(self.members[name], tries=self.members[name].tries + 1)


def may_be_clone(trial: Trial) -> bool:
    """Whether a trial can go on from another's checkpoint: a search gave it its hyperparameters, and it is no gang."""
    return bool(trial.search and trial.parameters) and not trial.gang


def draw(seed: str) -> int:
    """Return a whole number from 0 to 2^64 - 1: the same ``seed`` gives the same one, any other gives any."""
    return int.from_bytes(hashlib.sha256(seed.encode()).digest()[:8])


def _reported(trial: Trial, member: PopulationMember, intervals: Intervals, total: float | None) -> PopulationMember:
    """Return ``member`` with what its trial reports, if that is of the model that it has now."""
    progress = trial.progress
    if progress is None or progress.step <= member.after:
        return member
    new = intervals.reached(progress.step, progress.steps_total or total) - len(member.losses)
    loss = progress.latest if trial.direction is Direction.MINIMIZE else -progress.latest
    return replace(member, losses=(*member.losses, *((loss,) * new))) if new > 0 else member


def _diverged(trial: Trial, member: PopulationMember) -> bool:
    if not trial.diverged or trial.phase is not Phase.RUNNING or member.parent is not None:
        return False
    return last_step(trial.progress) > member.after or not (trial.progress or member.clones)


def _rank(member: PopulationMember, interval: int) -> tuple[bool, float]:
    loss = member.losses[interval - 1]
    return loss is None, 0.0 if loss is None else loss
