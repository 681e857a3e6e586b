"""What attempts of a trial count as, failures, interruptions or leaving for nothing, and how many may follow. Pure."""

from typing import Final

from controllers.core.after_attempt import MOST_BARREN
from controllers.worlds.argo.meaning.attempts import Attempt
from controllers.worlds.argo.meaning.trials import TrialState

_LIMIT: Final = 1000
"""Attempts after which a trial is not moved any more where Argo would make them without a limit."""
_KEPT: Final = 5
"""One of so many attempts that Argo makes is kept for failures: by then a trial is moved and paused no more."""


def interruptions(state: TrialState) -> int:
    """Return how many attempts, before the newest, were interrupted: these are no failures of the trial."""
    attempts = () if state.step is None else state.step.attempts
    if state.attempt is not None:
        attempts = attempts[: state.attempt.number - 1]
    return max(0, sum(attempt.interrupted for attempt in attempts) - state.history.idling.counted)


def allowance(state: TrialState) -> int | None:
    """Return how many attempts may come before the last, None where what the trial's template says comes to the same.

    It is the failures that its author forgives, and the interruptions that there were. The template counts attempts of
    any kind, and moves that it may never make: what it says is corrected once the number of attempts comes near it.
    """
    if state.step is None or state.attempt is None:
        return None
    said, forgiven, number = state.step.retries.tries, state.step.retries.failures, state.attempt.number
    if said is None or forgiven is None:
        return None
    allowed = forgiven + interruptions(state)
    matters = number >= said if allowed > said else number > allowed
    return allowed if matters and allowed != said else None


def why_no_more_leaving(state: TrialState) -> str | None:
    """Return why no attempt that leaves shall be followed by another any more, None where it may be.

    One that waits to begin is then the last.
    """
    forgiven, idling = _forgiven(state), state.history.idling
    if forgiven is None or state.attempt is None or idling.barren < MOST_BARREN:
        return None
    failures = state.attempt.number - 1 - interruptions(state)
    return f"it left {idling.barren} times in a row unasked and came no further" if failures > forgiven else None


def leaves_alike(state: TrialState) -> str:
    """Return how the newest two attempts left, where both count as failures, ended at once and alike; else empty."""
    attempt, previous, idling = state.attempt, state.history.just_before, state.history.idling
    if attempt is None or previous is None or idling.barren < MOST_BARREN:
        return ""
    if attempt.leaving is None or previous.leaving is None:
        return ""
    words = attempt.leaving.how.at_once
    counts = idling.after(attempt.leaving, asked=attempt.asked).counted > idling.counted
    return words if counts and words == previous.leaving.how.at_once else ""


def why_no_more(state: TrialState, attempt: Attempt) -> str | None:
    """Return why no attempt may be spent on a move or a pause of a trial, None where one may be."""
    limit = state.step.retries.limit if state.step is not None else None
    most = _LIMIT if limit is None else limit
    if attempt.number > most - most // _KEPT:
        return f"it has had {attempt.number} attempts of the {most} that Argo makes, and must keep some for failures"
    if state.notes.idle is not None and state.notes.idle < attempt.number:
        return "it left too often for nothing, and this attempt is its last"
    return None


def why_not_the_last(state: TrialState, attempt: Attempt) -> str | None:
    """Return why no further attempt could end the step of a stopped trial, None where one could."""
    limit = None if state.step is None else state.step.retries.limit
    if limit is None or attempt.number <= limit:
        return None
    return f"it has had {attempt.number} attempts, and Argo makes no more that could end its step"


def given_up(state: TrialState) -> bool:
    """Return whether a controller has made an attempt the last that its author would have had followed by another."""
    if state.notes.idle is not None:
        return True
    forgiven, said = _forgiven(state), state.notes.tries
    return said is not None and (forgiven is None or said < forgiven + interruptions(state))


def _forgiven(state: TrialState) -> int | None:
    return None if state.step is None else state.step.retries.failures
