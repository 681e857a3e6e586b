"""The thesis's assumptions that were never written down, one changed at a time: which of them makes its gains?"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from controllers.lab.simulation.evaluation import ExperimentPlan
from controllers.lab.simulation.experiments.experiment import Assumptions, Experiment
from controllers.lab.simulation.experiments.jobs import TrainingJob, specon_jobs, specon_vae
from controllers.lab.simulation.experiments.published import EXPERIMENTS
from controllers.worlds.simulated.scenario import Costs


@dataclass(frozen=True, slots=True)
class ChangedAssumption:
    """One change: of what is assumed of the cluster, or (``parameters``) of how the policy is set."""

    title: str
    assumptions: Assumptions = field(default_factory=Assumptions)
    parameters: Mapping[str, str] | None = None

    def plan(self, experiment: Experiment, policy: str) -> ExperimentPlan:
        """Return the experiment with this change, under the default scheduler and under ``policy``."""
        spec = policy
        if self.parameters:
            spec += ":" + ",".join(f"{name}={value}" for name, value in self.parameters.items())
        return ExperimentPlan(experiment.under(self.assumptions), ("default", spec))


_SLOW_MOVES = replace(Costs.thesis(), leave_s=15.0, restore_s=15.0)

CHANGED_ASSUMPTIONS: tuple[ChangedAssumption, ...] = (
    ChangedAssumption("as it stands"),
    ChangedAssumption("the default scheduler looks at CPU in use, not at requests", Assumptions(placement="use")),
    ChangedAssumption("moves are free", Assumptions(costs=Costs.free())),
    ChangedAssumption("a move takes 30 s instead of 5", Assumptions(costs=_SLOW_MOVES)),
    ChangedAssumption("starts and moves cost what we measured on Argo", Assumptions(costs=Costs.argo())),
    ChangedAssumption("reports without noise", Assumptions(noise=0.0)),
    ChangedAssumption("reports with 1 % of noise", Assumptions(noise=0.01)),
    ChangedAssumption("reports with 3 % of noise", Assumptions(noise=0.03)),
    ChangedAssumption("losses go on falling (curves with a long tail)", Assumptions(tail=0.4)),
    ChangedAssumption("a trial can use all 16 cores", Assumptions(cores=16.0)),
    ChangedAssumption("a trial can use 8 cores", Assumptions(cores=8.0)),
    ChangedAssumption("a trial can use 4 cores", Assumptions(cores=4.0)),
    ChangedAssumption("trials request 4 cores: four fill a node, others wait", Assumptions(request=4.0)),
    ChangedAssumption("each further trial costs a node 5 % of its speed", Assumptions(contention=0.05)),
    ChangedAssumption("each further trial costs a node 15 % of its speed", Assumptions(contention=0.15)),
    ChangedAssumption("growth is the raw |dE| (normalise=none)", parameters={"normalise": "none"}),
)
"""The first is the experiment as it is."""
SPECON_CHANGED_ASSUMPTIONS: tuple[ChangedAssumption, ...] = (
    *CHANGED_ASSUMPTIONS,
    ChangedAssumption("moves are not checked (strict=false)", parameters={"strict": "false"}),
    ChangedAssumption(
        "rebalancing as in the listing (rebalance_when=migrated)", parameters={"rebalance_when": "migrated"}
    ),
)


_BY_CHANCE = Assumptions(placement="chance", cores=16.0)
_VAE_BY_CHANCE = (specon_vae(143.5),)


def _by_chance(name: str, jobs: tuple[TrainingJob, ...]) -> Experiment:
    experiment = EXPERIMENTS[name]
    return replace(experiment, title=f"{experiment.title}, placed by chance", jobs=jobs, assumptions=_BY_CHANCE)


BY_CHANCE: Mapping[str, Experiment] = {
    "S1": _by_chance("S1", _VAE_BY_CHANCE),
    "S2": _by_chance("S2", _VAE_BY_CHANCE),
    "S3": _by_chance("S3", _VAE_BY_CHANCE),
    "S4": _by_chance("S4", specon_jobs(147.5, 2.19)),
    "S5": _by_chance("S5", specon_jobs(141.0, 2.09)),
    "S6": _by_chance("S6", specon_jobs(180.3, 1.56)),
}
"""SpeCon's experiments with first placement left to chance and trials that can use a whole node; lengths are calibrated
again on the default column (for S1, S4, S5 and S6; S2 and S3 have S1's)."""
