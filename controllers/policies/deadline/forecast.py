"""What becomes of a trial's deadline: predicted from its measured pace and the steps it has left."""

import math
from dataclasses import dataclass
from enum import Enum

from controllers.core.model import Progress, Trial
from controllers.policies.kit.pace import Pace


class Prospect(Enum):
    """How much is known of a trial's deadline."""

    FREE = "it has none"
    UNKNOWN = "its pace or its number of steps is not known"
    STALE = "its newest report is too old"
    WITHIN_REACH = "it can be kept"
    OUT_OF_REACH = "no share that its node has would keep it"


@dataclass(frozen=True, slots=True)
class Forecast:
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


def forecast(trial: Trial, pace: Pace, progress: Progress | None, now: float, room: float, margin: float) -> Forecast:
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
        return Forecast(trial, Prospect.FREE, pace)
    left = deadline - now
    if progress is None:
        stale = trial.progress is not None
        return Forecast(trial, Prospect.STALE if stale else Prospect.UNKNOWN, pace, left=left)
    if not pace.measured or progress.steps_total is None:
        return Forecast(trial, Prospect.UNKNOWN, pace, left=left)
    steps = max(0, progress.steps_total - progress.step)
    most = room if pace.most is None else min(room, pace.most)
    top = pace.rate(most)
    fastest = steps / top if top > 0 else math.inf
    if fastest > left:
        return Forecast(trial, Prospect.OUT_OF_REACH, pace, most, left, steps, fastest)
    aim = left - margin * (deadline - trial.submitted_at)
    need = pace.cores_for(steps / aim) if aim > 0 else most
    return Forecast(trial, Prospect.WITHIN_REACH, pace, min(need, most), left, steps, fastest)
