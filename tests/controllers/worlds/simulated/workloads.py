"""Small workloads whose times can be worked out by hand, and policies that do what a test tells them."""

import math
import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from controllers.core.actions import Action, Decision, Place, Proposal
from controllers.core.model import NodeName, Snapshot, TrialId
from controllers.core.policy import Policy
from controllers.policies.kit.settings import NoState
from controllers.worlds.simulated.scenario import Costs, Scenario
from controllers.worlds.simulated.workload import CurvePoint, NodeSpec, Speedup, TrialSpec, Workload


def trial(name: str, work_s: float = 100.0, *, at: float = 0.0, cpu: float = 1.0, **fields: Any) -> TrialSpec:  # noqa: ANN401 - any field
    """Return a trial that reports its loss ten times."""
    reports = tuple(CurvePoint(work_s * part / 10, 1.0 / part) for part in range(1, 11))
    return TrialSpec(TrialId(name), at, work_s, reports, cpu, **fields)


def nodes(*cores: float) -> tuple[NodeSpec, ...]:
    """Return nodes n1, n2 and so on."""
    return tuple(NodeSpec(NodeName(f"n{number}"), cpu) for number, cpu in enumerate(cores, start=1))


def scenario(
    trials: Sequence[TrialSpec],
    cores: Sequence[float] = (1.0,),
    costs: Costs | None = None,
    pinned: Mapping[str, str] | None = None,
) -> Scenario:
    """Return a scenario in which nothing costs anything unless ``costs`` says so."""
    pins = {TrialId(name): NodeName(node) for name, node in (pinned or {}).items()}
    return Scenario(Workload(tuple(trials), nodes(*cores)), costs or Costs.free(), pinned=pins)


@dataclass(frozen=True)
class Scripted:
    """A policy that proposes each action of ``script`` once its time has come, and nothing again."""

    script: tuple[tuple[float, Action], ...]
    name: str = "scripted"

    @property
    def needs(self) -> frozenset[type[Action]]:
        return frozenset(type(action) for _, action in self.script)

    @property
    def state_type(self) -> type[int]:
        return int

    def initial(self) -> int:
        return 0

    def decide(self, snapshot: Snapshot, state: int) -> Decision[int]:
        due = [action for at, action in self.script[state:] if at <= snapshot.now]
        later = self.script[state + len(due) :]
        return Decision(
            state + len(due),
            tuple(Proposal(action, "as scripted") for action in due),
            wake_at=later[0][0] if later else None,
        )


@dataclass(frozen=True)
class Idle:
    """A policy that does nothing, though it may say that it places trials."""

    needs: frozenset[type[Action]] = frozenset()
    name: str = "idle"

    @property
    def state_type(self) -> type[NoState]:
        return NoState

    def initial(self) -> NoState:
        return NoState()

    def decide(self, snapshot: Snapshot, state: NoState) -> Decision[NoState]:
        del snapshot
        return Decision(state)


class EveryHeartbeat:
    """Asks to be woken at the next heartbeat, whatever ``policy`` asks for."""

    def __init__(self, policy: Policy[Any]) -> None:
        self._policy = policy

    @property
    def name(self) -> str:
        return self._policy.name

    @property
    def needs(self) -> frozenset[type[Action]]:
        return self._policy.needs

    @property
    def state_type(self) -> type[Any]:
        return self._policy.state_type

    def initial(self) -> Any:  # noqa: ANN401 - each policy has its own state
        return self._policy.initial()

    def decide(self, snapshot: Snapshot, state: Any) -> Decision[Any]:  # noqa: ANN401 - as above
        return replace(self._policy.decide(snapshot, state), wake_at=snapshot.now)


PLACES: frozenset[type[Action]] = frozenset({Place})


def mixed(trials: int, cores: Sequence[float], seed: int = 0, costs: Costs | None = None, **fields: Any) -> Scenario:  # noqa: ANN401 - any field of a trial
    """Return trials that learn quickly at first, some sooner than others, and come over five minutes."""
    chance = random.Random(seed)  # noqa: S311 - makes workloads
    made = tuple(_learning(f"t{number:04d}", chance, fields) for number in range(trials))
    return Scenario(Workload(made, nodes(*cores)), costs or Costs.argo(), seed)


def _learning(name: str, chance: random.Random, fields: Mapping[str, Any]) -> TrialSpec:
    work, speed, arrival = chance.uniform(60, 400), chance.uniform(4, 30), chance.uniform(0, 300)
    reports = tuple(
        CurvePoint(work * part / 50, math.exp(-speed * part / 50) + chance.gauss(0, 0.003)) for part in range(1, 51)
    )
    wanted: dict[str, Any] = {"cpu": 0.5, "speedup": Speedup.linear(2.0), **fields}
    return TrialSpec(TrialId(name), arrival, work, reports, **wanted)
