"""The thesis's experiments, F1 to F5 (FlowCon, ch. 6.1) and S1 to S6 (SpeCon, ch. 6.2), with what it says of each.

Thesis: the one that has FlowCon (Zheng et al., ICPP 2019) and SpeCon (Mao et al., arXiv:2010.11307) in full. After them
come G1 to G3 (FlowCon 2.0), P1 (ProCon) and B1 (C-Balancer): only abstracts tell of these, and nothing of their
workloads, so jobs, arrivals and nodes are our own, made of what the thesis tells of FlowCon and SpeCon.
"""

from collections.abc import Mapping

from controllers.lab.simulation.experiments.arrivals import FixedInterval, Trace, UniformWindow
from controllers.lab.simulation.experiments.experiment import Assumptions, Experiment, Published
from controllers.lab.simulation.experiments.jobs import (
    FLOWCON_JOBS,
    NODE_CORES,
    VAE,
    TrainingJob,
    jobs_named,
    specon_jobs,
    specon_vae,
)
from controllers.lab.simulation.measures import CLUSTER, watched


def _flowcon(alpha: float, interval: float) -> Mapping[str, Mapping[str, float]]:
    return {"flowcon": {"alpha": alpha, "interval": interval}}


def _watched(change: float) -> Mapping[str, float]:
    return {"watched_change": change}


def _specon(alpha: float = 0.01, interval: float = 30) -> Mapping[str, Mapping[str, float]]:
    return {"specon": {"alpha": alpha, "interval": interval}}


_THREE = jobs_named(FLOWCON_JOBS, "vae-p", "mnist-p", "mnist-t")
_FIVE = jobs_named(FLOWCON_JOBS, "lstm-cfc-t", "vae-p", "vae-t", "mnist-p", "gru-t")
_VAE = (specon_vae(),)

