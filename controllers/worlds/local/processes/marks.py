"""What tells a process from any other for good: kept in files, it names nobody on another machine or after a reboot."""

from dataclasses import dataclass
from functools import cache

from controllers.worlds.local.processes import proctree


@dataclass(frozen=True, slots=True)
class ProcessMark:
    """A process of this machine since it was booted: ``boot`` is another on any other machine, and after a reboot.

    ``pid`` is its number in the ``namespace`` of numbers that its controller had. ``started`` tells when it
    began, in the unit of ``proctree.start_time``. A mark with something missing names nobody.
    """

    pid: int
    started: int
    boot: str
    namespace: str

    @classmethod
    def of(cls, pid: int) -> "ProcessMark":
        """Return the mark of a process of this machine."""
        boot, namespace = _here()
        return cls(pid, proctree.start_time(pid) or 0, boot, namespace)

    @property
    def alive(self) -> bool:
        """Whether that very process still runs here."""
        known = all((self.pid, self.started, self.boot, self.namespace))
        same = known and _here() == (self.boot, self.namespace) and proctree.start_time(self.pid) == self.started
        return same and proctree.alive(self.pid)


@cache
def _here() -> tuple[str, str]:
    return proctree.here()
