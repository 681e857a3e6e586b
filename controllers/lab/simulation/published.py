"""The thesis's experiments, F1 to F5 (FlowCon, ch. 6.1) and S1 to S6 (SpeCon, ch. 6.2), with what it says of each.

Thesis: the one that has FlowCon (Zheng et al., ICPP 2019) and SpeCon (Mao et al., arXiv:2010.11307) in full.
"""

import csv
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.resources import files

from controllers.lab.simulation.arrivals import FixedInterval, Trace, UniformWindow
from controllers.lab.simulation.catalogue import FLOWCON_JOBS, named, specon_jobs, specon_vae
from controllers.lab.simulation.experiment import Experiment, Published
from controllers.lab.simulation.measures import watched
from controllers.lab.simulation.published_family import FAMILY


@dataclass(frozen=True, slots=True)
class PublishedPair:
    """A trial of Fig. 6.25: seconds to its completion under the default scheduler and under SpeCon."""

    job: int
    default_s: float
    specon_s: float


def fig_6_25() -> tuple[PublishedPair, ...]:
    """Return the 50 trials of S6, in the order of the figure, read off its vector graphics."""
    text = files("controllers.lab.simulation").joinpath("fig_6_25.csv").read_text(encoding="utf-8")
    rows = csv.DictReader(line for line in text.splitlines() if not line.startswith("#"))
    return tuple(PublishedPair(int(row["job"]), float(row["default_s"]), float(row["specon_s"])) for row in rows)


def _flowcon(alpha: float, interval: float) -> Mapping[str, Mapping[str, float]]:
    return {"flowcon": {"alpha": alpha, "interval": interval}}


def _watched(change: float) -> Mapping[str, float]:
    return {"watched_change": change}


def _specon(alpha: float = 0.01, interval: float = 30) -> Mapping[str, Mapping[str, float]]:
    return {"specon": {"alpha": alpha, "interval": interval}}


_THREE = named(FLOWCON_JOBS, "vae-p", "mnist-p", "mnist-t")
_FIVE = named(FLOWCON_JOBS, "lstm-cfc-t", "vae-p", "vae-t", "mnist-p", "gru-t")
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

EXPERIMENTS: Mapping[str, Experiment] = {
    experiment.id: experiment for experiment in (_F1, _F2, _F3, _F4, _F5, _S1, _S2, _S3, _S4, _S5, _S6, *FAMILY)
}
"""By id, as ``specon simulate`` names them."""
