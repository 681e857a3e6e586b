"""Faults that strike while a controller looks, decides and acts."""

from collections.abc import Callable, Sequence

from controllers.fault_search.controller_faults import ControllerCrash, ControllerFault, SlowController


class ControllerDied(BaseException):
    """The controller was killed; it is started again ``down_s`` later."""

    def __init__(self, down_s: float) -> None:
        super().__init__(f"the controller is killed, for {down_s:g} s")
        self.down_s = down_s


class Interference:
    """Counts the edges of the calls in a tick, and strikes at the one that a fault names.

    Args:
        faults: of which those count that strike within a tick.
        go_on: lets the world go on for so many seconds.
    """

    def __init__(self, faults: Sequence[ControllerFault], go_on: Callable[[float], None]) -> None:
        ordered = sorted(faults, key=lambda fault: fault.at)
        self._crashes = [fault for fault in ordered if isinstance(fault, ControllerCrash)]
        self._slownesses = [fault for fault in ordered if isinstance(fault, SlowController)]
        self._go_on = go_on
        self._crash: ControllerCrash | None = None
        self._slow: SlowController | None = None
        self._edges = 0

    def begin(self, now: float) -> None:
        """Begin a tick at ``now`` seconds of virtual time."""
        self._edges = 0
        if self._crash is None and self._crashes and self._crashes[0].at <= now:
            self._crash = self._crashes.pop(0)
        self._slow = self._slownesses.pop(0) if self._slownesses and self._slownesses[0].at <= now else None

    def edge(self) -> None:
        """Pass one edge of a call.

        Raises:
            ControllerDied: the controller dies here.
        """
        number, self._edges = self._edges, self._edges + 1
        if self._slow is not None and self._slow.call == number:
            self._go_on(self._slow.seconds)
        if self._crash is not None and self._crash.call == number:
            self.end()

    def end(self) -> None:
        """End the tick.

        Raises:
            ControllerDied: the tick was too short for the edge at which the controller should have died.
        """
        crash, self._crash = self._crash, None
        if crash is not None:
            raise ControllerDied(crash.down_s)
