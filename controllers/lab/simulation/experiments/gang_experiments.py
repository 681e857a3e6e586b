"""An experiment of ours like DRAGON's (E1): its cluster size, job mix and arrivals were not published.

Forty jobs train data-parallel on one to four workers, or two to four, on six nodes in two zones. Each worker asks for
four cores and 8 GiB, as DRAGON's example job does. A node has 16 cores. Half a core is the system's, as on any
Kubernetes: a node holds three workers, so that a gang of four cannot be on one. Three kinds of jobs differ by how long
a step takes and how much the workers exchange in it. Lengths on one worker lie between five minutes and an hour, short
ones being as likely as long ones by their logarithm. Jobs come faster than the nodes can train them, at first.

E1-four is the same on nodes that each hold four workers.
"""

from functools import partial
from math import exp, log
from typing import Final

from controllers.core.model import NodeName, TrialId
from controllers.lab.simulation.experiments.arrivals import Poisson, generator
from controllers.lab.simulation.experiments.experiment import OwnExperiment
from controllers.lab.simulation.experiments.jobs import NODE_CORES, VAE
from controllers.lab.simulation.measures import UTILISATION
from controllers.worlds.simulated.workload import MIB, NodeSpec, Speedup, TrialSpec, WorkerExchange, Workload

JOBS: Final = 40
NODES: Final = 6
"""Three in each of two zones."""
GIB: Final = 1024.0 * MIB
ALLOCATABLE: Final = NODE_CORES - 0.5
HOLDS_FOUR: Final = NODE_CORES
NODE_MEMORY: Final = 64 * GIB
CORES: Final = 4.0
"""Requested and used by each worker."""
WORKER_MEMORY: Final = 8 * GIB
MOST_WORKERS: Final = 4
LONE_S: Final = (300.0, 3600.0)
ARRIVALS: Final = Poisson(30.0)
"""The nodes hold 18 workers: without any loss, they train a job every 74 seconds."""
REPORTS: Final = 100
CHECKPOINT_EVERY_S: Final = 60.0
KINDS: Final = {
    "mlp": (1, WorkerExchange(step_s=0.35, bytes=4.4 * MIB)),
    "lstm": (1, WorkerExchange(step_s=0.25, bytes=1.2 * MIB)),
    "cnn": (2, WorkerExchange(step_s=2.0, bytes=20 * MIB)),
}
"""Least workers, seconds of a step on one worker, and bytes that are summed: the first two as measured (gloo, CPU)."""


def gang_workload(seed: int, node_cores: float = ALLOCATABLE, fixed: int | None = None) -> Workload:
    """Return the workload of ``seed``, on nodes of so many cores.

    With ``fixed``, each job has so many workers, no more and no fewer, or as many as it needs at least.
    """
    nodes = tuple(
        NodeSpec(NodeName(f"worker-{number}"), node_cores, NODE_MEMORY, zone="ab"[number > NODES // 2])
        for number in range(1, NODES + 1)
    )
    times = ARRIVALS.times(JOBS, generator(seed, "gangs", "arrivals"))
    return Workload(tuple(_job(number, at, seed, fixed) for number, at in enumerate(times, start=1)), nodes)


def _job(number: int, at: float, seed: int, fixed: int | None) -> TrialSpec:
    chance = generator(seed, "gangs", number)
    kind = chance.choice(sorted(KINDS))
    least, exchange = KINDS[kind]
    work = exp(chance.uniform(*map(log, LONE_S)))
    return TrialSpec(
        id=TrialId(f"job-{number:02d}-{kind}"),
        submitted_at=at,
        work_s=work,
        reports=VAE.reports(work, REPORTS, chance),
        cpu=CORES,
        speedup=Speedup.linear(CORES),
        memory=WORKER_MEMORY,
        checkpoint_every_s=CHECKPOINT_EVERY_S,
        min_workers=least if fixed is None else max(least, fixed),
        max_workers=MOST_WORKERS if fixed is None else max(least, fixed),
        exchange=exchange,
    )


_TOLD: Final = (
    f"{JOBS} elastic jobs of up to {MOST_WORKERS} workers of {CORES:g} cores, as they arrive, on {NODES} nodes"
)
_COMPARED: Final = ("default", "gang-fifo", "volcano", "dragon", "dragon+ahead", "ahead")
GANG_EXPERIMENTS: Final = (
    OwnExperiment("E1", _TOLD, gang_workload, measures=UTILISATION, compared=_COMPARED),
    OwnExperiment(
        "E1-four",
        f"{_TOLD} that hold {MOST_WORKERS} each",
        partial(gang_workload, node_cores=HOLDS_FOUR),
        measures=UTILISATION,
        compared=_COMPARED,
    ),
)
