"""Who goes before whom, and how far each may go: what is kept of a sweep, and what follows from it. Pure."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated

from pydantic import BeforeValidator

from controllers.core.model import Snapshot, Trial, TrialId
from controllers.policies.kit.sweeps import by_sweep
from controllers.policies.kit.work_left import SweepMeasurements
from controllers.policies.promote.promised import PromisedState
from controllers.policies.promote.rungs import KeptLosses, Ladder, Level, Losses, with_reached


def _by_sweep_or_anew(ended: object) -> object:
    """Return None for losses that an older version kept of all sweeps together: the next look finds them by sweep."""
    return None if isinstance(ended, list) else ended


@dataclass(frozen=True, slots=True)
class PromoteState:
    """The losses of each trial at the rungs that it has reached, and how many of these it may go beyond.

    Both of trials that have not ended. ``ended`` holds the losses of the others, by sweep and rung, and is None before
    the first look. ``measured`` tells how many cores each trial can use. ``promised`` is what is
    kept where a risk is promised.
    """

    losses: Mapping[TrialId, tuple[KeptLosses, ...]] = field(default_factory=dict)
    passed: Mapping[TrialId, int] = field(default_factory=dict)
    ended: Annotated[Mapping[str, tuple[tuple[KeptLosses, ...], ...]] | None, BeforeValidator(_by_sweep_or_anew)] = None
    measured: SweepMeasurements = field(default_factory=SweepMeasurements)
    promised: PromisedState = field(default_factory=PromisedState)


class Ranks:
    """Who goes before whom, and how far each may go. Losses and places are those of ``PromoteState``."""

    def __init__(
        self,
        losses: dict[TrialId, tuple[Losses, ...]],
        passed: Mapping[TrialId, int],
        ended: Mapping[str, tuple[tuple[Losses, ...], ...]],
        trials: Mapping[str, Sequence[Trial]],
        eta: float,
    ) -> None:
        self.losses, self.ended = losses, ended
        self._ladders = {
            sweep: Ladder({trial.id: losses[trial.id] for trial in trials.get(sweep, ())}, of_ended, eta, passed)
            for sweep, of_ended in ended.items()
        }
        self.passed = {trial: rungs for ladder in self._ladders.values() for trial, rungs in ladder.passed.items()}

    @classmethod
    def of(
        cls,
        snapshot: Snapshot,
        state: PromoteState,
        level: Level,
        rungs: Sequence[float],
        usual: Mapping[str, float | None],
    ) -> "Ranks":
        """Return how the trials of ``snapshot`` compare, after what was known before."""

        def reached(trial: Trial) -> tuple[Losses, ...]:
            return with_reached(trial, state.losses.get(trial.id, ()), rungs, usual[trial.sweep])

        def counted(trial: Trial) -> tuple[Losses, ...]:
            before, passed = len(state.losses.get(trial.id, ())), state.passed.get(trial.id, 0)
            return reached(trial)[: passed + 1] if before > passed else reached(trial)

        new = [
            trial
            for trial in snapshot.trials
            if trial.phase.ended and (state.ended is None or trial.id in state.losses)
        ]
        ended = dict(state.ended or {})
        for sweep, of_sweep in by_sweep((*snapshot.unended, *new)).items():
            over = [counted(trial) for trial in of_sweep if trial.phase.ended]
            ended[sweep] = tuple(
                (*before, *(of_trial[rung] for of_trial in over if len(of_trial) > rung))
                for rung, before in enumerate(ended.get(sweep, ((),) * len(rungs)))
            )
        losses = {trial.id: reached(trial) for trial in snapshot.unended}
        return cls(losses, state.passed, ended, by_sweep(snapshot.unended), level.eta)

    def let_past(self, trial: Trial, rung: int) -> None:
        """Let ``trial`` go beyond ``rung``."""
        self.passed[trial.id] = rung + 1

    def reached(self, trial: Trial) -> int:
        """Return how many rungs a trial has reached."""
        return len(self.losses.get(trial.id, ()))

    def held(self, trial: Trial) -> bool:
        """Whether a trial has reached a rung that it may not go beyond."""
        return self.reached(trial) > self.passed.get(trial.id, 0)

    def stands(self, trial: Trial) -> int:
        """Return how many rungs count of those that a trial has reached: none beyond the one that it waits at."""
        return min(self.reached(trial), self.passed.get(trial.id, 0) + 1)

    def waits_at(self, trial: Trial, rung: int) -> bool:
        """Whether a trial has reached ``rung`` and may not go beyond it."""
        return self.passed[trial.id] == rung < self.reached(trial)

    def in_order(self, trials: Iterable[Trial]) -> list[Trial]:
        """Return ``trials``, first those that have come further, then the better ones, then those submitted earlier."""

        def rank(trial: Trial) -> tuple[int, float, float, TrialId]:
            stands = self.stands(trial)
            better = self._better(trial, stands - 1) if stands else 0.0
            return -stands, better, trial.submitted_at, trial.id

        return sorted(trials, key=rank)

    def reason(self, trial: Trial, rungs: Sequence[float]) -> str:
        """Return why a trial gets a place."""
        stands = self.stands(trial)
        if not stands:
            return "placing: a new trial, up to its first rung"
        part = 100 * rungs[stands - 1]
        if self.held(trial):
            return f"resuming: nobody goes before it, though it was not among the best at {part:.0f} %"
        return f"resuming: it is among the best at {part:.0f} % of its training"

    def outlook(self, trial: Trial, rungs: Sequence[float]) -> str:
        """Return how a trial stands, in words."""
        rung = self.stands(trial) - 1
        better = 100 * self._better(trial, rung)
        place = f"better than {100 - better:.0f} % of those that have come to {100 * rungs[rung]:.0f} %"
        return f"waits at its rung: {place}" if self.held(trial) else f"goes on: {place}"

    def _better(self, trial: Trial, rung: int) -> float:
        """Return which part of the trials of its sweep was better at ``rung``."""
        return self._ladders[trial.sweep].rank(trial.id, rung)
