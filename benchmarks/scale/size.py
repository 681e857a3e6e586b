"""How large a simulated cluster is to be, and how long it is looked at."""

from dataclasses import dataclass

NAMESPACE = "scale"
NODE_CPU = 1.0
"""Cores of a node."""
TRIAL_CPU = 0.1
"""Cores that a trial asks for."""
_ROOM = 8
"""Trials that fit on a node with what runs beside them."""


class SizeError(Exception):
    """Sizes that do not fit together. The message says which."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Size:
    """Nodes, trials over all sweeps, and sweeps (each a workflow of its own).

    ``seconds`` is how long the controller is looked at once it has begun; every trial logs a new point each
    ``report_every`` seconds. ``priority`` is the niceness of the controller's process, None for this one's.
    """

    nodes: int
    trials: int
    sweeps: int
    seconds: float = 90.0
    report_every: float = 30.0
    policy: str = "specon+flowcon"
    priority: int | None = None

    def __post_init__(self) -> None:
        if min(self.nodes, self.trials, self.sweeps) < 1:
            message = "at least one node, one trial and one sweep are needed"
            raise SizeError(message)
        if self.trials % self.sweeps:
            message = f"{self.trials} trials cannot be dealt evenly to {self.sweeps} sweeps"
            raise SizeError(message)
        if self.trials > self.nodes * _ROOM:
            message = f"{self.trials} trials do not fit on {self.nodes} nodes: at most {_ROOM} on each"
            raise SizeError(message)

    @property
    def trials_per_sweep(self) -> int:
        """Trials of each sweep."""
        return self.trials // self.sweeps

    def node_of(self, trial: int) -> str:
        """Return where a trial begins, by its number over all sweeps: each sweep fills nodes of its own.

        Dealt out one to a node, trials have nothing to share and nobody to make room for: policies would be idle.
        """
        return node_name(trial * self.nodes // self.trials)


def node_name(number: int) -> str:
    """Return the name of a node."""
    return f"node-{number:05d}"
