"""What attempts of a trial count as, failures, interruptions or leaving for nothing, and how many may follow. Pure."""

from typing import TYPE_CHECKING, Final

from controllers.core.failures import MOST_BARREN
from controllers.worlds.argo.idling import NO_IDLING, Idling

if TYPE_CHECKING:
    from controllers.worlds.argo.pods import PodRecord
    from controllers.worlds.argo.trials import TrialState

_LIMIT: Final = 1000
"""Attempts after which a trial is not moved any more where Argo would make them without a limit."""
_KEPT: Final = 5
"""One of so many attempts that Argo makes is kept for failures: by then a trial is moved and paused no more."""


def idling_of(state: "TrialState") -> Idling:
    """Return how often a trial has left for nothing by now, before its newest pod."""
    pod, previous = state.history.newest, state.history.previous
    if pod is None or pod.marks.idling is not None:
        return NO_IDLING if pod is None or pod.marks.idling is None else pod.marks.idling
    if previous is None or previous.attempt != pod.attempt - 1:
        return NO_IDLING
    return (previous.marks.idling or NO_IDLING).after(previous.leaving, asked=previous.asked)


def interruptions(state: "TrialState") -> int:
    """Return how many attempts, before that of the newest pod, were interrupted: these are no failures of the trial."""
    attempts = () if state.step is None else state.step.attempts
    if state.pod is not None:
        attempts = attempts[: state.pod.attempt - 1]
    return max(0, sum(one.interrupted for one in attempts) - idling_of(state).counted)


def allowance(state: "TrialState") -> int | None:
    """Return how many attempts may come before the last, None where as many as the trial's author wrote suffice.

    That counts all of them, so interruptions come on top, once the number of attempts comes near it.
    """
    tries, interrupted = None if state.step is None else state.step.retries.tries, interruptions(state)
    if tries is None or state.pod is None or not interrupted or state.pod.attempt < tries:
        return None
    return tries + interrupted


def idles_too_often(state: "TrialState") -> str:
    """Return why no attempt that leaves shall be followed by another any more, empty where it may be.

    One that waits to begin is then the last.
    """
    tries, pod, idling = None if state.step is None else state.step.retries.tries, state.pod, idling_of(state)
    if tries is None or pod is None or idling.barren < MOST_BARREN:
        return ""
    failures = pod.attempt - 1 - interruptions(state)
    return f"it left {idling.barren} times in a row unasked and came no further" if failures > tries else ""


def leaves_alike(state: "TrialState") -> str:
    """Return how the newest two attempts left, where both count as failures, ended at once and alike; else empty."""
    pod, previous, before = state.pod, state.history.previous, idling_of(state)
    if pod is None or previous is None or previous.attempt != pod.attempt - 1 or before.barren < MOST_BARREN:
        return ""
    if pod.leaving is None or previous.leaving is None:
        return ""
    words = pod.leaving.how.at_once
    counts = before.after(pod.leaving, asked=pod.asked).counted > before.counted
    return words if counts and words == previous.leaving.how.at_once else ""


def why_no_more(state: "TrialState", pod: "PodRecord") -> str:
    """Return why no attempt may be spent on a move or a pause of a trial, empty where one may be."""
    limit = state.step.retries.limit if state.step is not None else None
    most = _LIMIT if limit is None else limit
    if pod.attempt > most - most // _KEPT:
        return f"it has had {pod.attempt} attempts of the {most} that Argo makes, and must keep some for failures"
    if state.idle is not None and state.idle < pod.attempt:
        return "it left too often for nothing, and this attempt is its last"
    return ""


def why_not_the_last(state: "TrialState", pod: "PodRecord") -> str:
    """Return why no further attempt could end the step of a stopped trial, empty where one can."""
    limit = None if state.step is None else state.step.retries.limit
    if limit is None or pod.attempt <= limit:
        return ""
    return f"it has had {pod.attempt} attempts, and Argo makes no more that could end its step"


def given_up(state: "TrialState") -> bool:
    """Return whether a controller has made an attempt the last that its author would have had followed by another."""
    if state.idle is not None:
        return True
    tries = None if state.step is None else state.step.retries.tries
    return state.tries is not None and (tries is None or state.tries < tries + interruptions(state))
