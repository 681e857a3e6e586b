"""What is measured: sweeps, policies and nodes, on this machine and on the test cluster. Fixed before the first run."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

_ROOT: Final = Path(__file__).parents[2]
_OWN: Final = Path(__file__).with_name("sweeps")


@dataclass(frozen=True, slots=True)
class Plan:
    """The measurements in one world.

    ``sweeps`` gives each sweep's file, which draws other trials for another ``SWEEP_SEED``, by name. The first of
    ``policies`` is the baseline. ``nodes`` of ``cores`` cores each train. A trial has ``workers`` workers at most.
    """

    world: str
    sweeps: Mapping[str, Path]
    policies: tuple[str, ...]
    nodes: int
    cores: float
    seeds: int
    workers: int = 1


ON_THIS_MACHINE: Final = Plan(
    world="local",
    sweeps={
        "demo": _ROOT / "workflows" / "demo.py",
        "all at once": _OWN / "all_at_once.py",
        "unlike lengths": _OWN / "unlike_lengths.py",
    },
    policies=("default", "specon:interval=5,alpha=0.05+flowcon:interval=5", "ahead", "fifo"),
    nodes=4,
    cores=0.4,
    seeds=5,
)
ON_A_CLUSTER: Final = Plan(
    world="cluster",
    sweeps={"ten VAE": _ROOT / "benchmarks" / "cluster" / "vae_ten.py", "all at once": _OWN / "all_at_once.py"},
    policies=("default", "specon:interval=10,alpha=0.05+flowcon:interval=10", "ahead"),
    nodes=3,
    cores=0.4,
    seeds=3,
)

WITH_GANGS: Final = Plan(
    world="local",
    sweeps={"gangs": _OWN / "gangs.py"},
    policies=("default", "gang-fifo", "dragon", "dragon+ahead", "ahead"),
    nodes=4,
    cores=0.4,
    seeds=2,
    workers=4,
)
GANGS_ON_A_CLUSTER: Final = Plan(
    world="cluster",
    sweeps={"gangs": _OWN / "gangs.py"},
    policies=("default", "dragon", "ahead"),
    nodes=3,
    cores=0.4,
    seeds=1,
    workers=4,
)
PLANS: Final = (ON_THIS_MACHINE, ON_A_CLUSTER, WITH_GANGS, GANGS_ON_A_CLUSTER)


@dataclass(frozen=True, slots=True, order=True)
class Task:
    """One run to make."""

    world: str
    sweep: str
    seed: int
    policy: str


def tasks(plan: Plan, sweeps: Sequence[str], seeds: Sequence[int], policies: Sequence[str]) -> Iterator[Task]:
    """Yield every run in the order to make them.

    All policies run one after another in each seed of a sweep, and begin with another one in each seed: what changes
    on the machine meanwhile falls on all of them alike.
    """
    for seed in seeds:
        for sweep in sweeps:
            first = seed % len(policies)
            for policy in (*policies[first:], *policies[:first]):
                yield Task(plan.world, sweep, seed, policy)
