"""The table of every trial under every policy, as rows. Pure."""

from collections.abc import Sequence
from dataclasses import dataclass

from controllers.core.results import TrialResult
from hera_specon.display import words
from hera_specon.report.colours import natural
from hera_specon.report.history import Move
from hera_specon.report.record import PolicyRun


@dataclass(frozen=True, slots=True)
class TrialUnder:
    """A trial under one policy; ``ratio`` is to its completion time under the first, None for the first."""

    policy: str
    result: TrialResult | None
    moves: tuple[Move, ...]
    ratio: float | None


@dataclass(frozen=True, slots=True)
class TrialEntry:
    """A trial and how it went under each policy."""

    id: str
    params: str
    under: tuple[TrialUnder, ...]


def trial_entries(runs: Sequence[PolicyRun]) -> list[TrialEntry]:
    """Return every trial that any of the runs knows, in the order people count."""
    found = [{t.id: t for t in run.result.trials} if run.result else {} for run in runs]
    ids = {trial for run in runs for trial in run.history.stretches}.union(*found)
    return [_entry(trial, runs, [of_run.get(trial) for of_run in found]) for trial in sorted(ids, key=natural)]


def _entry(trial: str, runs: Sequence[PolicyRun], results: Sequence[TrialResult | None]) -> TrialEntry:
    params = next((words.params(result.params) for result in results if result and result.params), "")
    first = results[0]
    under = [
        TrialUnder(
            policy=run.policy,
            result=result,
            moves=tuple(move for move in run.history.moves if move.trial == trial),
            ratio=result.completion_s / first.completion_s if i and result and first and first.completion_s else None,
        )
        for i, (run, result) in enumerate(zip(runs, results, strict=True))
    ]
    return TrialEntry(trial, params, tuple(under))
