"""Every experiment that ``specon simulate`` knows by name: published ones, and ours for what only abstracts tell of."""

from collections.abc import Mapping
from typing import Final

from controllers.lab.simulation.experiments.curve_families import CURVE_EXPERIMENTS
from controllers.lab.simulation.experiments.device_experiments import DEVICE_EXPERIMENTS
from controllers.lab.simulation.experiments.disturbed import DISTURBED_EXPERIMENTS
from controllers.lab.simulation.experiments.elastic_experiments import ELASTIC_EXPERIMENTS
from controllers.lab.simulation.experiments.everyday import EVERYDAY_EXPERIMENTS
from controllers.lab.simulation.experiments.experiment import Setup
from controllers.lab.simulation.experiments.gang_experiments import GANG_EXPERIMENTS
from controllers.lab.simulation.experiments.goal_experiments import DEADLINE_EXPERIMENTS, TARGET_EXPERIMENTS
from controllers.lab.simulation.experiments.length_experiments import LENGTH_EXPERIMENTS
from controllers.lab.simulation.experiments.many_nodes import MANY_NODES_EXPERIMENTS
from controllers.lab.simulation.experiments.published import EXPERIMENTS

_ALL: Final[tuple[Setup, ...]] = (
    *EXPERIMENTS.values(),
    *DEADLINE_EXPERIMENTS,
    *TARGET_EXPERIMENTS,
    *EVERYDAY_EXPERIMENTS,
    *DISTURBED_EXPERIMENTS,
    *MANY_NODES_EXPERIMENTS,
    *DEVICE_EXPERIMENTS,
    *GANG_EXPERIMENTS,
    *LENGTH_EXPERIMENTS,
    *CURVE_EXPERIMENTS,
    *ELASTIC_EXPERIMENTS,
)
EVERY_EXPERIMENT: Final[Mapping[str, Setup]] = {setup.id: setup for setup in _ALL}
"""By id, in the order of the documentation."""


def experiment_named(name: str) -> Setup | None:
    """Return the experiment of this id in upper or lower case; None where there is none."""
    return next((setup for known, setup in EVERY_EXPERIMENT.items() if known.lower() == name.lower()), None)
