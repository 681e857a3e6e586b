"""Faults that strike while a controller looks, decides and acts."""

from collections.abc import Callable, Sequence

from controllers.lab.fault_search.controller_faults import ControllerCrash, ControllerFault, SlowController


class ControllerDied(BaseException):
    """The controller was killed; it is started again ``down_s`` later. Nothing may catch it, as with SIGKILL."""

    def __init__(self, down_s: float) -> None:
        super().__init__(f"the controller is killed, for {down_s:g} s")
        self.down_s = down_s


class Interference:
    """Counts the edges in a tick, and strikes at the one that a fault names.

    Args:
        faults: of which those count that strike within a tick.
        go_on: lets the world go on for so many seconds.
    """

    def __init__(self, faults: Sequence[ControllerFault], go_on: Callable[[float], None]) -> None:
        kinds = ControllerCrash | SlowController
        self._waiting = sorted((fault for fault in faults if isinstance(fault, kinds)), key=lambda fault: fault.at)
        self._go_on = go_on
        self._began_at = 0.0
        self._edges = 0

    def begin(self, now: float) -> None:
        """Begin a tick at ``now`` seconds of virtual time."""
        self._began_at, self._edges = now, 0

    def edge(self) -> None:
        """Pass an edge.

        Raises:
            ControllerDied: the controller dies here.
        """
        number, self._edges = self._edges, self._edges + 1
        for fault in [fault for fault in self._waiting if fault.at <= self._began_at and fault.edge == number]:
            self._waiting.remove(fault)
            if isinstance(fault, ControllerCrash):
                raise ControllerDied(fault.down_s)
            self._go_on(fault.seconds)
