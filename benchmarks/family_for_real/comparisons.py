"""Which sweep runs under which policies on which nodes, and what is looked at."""

from dataclasses import dataclass
from pathlib import Path
from typing import Final

_SWEEPS: Final = Path(__file__).with_name("sweeps")
_ALWAYS: Final = ("makespan", "mean", "moves", "resizes", "CPU s", "cores used")


@dataclass(frozen=True, slots=True)
class Comparison:
    """``cores`` of each node as ``specon run`` takes them; the first of ``policies`` is the baseline."""

    name: str
    sweep: str
    nodes: int
    cores: str
    policies: tuple[str, ...]
    measures: tuple[str, ...]

    @property
    def file(self) -> Path:
        """The sweep."""
        return _SWEEPS / f"{self.sweep}.py"

    @property
    def columns(self) -> tuple[str, ...]:
        """What its table shows."""
        return (*self.measures, *_ALWAYS)


_PLACED: Final = ("best trial", "worst trial", "faster", "variance of use")
_FLOWCON2: Final = "flowcon2:alpha=0.05,interval=5"

COMPARISONS: Final = {
    one.name: one
    for one in (
        Comparison(
            "deadlines",
            "deadlines",
            2,
            "0.5",
            ("default", "fifo", "edf", "deadline:interval=5,move_cost=3"),
            ("deadlines met", "CPU used of allocated"),
        ),
        Comparison(
            "targets", "targets", 1, "1.2", ("default", "flowcon:interval=5", "tradl:interval=5"), ("time to target",)
        ),
        Comparison(
            "times per step",
            "times_per_step",
            1,
            "1.2",
            ("default", "dqoes:interval=5"),
            ("at pace, at a time", "or faster, at a time", "within 10 %", "that or faster"),
        ),
        Comparison(
            "equal nodes",
            "placement",
            4,
            "0.3",
            ("default", _FLOWCON2, "procon:interval=5", "cbalancer"),
            _PLACED,
        ),
        Comparison("mixed nodes", "placement", 3, "0.6,0.3,0.3", ("default", _FLOWCON2), _PLACED),
    )
}
