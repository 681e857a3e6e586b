"""The faults that wait for an attempt or an action to befall it."""

from collections.abc import Sequence

from controllers.core.model import TrialId
from controllers.worlds.simulated.faults import ResizeDelay, RestoreFault, StartFailure, WorldFault


class Mishaps:
    """Looks faults up where the world asks whether one is due."""

    def __init__(self, faults: Sequence[WorldFault] = ()) -> None:
        self._starts = {(fault.trial, fault.attempt) for fault in faults if isinstance(fault, StartFailure)}
        self._restores = {(fault.trial, fault.attempt): fault for fault in faults if isinstance(fault, RestoreFault)}
        self._delays = [fault for fault in faults if isinstance(fault, ResizeDelay)]

    def start_fails(self, trial: TrialId, attempt: int) -> bool:
        """Return whether an attempt ends before its training process begins."""
        return (trial, attempt) in self._starts

    def restore(self, trial: TrialId, attempt: int) -> tuple[float, bool]:
        """Return the seconds that an attempt restores longer, and whether the newest checkpoint is broken."""
        fault = self._restores.get((trial, attempt))
        return (0.0, False) if fault is None else (fault.seconds, fault.broken)

    def resize_delay_s(self, now: float) -> float:
        """Return the seconds by which a resize that is asked for ``now`` comes late."""
        return sum(fault.delay_s for fault in self._delays if fault.at <= now <= fault.at + fault.seconds)
