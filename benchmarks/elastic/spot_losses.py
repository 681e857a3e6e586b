"""What a sweep loses with each spot node that is taken: with notices of 0, 15 and 120 s, and by who heeds them."""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from controllers.core.errors import SpeconError
from controllers.core.policy import Policy
from controllers.driving.assembly import guard_policy
from controllers.lab.simulation.experiments.elastic_experiments import LIFE_S, ElasticSweep
from controllers.lab.simulation.run import SimulatedRun, simulate
from controllers.policies import Guarded, LetGo
from controllers.policies.registry import parse_policy
from controllers.worlds.simulated.scaling import SpotMarket
from controllers.worlds.simulated.scenario import Costs, Scenario
from controllers.worlds.simulated.workload import Workload

NOTICES_S: Final = (0.0, 15.0, 120.0)
TRIALS, NODES = 100, 5
Guard = Callable[[Policy[Any]], Policy[Any]]


def without_handling(policy: Policy[Any]) -> Policy[Any]:
    """Return ``policy`` behind guards that heed no notice: nodes that come are asked for all the same."""
    return Guarded(policy=LetGo(policy=policy))


HEEDED_BY: Final[Mapping[str, tuple[bool, Guard]]] = {
    "nobody": (False, without_handling),
    "the cluster, which drains": (True, without_handling),
    "the controller": (False, guard_policy),
    "both": (True, guard_policy),
}
"""Whether the cluster drains a node at the notice, and the guards around the policy."""


class TraceError(SpeconError):
    """A file holds no trace of spot nodes."""


@dataclass(frozen=True, slots=True)
class SpotCase:
    """Sweeps under ``policy`` on spot nodes whose end is known ``notice_s`` before, heeded by one of ``HEEDED_BY``.

    ``available`` is how many nodes the provider has, from a trace; without one, nodes live for random times.
    """

    policy: str
    notice_s: float
    heeded_by: str
    available: tuple[tuple[float, float], ...] = ()

    def workload(self, seed: int) -> Workload:
        """Return the workload of ``seed``."""
        drains, _ = HEEDED_BY[self.heeded_by]
        life_s = None if self.available else LIFE_S
        market = SpotMarket(self.notice_s, drains=drains, mean_life_s=life_s, available=self.available)
        return ElasticSweep(TRIALS, NODES, spot=market).workload(seed)

    def run(self, seed: int) -> "SpotRun":
        """Simulate the sweep of ``seed``."""
        _, guard = HEEDED_BY[self.heeded_by]
        scenario = Scenario(self.workload(seed), Costs.argo(), seed)
        return SpotRun.of(simulate(scenario, parse_policy(self.policy), guard=guard))


@dataclass(frozen=True, slots=True)
class SpotRun:
    """One sweep: how many nodes were taken, the lone seconds of training lost, failures, and how it ended."""

    taken: int
    lost_work_s: float
    attempts: int
    makespan_s: float
    cost: float

    @classmethod
    def of(cls, run: SimulatedRun) -> "SpotRun":
        """Return the figures of ``run``."""
        attempts = sum(trial.attempts for trial in run.result.trials)
        return cls(run.taken, run.lost_work_s, attempts, run.result.makespan_s, run.bill.cost or 0.0)


def read_trace(file: Path) -> tuple[tuple[float, float], ...]:
    """Return how many nodes a provider has, as pairs (from when in seconds, nodes).

    ``file`` is one of https://github.com/skypilot-org/spot-traces: the numbers of nodes that could be had, one every
    ``gap_seconds``. One that tells of a single node stands for as many as a sweep may have: within three minutes of
    each other, nearly all nodes of a kind are taken (Kim et al., "Spot-and-Scoot", 2026).

    Raises:
        TraceError: It holds no such trace.
    """
    try:
        told = json.loads(file.read_text(encoding="utf-8"))
        gap_s, counts = float(told["metadata"]["gap_seconds"]), [float(count) for count in told["data"]]
        most = max(counts)
    except (OSError, ValueError, KeyError, TypeError) as error:
        message = f"{file}: no trace with metadata.gap_seconds and data, a number of nodes at a time: {error!r}"
        raise TraceError(message) from error
    scale = NODES if most == 1 else 1.0
    pairs = [(place * gap_s, count * scale) for place, count in enumerate(counts)]
    changes = [pair for before, pair in zip([(0.0, -1.0), *pairs], pairs, strict=False) if pair[1] != before[1]]
    return tuple(changes)


def cases(policies: tuple[str, ...], available: tuple[tuple[float, float], ...]) -> list[SpotCase]:
    """Return every case: without any notice, there is nothing to heed."""
    return [
        SpotCase(policy, notice_s, heeded_by, available)
        for policy in policies
        for notice_s in NOTICES_S
        for heeded_by in (HEEDED_BY if notice_s else ("nobody",))
    ]