_F1 = Experiment(
    id="F1",
    title="3 fixed trials on one node, alpha 5 %",
    jobs=_THREE,
    arrivals=Trace((0.0, 40.0, 80.0)),
    nodes=1,
    measures=(watched(2),),
    settings=_flowcon(0.05, 30),
    published=(
        Published("default", makespan_s=394.0),
        Published("flowcon:alpha=0.05,interval=20", makespan_s=386.1),
        Published("flowcon:alpha=0.05,interval=30", makespan_s=372.4, measures=_watched(-0.319)),
        Published("flowcon:alpha=0.05,interval=40", makespan_s=384.8),
        Published("flowcon:alpha=0.05,interval=50", makespan_s=389.0),
        Published("flowcon:alpha=0.05,interval=60", makespan_s=388.1),
    ),
)
_F2 = Experiment(
    id="F2",
    title="the same, other parameters: what becomes of MNIST-TensorFlow",
    jobs=_THREE,
    arrivals=Trace((0.0, 40.0, 80.0)),
    nodes=1,
    measures=(watched(2),),
    settings=_flowcon(0.10, 20),
    published=(
        Published("default", makespan_s=394.0),
        Published("flowcon:alpha=0.1,interval=20", measures=_watched(-0.262)),
        Published("flowcon:alpha=0.1,interval=30", measures=_watched(-0.324)),
        Published("flowcon:alpha=0.1,interval=40", measures=_watched(-0.143)),
        Published("flowcon:alpha=0.1,interval=50", measures=_watched(-0.153)),
        Published("flowcon:alpha=0.1,interval=60", measures=_watched(-0.031)),
        Published("flowcon:alpha=0.01,interval=20", measures=_watched(-0.321)),
        Published("flowcon:alpha=0.03,interval=20", measures=_watched(-0.310)),
        Published("flowcon:alpha=0.05,interval=20", measures=_watched(-0.214)),
        Published("flowcon:alpha=0.15,interval=20", measures=_watched(-0.198)),
    ),
)
_F3 = Experiment(
    id="F3",
    title="5 trials in [0, 200] s on one node",
    jobs=_FIVE,
    arrivals=UniformWindow(200.0),
    nodes=1,
    settings=_flowcon(0.03, 30),
    published=(
        Published("default"),
        Published("flowcon:alpha=0.03,interval=30", faster=4 / 5, worst_loser=424.6 / 422.5),
        Published("flowcon:alpha=0.03,interval=60", faster=5 / 5),
        Published("flowcon:alpha=0.05,interval=30", faster=4 / 5),
        Published("flowcon:alpha=0.05,interval=60", faster=4 / 5, worst_loser=472.4 / 422.5),
    ),
)
_F4 = Experiment(
    id="F4",
    title="10 trials in [0, 200] s on one node",
    jobs=FLOWCON_JOBS,
    drawn=10,
    arrivals=UniformWindow(200.0),
    nodes=1,
    settings=_flowcon(0.10, 20),
    published=(
        Published("default", makespan_s=1384.9),
        Published("flowcon:alpha=0.1,interval=20", makespan_s=1350.7, faster=9 / 10, worst_loser=1.011),
    ),
)
_F5 = Experiment(
    id="F5",
    title="15 trials in [0, 200] s on one node",
    jobs=FLOWCON_JOBS,
    drawn=15,
    arrivals=UniformWindow(200.0),
    nodes=1,
    settings=_flowcon(0.10, 20),
    published=(
        Published("default", makespan_s=1980.1),
        Published("flowcon:alpha=0.1,interval=20", makespan_s=1950.9, faster=11 / 15, worst_loser=207.5 / 196.2),
    ),
)
_S1 = Experiment(
    id="S1",
    title="20 VAE, one every 50 s, 4 nodes",
    jobs=_VAE,
    drawn=20,
    arrivals=FixedInterval(50.0),
    nodes=4,
    settings=_specon(),
    published=(
        Published("default", makespan_s=1260.0, mean_completion_s=275.2),
        Published("specon:alpha=0.01,interval=30", makespan_s=1190.0, mean_completion_s=234.7, faster=11 / 20),
    ),
)
_S2 = Experiment(
    id="S2",
    title="20 VAE in [0, 300] s, 4 nodes, alpha 0.05",
    jobs=_VAE,
    drawn=20,
    arrivals=UniformWindow(300.0),
    nodes=4,
    settings=_specon(0.05, 30),
    published=(
        Published("default"),
        Published("specon:alpha=0.05,interval=20", mean_change=-0.011),
        Published("specon:alpha=0.05,interval=25", mean_change=-0.052),
        Published("specon:alpha=0.05,interval=30", mean_change=-0.080),
    ),
)
_S3 = Experiment(
    id="S3",
    title="20 VAE in [0, 300] s, 4 nodes, interval 30 s",
    jobs=_VAE,
    drawn=20,
    arrivals=UniformWindow(300.0),
    nodes=4,
    settings=_specon(0.01, 30),
    published=(
        Published("default"),
        Published("specon:alpha=0.01,interval=30", mean_change=-0.072),
        Published("specon:alpha=0.05,interval=30", mean_change=-0.032),
        Published("specon:alpha=0.1,interval=30", mean_change=-0.095),
    ),
)
_S4 = Experiment(
    id="S4",
    title="20 mixed trials in [0, 300] s, 4 nodes",
    jobs=specon_jobs(211.3, 2.72),
    drawn=20,
    arrivals=UniformWindow(300.0),
    nodes=4,
    settings=_specon(),
    published=(
        Published("default", makespan_s=1421.0, mean_completion_s=710.0),
        Published("specon:alpha=0.01,interval=30", makespan_s=1070.0, mean_change=-0.136, faster=15 / 20),
    ),
)
_S5 = Experiment(
    id="S5",
    title="30 mixed trials in [0, 300] s, 4 nodes",
    jobs=specon_jobs(186.6, 2.61),
    drawn=30,
    arrivals=UniformWindow(300.0),
    nodes=4,
    settings=_specon(),
    published=(
        Published("default", makespan_s=1640.0, mean_completion_s=799.5),
        Published("specon:alpha=0.01,interval=30", makespan_s=1370.0, mean_completion_s=752.6, faster=20 / 30),
    ),
)
_S6 = Experiment(
    id="S6",
    title="50 mixed trials in [0, 1200] s, 8 nodes",
    jobs=specon_jobs(268.8, 2.18),
    drawn=50,
    arrivals=UniformWindow(1200.0),
    nodes=8,
    settings=_specon(),
    published=(
        Published("default", makespan_s=2070.0, mean_completion_s=596.3, median_completion_s=518.8),
        Published(
            "specon:alpha=0.01,interval=30",
            makespan_s=1840.0,
            mean_completion_s=553.0,
            median_completion_s=565.8,
            faster=30 / 50,
            worst_loser=332.7 / 243.6,
        ),
    ),
)

MIXED_SIZES = (8.0, 8.0, 12.0, 12.0, 20.0, 20.0, 24.0, 24.0)
"""Cores of eight nodes of four kinds: together as many as eight of 16."""
_SHORT_LIVED = specon_jobs(100.0, 2.0)
_APPETITES = tuple(TrainingJob("stress", f"{cores:g}", 200.0, VAE, cores) for cores in (1.0, 2.0, 4.0, 8.0, NODE_CORES))


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

EXPERIMENTS: Mapping[str, Experiment] = {
    experiment.id: experiment for experiment in (_F1, _F2, _F3, _F4, _F5, _S1, _S2, _S3, _S4, _S5, _S6, *FAMILY)
}
"""By id, as ``specon simulate`` names them."""
