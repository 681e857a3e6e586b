"""What was published of FlowCon 2.0, ProCon and C-Balancer, and experiments of ours to set beside it.

Only abstracts tell of them, and none of its workload: jobs, arrivals and nodes here are our own, made of what the
theses tell of FlowCon and SpeCon.
"""

from controllers.lab.simulation.arrivals import UniformWindow
from controllers.lab.simulation.catalogue import FLOWCON_JOBS, NODE_CORES, Job, specon_jobs
from controllers.lab.simulation.curves import VAE
from controllers.lab.simulation.experiment import Assumptions, Experiment, Published
from controllers.lab.simulation.measures import CLUSTER

MIXED_SIZES = (8.0, 8.0, 12.0, 12.0, 20.0, 20.0, 24.0, 24.0)
"""Cores of eight nodes of four kinds: together as many as eight of 16."""
_SHORT_LIVED = specon_jobs(100.0, 2.0)
_APPETITES = tuple(Job("stress", f"{cores:g}", 200.0, VAE, cores) for cores in (1.0, 2.0, 4.0, 8.0, NODE_CORES))


def _flowcon2(
    number: int, title: str, trials: int, nodes: int, sizes: tuple[float, ...], told: Published
) -> Experiment:
    return Experiment(
        id=f"G{number}",
        title=title,
        jobs=FLOWCON_JOBS,
        drawn=trials,
        arrivals=UniformWindow(300.0),
        nodes=nodes,
        sizes=sizes,
        settings={},
        measures=CLUSTER,
        published=(Published("default"), told),
    )


FAMILY: tuple[Experiment, ...] = (
    _flowcon2(
        1,
        "20 trials in [0, 300] s, 4 nodes",
        20,
        4,
        (),
        Published("flowcon2", makespan_change=-0.18, faster=18 / 20, measures={"best_trial": -0.688}),
    ),
    _flowcon2(2, "60 trials in [0, 300] s, 8 equal nodes", 60, 8, (), Published("flowcon2")),
    _flowcon2(3, "60 trials in [0, 300] s, 8 mixed nodes", 60, 8, MIXED_SIZES, Published("flowcon2")),
    Experiment(
        id="P1",
        title="30 short trials in [0, 300] s, 4 nodes",
        jobs=_SHORT_LIVED,
        drawn=30,
        arrivals=UniformWindow(300.0),
        nodes=4,
        settings={},
        measures=CLUSTER,
        published=(Published("default"), Published("procon", mean_change=-0.23, measures={"best_trial": -0.533})),
    ),
    Experiment(
        id="B1",
        title="40 trials of unlike appetite in [0, 300] s, 8 nodes, which lose 5 % of speed to each further trial",
        jobs=_APPETITES,
        drawn=40,
        arrivals=UniformWindow(300.0),
        nodes=8,
        settings={},
        measures=CLUSTER,
        published=(
            Published("default"),
            Published("cbalancer", measures={"best_trial": -0.58, "variance_of_use": -0.60}),
        ),
        assumptions=Assumptions(contention=0.05),
    ),
)
"""G1 to G3 for FlowCon 2.0 (Sharma 2022), P1 for ProCon (Fu et al. 2019), B1 for C-Balancer (Dhumal 2020)."""
