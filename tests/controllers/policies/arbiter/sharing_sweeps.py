"""Short ways to write what sweeps want, and to go from one round of the arbiter to the next."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from controllers.core.model import Node, NodeName, TrialId
from controllers.policies.arbiter import Amount, Arbiter, ArbiterState, Claimant, NamespaceTerms, Part, SweepDemand

AT_ONCE = Arbiter(settles=0.0, keeps=0.0)


def waits(name: str, cpu: float = 1.0, **changes: object) -> Claimant:
    return replace(Claimant(TrialId(name), Amount(cpu)), **changes)  # type: ignore[arg-type] # any field


def runs(name: str, node: str, cpu: float = 1.0, **changes: object) -> Claimant:
    running = Claimant(TrialId(name), Amount(cpu), cpu=cpu, nodes=(NodeName(node),), steady=True, attempt=1)
    return replace(running, **changes)  # type: ignore[arg-type] # any field


def sweep(name: str, *trials: Claimant, namespace: str = "", **changes: object) -> SweepDemand:
    demand = SweepDemand(name, namespace or name, trials)
    return replace(demand, **changes)  # type: ignore[arg-type] # any field


def nodes(count: int, cpu: float = 4.0) -> list[Node]:
    return [Node(NodeName(f"n{number}"), cpu) for number in range(count)]


def many(name: str, count: int, **changes: object) -> list[Claimant]:
    return [waits(f"{name}{number:03}", **changes) for number in range(count)]  # type: ignore[arg-type] # any field


def parts_of(
    sweeps: Iterable[SweepDemand],
    there: Sequence[Node],
    arbiter: Arbiter = AT_ONCE,
    terms: Mapping[str, NamespaceTerms] | None = None,
) -> Mapping[str, Part]:
    """Return each sweep's part after one round."""
    arbiter = arbiter if terms is None else arbiter.model_copy(update={"terms": terms})
    return arbiter.decide(0.0, sweeps, there, ArbiterState()).parts


def started(demand: SweepDemand, part: Part, at: Mapping[TrialId, str]) -> SweepDemand:
    """Return ``demand`` once the trials that may start run on the nodes of ``at``."""
    trials = (
        runs(trial.id, at[trial.id], trial.each.cpu, since=trial.since) if trial.id in part.starts else trial
        for trial in demand.trials
    )
    return replace(demand, trials=tuple(trials))
