"""What a sweep is after."""

import re
from dataclasses import dataclass
from typing import Final

from controllers.core.model import Direction
from hera_specon.errors import SweepError

# What MLflow takes as a metric's name.
_METRIC: Final = re.compile(r"[\w.\- :/]{1,250}")


@dataclass(frozen=True, slots=True)
class Objective:
    """The metric, under the name it is logged with, and which way it improves."""

    metric: str
    direction: Direction

    def __post_init__(self) -> None:
        if not _METRIC.fullmatch(str(self.metric)):
            problem = f"an objective is the name of a metric in MLflow, not {self.metric!r}"
            raise SweepError(problem)


def minimize(metric: str) -> Objective:
    """Return the objective of a low ``metric``: a loss, an error.

    Raises:
        SweepError: MLflow takes no metric of that name.
    """
    return Objective(metric, Direction.MINIMIZE)


def maximize(metric: str) -> Objective:
    """Return the objective of a high ``metric``: an accuracy, a score.

    Raises:
        SweepError: MLflow takes no metric of that name.
    """
    return Objective(metric, Direction.MAXIMIZE)
