"""What the deadline policy tells people of a trial. Pure."""

import math

from controllers.core.model import Trial
from controllers.policies.deadline.forecast import Forecast, Prospect

MINUTE = 60
COARSE_MINUTES = 2
COARSE_S = 10
_UNTOLD = "its end can't be foreseen: it never said how many steps it makes; use trial().steps(total) or log "


def outlook(one: Forecast, share: float, *, given_up: bool) -> str:
    """Return what is foreseen of a running trial; empty once its deadline has passed or while it is kept, it seems.

    Args:
        one: The forecast.
        share: Cores that it gets.
        given_up: Whether its deadline is given up for those of others.
    """
    if one.prospect is Prospect.FREE or one.left <= 0:
        return ""
    if one.prospect is Prospect.OUT_OF_REACH:
        return (
            f"will miss its deadline by {about(one.fastest - one.left)} at the most it can get ({one.need:.2g} cores)"
        )
    if given_up:
        late = one.late_by(share)
        by = f"by {about(late)} " if 0 < late < math.inf else ""
        return (
            f"will miss its deadline {by}with the {share:.2g} cores that other deadlines leave it on {one.trial.node}"
        )
    untold = one.trial.progress is not None and one.trial.progress.steps_total is None
    return f"{_UNTOLD}specon.steps_total" if untold and one.prospect is Prospect.UNKNOWN else ""


def waiting(trial: Trial) -> str:
    """Return what is foreseen of a trial that has not started."""
    return "waits for room" if trial.gated and trial.goals.deadline_at is not None else ""


def reason(one: Forecast, *, given_up: bool) -> str:
    """Return why a trial gets the share it gets."""
    match one.prospect:
        case Prospect.WITHIN_REACH if not given_up:
            return f"deadline in {about(one.left)}: {one.need:.2g} cores do for {_steps_left(one)}"
        case Prospect.WITHIN_REACH:
            return f"deadline in {about(one.left)}: beside the others it can't be kept"
        case Prospect.OUT_OF_REACH:
            return f"deadline in {about(max(0.0, one.left))}: out of reach with {one.need:.2g} cores"
        case Prospect.UNKNOWN:
            return "deadline: its pace is not known yet"
        case _:
            return "no deadline: it gets what the others leave"


def _steps_left(one: Forecast) -> str:
    return f"its {one.steps} steps" if one.steps != 1 else "its last step"


def about(seconds: float) -> str:
    """Return a duration coarse enough not to change with every look, such as ``40 s``, ``12 min`` or ``3 h 05 min``."""
    minutes = round(seconds / MINUTE)
    if minutes < COARSE_MINUTES:
        return f"{max(COARSE_S, math.ceil(seconds / COARSE_S) * COARSE_S)} s"
    return (
        f"{minutes} min" if minutes < COARSE_MINUTES * MINUTE else f"{minutes // MINUTE} h {minutes % MINUTE:02d} min"
    )
