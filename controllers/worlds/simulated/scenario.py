"""One simulated run: what is simulated, what starts and moves cost there, and from which seed."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Self

from controllers.core.model import NodeName, TrialId
from controllers.worlds.simulated.errors import WorkloadError
from controllers.worlds.simulated.workload import Workload


@dataclass(frozen=True, slots=True)
class Costs:
    """Delays and overheads beside training itself, in seconds; the class methods are sets that were measured.

    ``start_s``: from placement to the training process (container, volumes).
    ``start_cpu_s``: core seconds of imports and data before an attempt's first step, on its own share.
    ``leave_s``: from the request to leave until the process has saved and gone.
    ``next_attempt_s``: from there until the next attempt can be placed; ``retry_s``: the same after a failure.
    ``restore_s``: loading the checkpoint.
    ``resize_s``: until a resize takes hold.
    ``grace_s``: from the request to leave until a process that ignores it is killed.
    ``metric_delay_s``: until a logged value can be read.
    ``meet_s``: until the workers of a gang have found each other, beside the start of each.
    ``meet_within_s``: how long a gang's workers wait for those that have not come, before they all leave again.
    ``heartbeat_s``: the controller looks at multiples of it, wherever there may be something new to decide.

    Raises:
        WorkloadError: one is negative or not finite.
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
    meet_s: float = 0.0
    meet_within_s: float = 60.0

    def __post_init__(self) -> None:
        for name in (cost.name for cost in fields(self)):
            amount = getattr(self, name)
            positive = name in {"heartbeat_s", "meet_within_s"}
            if not (math.isfinite(amount) and amount >= 0) or (positive and amount == 0):
                message = f"{name} must be finite and {'above' if positive else 'at least'} 0 s, not {amount}"
                raise WorkloadError(message)

    @classmethod
    def free(cls) -> Self:
        """Nothing costs anything: what a policy could win at best."""
        return cls()

    @classmethod
    def argo(cls) -> Self:
        """As measured on a Kubernetes 1.36 with Argo 4.0.7 and a PyTorch trial (benchmarks/cluster/move.py)."""
        return cls(
            start_s=1.9, start_cpu_s=5.5, leave_s=0.5, next_attempt_s=5.2, retry_s=5.2, restore_s=0.1, resize_s=0.2,
            metric_delay_s=1.0, heartbeat_s=0.5, meet_s=0.8,
        )  # fmt: skip

    @classmethod
    def local(cls) -> Self:
        """As measured for the local world with its fork server (benchmarks/start_of_an_attempt.py)."""
        return cls(start_cpu_s=0.06, leave_s=0.3, restore_s=0.1, metric_delay_s=1.0, heartbeat_s=0.2, meet_s=0.1)

    @classmethod
    def thesis(cls) -> Self:
        """As the SpeCon thesis gives them: save and resume take under 5 s, whatever the progress (ch. 6.3)."""
        return cls(leave_s=2.5, restore_s=2.5)


@dataclass(frozen=True)
class Scenario:
    """A workload, what things cost, and the seed of what is drawn by chance (ties between nodes).

    ``pinned`` names the node of a trial's first attempt, so that policies can be compared from the same initial
    placement; trials that it leaves out go where the default scheduler wants them.
    """

    workload: Workload
    costs: Costs = field(default_factory=Costs.argo)
    seed: int = 0
    pinned: Mapping[TrialId, NodeName] = field(default_factory=dict)

    def __post_init__(self) -> None:
        trials = {trial.id for trial in self.workload.trials}
        nodes = {node.name for node in self.workload.nodes}
        for trial, node in self.pinned.items():
            if trial not in trials or node not in nodes:
                message = f"pinned[{trial}] = {node}: no such {'trial' if trial not in trials else 'node'}"
                raise WorkloadError(message)
