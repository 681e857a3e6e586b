"""Tenants side by side over hours: what their trials do with the room they get, and who holds how much of the time."""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

from controllers.core.model import Node, NodeName, TrialId
from controllers.policies.arbiter import Amount, Arbiter, ArbiterState, Claimant, Part, SweepDemand

STEP_S = 15.0


@dataclass(frozen=True, slots=True)
class Tenant:
    """So many ``sweeps`` of a namespace, each with so many ``trials``, and how these behave.

    A trial asks for ``cpu`` cores and runs for ``work_s``; then another like it comes. It says that it ends in
    ``says_left_s``. Once it is asked to leave, it does within ``leaves_after_s``: what is deaf only when it is killed.
    The sweeps are there from ``at`` on.
    """

    namespace: str
    sweeps: int = 1
    trials: int = 1
    cpu: float = 1.0
    work_s: float = 1e9
    says_left_s: float | None = None
    leaves_after_s: float = STEP_S
    at: float = 0.0
    prefix: str = ""

    def names(self) -> list[str]:
        """Return the names of its sweeps."""
        return [f"{self.prefix or self.namespace}{number:03}" for number in range(self.sweeps)]


@dataclass(slots=True)
class _Trial:
    name: str
    since: float
    node: str = ""
    began: float = 0.0
    attempt: int = 0
    asked_at: float | None = None


@dataclass
class Neighbours:
    """All tenants on the same nodes, each taking what room it is shown, in the order of ``tenants``."""

    tenants: Sequence[Tenant]
    nodes: Sequence[Node]
    arbiter: Arbiter
    ran: set[str] = field(default_factory=set)
    _used: dict[str, float] = field(default_factory=lambda: defaultdict(float))
    _state: ArbiterState = field(default_factory=ArbiterState)
    _trials: dict[str, list[_Trial]] = field(default_factory=dict)

    def held(self, first: float, until: float) -> dict[str, float]:
        """Let time pass until then; return the part of all cores that each namespace had from ``first`` on."""
        seconds = defaultdict[str, float](float)
        for step in range(int(until / STEP_S)):
            now = step * STEP_S
            for tenant in self.tenants:
                for name in tenant.names() if now >= tenant.at else ():
                    self._go_on(now, tenant, name)
            parts = self._decide(now)
            for tenant, name in self._there():
                self._obey(now, tenant, name, parts[name])
            for tenant, name in self._there() if now >= first else ():
                seconds[tenant.namespace] += sum(tenant.cpu for trial in self._trials[name] if trial.node)
        whole = sum(node.cpu for node in self.nodes) * (until - first) / STEP_S
        return {tenant.namespace: seconds[tenant.namespace] / whole for tenant in self.tenants}

    def _there(self) -> Iterator[tuple[Tenant, str]]:
        return ((tenant, name) for tenant in self.tenants for name in tenant.names() if name in self._trials)

    def _go_on(self, now: float, tenant: Tenant, name: str) -> None:
        if name not in self._trials:
            self._trials[name] = [_Trial(f"{name}.{number:03}", now) for number in range(tenant.trials)]
        for index, trial in enumerate(self._trials[name]):
            if trial.node and trial.asked_at is not None and now - trial.asked_at >= tenant.leaves_after_s:
                self._used[trial.node] -= tenant.cpu
                trial.node, trial.asked_at = "", None
            elif trial.node and now - trial.began >= tenant.work_s:
                self._used[trial.node] -= tenant.cpu
                self._trials[name][index] = _Trial(f"{trial.name}'", now)

    def _decide(self, now: float) -> dict[str, Part]:
        demands = [
            SweepDemand(name, tenant.namespace, tuple(_claimant(tenant, trial) for trial in self._trials[name]))
            for tenant, name in self._there()
        ]
        ruling = self.arbiter.decide(now, demands, self.nodes, self._state)
        self._state = ruling.state
        return dict(ruling.parts)

    def _obey(self, now: float, tenant: Tenant, name: str, part: Part) -> None:
        for trial in self._trials[name]:
            if TrialId(trial.name) in part.gives_back and trial.asked_at is None:
                trial.asked_at = now
            elif not trial.node and TrialId(trial.name) not in part.held_back:
                self._start(now, tenant, trial, part)

    def _start(self, now: float, tenant: Tenant, trial: _Trial, part: Part) -> None:
        for node in self.nodes:
            free = node.cpu - self._used[node.name] - part.meant_for_others(node.name).cpu
            if free >= tenant.cpu - 1e-9:
                self._used[node.name] += tenant.cpu
                trial.node, trial.began, trial.attempt = node.name, now, trial.attempt + 1
                self.ran.add(trial.name)
                return


def _claimant(tenant: Tenant, trial: _Trial) -> Claimant:
    waits = Claimant(TrialId(trial.name), Amount(tenant.cpu), since=trial.since, attempt=trial.attempt)
    if not trial.node:
        return waits
    asked = trial.asked_at is not None
    return replace(
        waits,
        cpu=tenant.cpu,
        nodes=(NodeName(trial.node),),
        steady=not asked,
        leaving=asked,
        left_s=tenant.says_left_s,
    )
