"""From several past sweeps to what other policies would have made of them all."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from controllers.core.errors import SpeconError
from controllers.core.policy import Policy
from controllers.lab.simulation.past_sweeps.forecast import PolicyForecast
from controllers.lab.simulation.past_sweeps.over_sweeps import OverSweeps, over_sweeps
from controllers.lab.simulation.past_sweeps.past_sweep import PastSweepError
from hera_specon.records.run_folder import RUN_FILE
from hera_specon.replay.replaying import Replayed, WhatIf, nodes_for, replay, to_json
from hera_specon.replay.sources import Past, Where, find_past, source_of
from hera_specon.risks import promise_of


@dataclass(frozen=True, slots=True)
class SweepTold:
    """What is told of one of several sweeps: how far its simulation is from what happened is None where nobody knows.

    ``figures`` are those of its replay alone, for scripts.
    """

    name: str
    trials: int
    off: float | None
    figures: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class ReplayedSweeps:
    """What came of several sweeps, and which were ``left_out``, with why."""

    seeds: int
    sweeps: tuple[SweepTold, ...]
    policies: tuple[OverSweeps, ...]
    left_out: tuple[str, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """Return it for scripts: the replay of each sweep, and what the policies came to over all."""
        return {
            "sweeps": [sweep.figures for sweep in self.sweeps],
            "policies": [policy.to_dict() for policy in self.policies],
            "left_out": list(self.left_out),
        }


def every_past(where: Where, what_if: WhatIf) -> tuple[list[Past], list[str]]:
    """Return all runs on this machine that can be replayed, by name, and why each of the others cannot.

    Raises:
        PastSweepError: There is none.
    """
    folders = sorted(file.parent for file in (where.state_dir / "runs").glob(f"*/{RUN_FILE}"))
    pasts, left_out = list[Past](), list[str]()
    for folder in folders:
        try:
            pasts.append(checked_past(str(folder), where, what_if))
        except SpeconError as error:
            left_out.append(f"{folder.name}: {error}")
    if not pasts:
        why = "".join(f"\n{told}" for told in left_out)
        message = f"no run in {where.state_dir / 'runs'} can be replayed: name a sweep, or give --state-dir{why}"
        raise PastSweepError(message)
    return pasts, left_out


def checked_past(wanted: str, where: Where, what_if: WhatIf) -> Past:
    """Return the past sweep that ``wanted`` names, with nodes to simulate it on.

    Raises:
        SpeconError: It was not found, or cannot be rebuilt; says what to do.
    """
    past = find_past(wanted, where)
    nodes_for(source_of(past.sweeps), what_if)
    return past


def replay_all(
    pasts: Sequence[Past],
    what_if: WhatIf,
    policies: Mapping[str, Policy[Any]],
    seeds: int,
    advanced: Callable[[], None] = lambda: None,
) -> ReplayedSweeps:
    """Simulate several past sweeps under ``policies``, one after the other.

    Args:
        pasts: Each under the policies that it ran under, one at least.
        what_if: Where they are simulated.
        policies: By the lines that name them; the first is the baseline.
        seeds: How many times each is simulated.
        advanced: Called after each simulated run.

    Raises:
        SpeconError: Too little is known of a sweep, or a trial fits on no node.
    """
    told, forecasts = list[SweepTold](), list[tuple[PolicyForecast, ...]]()
    for past in pasts:
        replayed = replay(past, what_if, policies, seeds, advanced)
        told.append(_told(replayed))
        forecasts.append(replayed.forecasts)
    promises = [promise_of(policy) for policy in policies.values()]
    of_policies = tuple(
        over_sweeps(promise, [(of_sweep[0], of_sweep[number]) for of_sweep in forecasts])
        for number, promise in enumerate(promises)
    )
    return ReplayedSweeps(seeds, tuple(told), of_policies)


def _told(replayed: Replayed) -> SweepTold:
    errors = [check.makespan_error for check in replayed.checks]
    off = max(errors, key=abs, default=None)
    return SweepTold(replayed.source.name, len(replayed.source.trials), off, to_json(replayed))
