"""What KaiS remembers between two decisions, and what a look of it goes by."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from controllers.core.model import NodeName, TrialId
from controllers.policies.kit.asked_moves import AskedMoves
from controllers.policies.kit.work_left import SweepMeasurements

MOST_MOVES: Final = 2
"""Moves of a trial in its life."""


@dataclass(frozen=True, slots=True)
class KaisState:
    """What was measured, where trials were placed that have yet to start, moves, submissions, and the next look."""

    measured: SweepMeasurements = field(default_factory=SweepMeasurements)
    starting: Mapping[TrialId, NodeName] = field(default_factory=dict)
    moves: AskedMoves = field(default_factory=AskedMoves)
    submitted: tuple[float, ...] = ()
    due_at: float = 0.0


@dataclass(frozen=True, slots=True)
class LookSettings:
    """The policy's parameters that a look goes by.

    Reports older than ``oldest`` seconds move no trial and change no share. ``min_change`` is the least change of a
    share, as a part of it; ``min_cpu`` the least share, in cores.
    """

    oldest: float
    min_change: float
    min_cpu: float
