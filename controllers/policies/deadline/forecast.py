"""What becomes of a trial's deadline, from its measured pace and the steps it has left, and what people are told."""

import math
from dataclasses import dataclass
from enum import Enum
from typing import Final

from controllers.core.model import Progress, Trial
from controllers.policies.kit.paces import Pace

_MINUTE: Final = 60
_COARSE_S: Final = 10
_COARSE_FROM: Final = 2
"""A duration of so many minutes is told in minutes, one of so many hours in hours."""
_YEARS_S: Final = 2 * 365 * 24 * 3600
"""Nobody trains for longer: such a duration comes of odd reports or deadlines, and may be infinite."""
_UNTOLD: Final = (
    "its end can't be foreseen: it never said how many steps it makes; use trial().steps(total) or log "
    "specon.steps_total"
)


class Prospect(Enum):
    """How much is known of a trial's deadline."""

    FREE = "it has none"
    UNKNOWN = "its pace or its number of steps is not known"
    STALE = "its newest report is too old"
    WITHIN_REACH = "it can be kept"
    OUT_OF_REACH = "no share that its node has would keep it"


@dataclass(frozen=True, slots=True)
class TrialOutlook:
    """A trial, its pace, and what follows from them.

    ``need`` is the fewest cores that keep the deadline with the margin, or as near to that as there are cores;
    ``left`` the seconds until the deadline; ``steps`` those still to be made; ``fastest`` the seconds that they take
    with the most cores that the trial can get.
    """

    trial: Trial
    prospect: Prospect
    pace: Pace
    need: float = 0.0
    left: float = math.inf
    steps: int = 0
    fastest: float = 0.0

    @property
    def slack(self) -> float:
        """Seconds that the trial could stand still and yet keep its deadline."""
        return self.left - self.fastest

    @property
    def demand(self) -> float:
        """Core seconds that it still needs, at ``need`` cores."""
        rate = self.pace.rate(self.need)
        return self.need * self.steps / rate if rate > 0 else 0.0

    def late_by(self, cores: float) -> float:
        """Return the seconds by which it will be late with ``cores`` cores from now on."""
        rate = self.pace.rate(cores)
        return (self.steps / rate if rate > 0 else math.inf) - self.left


def forecast(
    trial: Trial, pace: Pace, progress: Progress | None, now: float, room: float, margin: float
) -> TrialOutlook:
    """Return what becomes of the deadline of a running trial.

    Args:
        trial: The trial, on one node.
        pace: Its measured pace.
        progress: Its progress where that may be decided on.
        now: Seconds of the sweep's clock.
        room: Cores that it could have at most.
        margin: Part of the time from submission to deadline that is kept in reserve.
    """
    deadline = trial.goals.deadline_at
    if deadline is None:
        return TrialOutlook(trial, Prospect.FREE, pace)
    left = deadline - now
    if progress is None:
        stale = trial.progress is not None
        return TrialOutlook(trial, Prospect.STALE if stale else Prospect.UNKNOWN, pace, left=left)
    if not pace.measured or progress.steps_total is None:
        return TrialOutlook(trial, Prospect.UNKNOWN, pace, left=left)
    steps = max(0, progress.steps_total - progress.step)
    most = room if pace.most is None else min(room, pace.most)
    top = pace.rate(most)
    fastest = steps / top if top > 0 else math.inf
    if fastest > left:
        return TrialOutlook(trial, Prospect.OUT_OF_REACH, pace, most, left, steps, fastest)
    aim = left - margin * (deadline - trial.submitted_at)
    need = pace.cores_for(steps / aim) if aim > 0 else most
    return TrialOutlook(trial, Prospect.WITHIN_REACH, pace, min(need, most), left, steps, fastest)


def outlook(foreseen: TrialOutlook, share: float, *, given_up: bool) -> str:
    """Return what is foreseen of a running trial; empty once its deadline has passed or while it is kept, it seems.

    Args:
        foreseen: The forecast.
        share: Cores that it gets.
        given_up: Whether its deadline is given up for those of others.
    """
    if foreseen.prospect is Prospect.FREE or foreseen.left <= 0:
        return ""
    if foreseen.prospect is Prospect.OUT_OF_REACH:
        late = about(foreseen.fastest - foreseen.left)
        return f"will miss its deadline by {late} at the most it can get ({foreseen.need:.2g} cores)"
    if given_up:
        late_by, node = foreseen.late_by(share), foreseen.trial.node
        by = f"by {about(late_by)} " if 0 < late_by < math.inf else ""
        return f"will miss its deadline {by}with the {share:.2g} cores that other deadlines leave it on {node}"
    untold = foreseen.trial.progress is not None and foreseen.trial.progress.steps_total is None
    return _UNTOLD if untold and foreseen.prospect is Prospect.UNKNOWN else ""


def waiting(trial: Trial) -> str:
    """Return what is foreseen of a trial that has not started."""
    return "waits for room" if trial.waits and trial.goals.deadline_at is not None else ""


def share_reason(foreseen: TrialOutlook, *, given_up: bool) -> str:
    """Return why a trial gets the share it gets."""
    match foreseen.prospect:
        case Prospect.WITHIN_REACH if not given_up:
            steps = f"its {foreseen.steps} steps" if foreseen.steps != 1 else "its last step"
            return f"deadline in {about(foreseen.left)}: {foreseen.need:.2g} cores do for {steps}"
        case Prospect.WITHIN_REACH:
            return f"deadline in {about(foreseen.left)}: beside the others it can't be kept"
        case Prospect.OUT_OF_REACH:
            return f"deadline in {about(max(0.0, foreseen.left))}: out of reach with {foreseen.need:.2g} cores"
        case Prospect.UNKNOWN:
            return "deadline: its pace is not known yet"
        case Prospect.STALE:
            return "deadline: its newest report is too old to decide on"
        case Prospect.FREE:
            return "no deadline: it gets what the others leave"


def about(seconds: float) -> str:
    """Return a duration coarse enough not to change with every look, such as ``40 s``, ``12 min`` or ``3 h 05 min``."""
    if seconds > _YEARS_S:
        return "years"
    minutes = round(seconds / _MINUTE)
    if minutes < _COARSE_FROM:
        return f"{max(_COARSE_S, math.ceil(seconds / _COARSE_S) * _COARSE_S)} s"
    if minutes < _COARSE_FROM * _MINUTE:
        return f"{minutes} min"
    return f"{minutes // _MINUTE} h {minutes % _MINUTE:02d} min"
