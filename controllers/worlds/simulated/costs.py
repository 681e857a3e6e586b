"""What things cost in a simulated world, beside training itself. Seconds of time, or of work on the trial's share."""

import math
from dataclasses import dataclass, fields
from typing import Self


@dataclass(frozen=True, slots=True)
class Costs:
    """Delays and overheads, each measured somewhere; the class methods are the sets that were.

    ``start_s``: from placement to the training process (container, volumes).
    ``start_cpu_s``: core seconds of imports and data before an attempt's first step, on its own share.
    ``leave_s``: from the request to leave until the process has saved and gone.
    ``next_attempt_s``: from there until the next attempt can be placed; ``retry_s``: the same after a failure.
    ``restore_s``: loading the checkpoint.
    ``resize_s``: until a resize takes hold.
    ``grace_s``: from the request to leave until a process that ignores it is killed.
    ``metric_delay_s``: until a logged value can be read.
    ``heartbeat_s``: the controller looks at multiples of it, wherever there may be something new to decide.
    """

    start_s: float = 0.0
    start_cpu_s: float = 0.0
    leave_s: float = 0.0
    next_attempt_s: float = 0.0
    restore_s: float = 0.0
    retry_s: float = 0.0
    resize_s: float = 0.0
    grace_s: float = 30.0
    metric_delay_s: float = 0.0
    heartbeat_s: float = 1.0

    def __post_init__(self) -> None:
        for field in fields(self):
            amount = getattr(self, field.name)
            if not (math.isfinite(amount) and amount >= 0) or (field.name == "heartbeat_s" and amount == 0):
                message = f"{field.name} can't be {amount} s"
                raise ValueError(message)

    @classmethod
    def free(cls) -> Self:
        """Nothing costs anything: what a policy could win at best."""
        return cls()

    @classmethod
    def argo(cls) -> Self:
        """As measured on a Kubernetes 1.36 with Argo 4.0.7 and a PyTorch trial (benchmarks/cluster/move.py)."""
        return cls(
            start_s=1.9, start_cpu_s=5.5, leave_s=0.5, next_attempt_s=5.2, retry_s=5.2, restore_s=0.1, resize_s=0.2,
            metric_delay_s=1.0, heartbeat_s=0.5,
        )  # fmt: skip

    @classmethod
    def local(cls) -> Self:
        """As measured for the local world with its fork server (benchmarks/start_of_an_attempt.py)."""
        return cls(start_cpu_s=0.06, leave_s=0.3, restore_s=0.1, metric_delay_s=1.0, heartbeat_s=0.2)

    @classmethod
    def thesis(cls) -> Self:
        """As the SpeCon thesis gives them: save and resume take under 5 s, whatever the progress (ch. 6.3)."""
        return cls(leave_s=2.5, restore_s=2.5)
