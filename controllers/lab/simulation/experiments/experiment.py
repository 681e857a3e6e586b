"""An experiment: what is submitted when, to which nodes, under which assumptions, and what was published of it."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Literal

from controllers.core.model import NodeName, TrialId
from controllers.core.policy import Policy
from controllers.lab.simulation.experiments.arrivals import ArrivalPattern, generator
from controllers.lab.simulation.experiments.jobs import NODE_CORES, TrainingJob
from controllers.lab.simulation.measures import RunMeasure, measures_of
from controllers.policies import Default, LeastUsed
from controllers.policies.kit.settings import PolicySettings
from controllers.policies.wrappers.wrapper import with_parts
from controllers.worlds.simulated.scenario import Costs
from controllers.worlds.simulated.workload import NodeSpec, Speedup, Surrogate, TrialSpec, Workload

NODE_MEMORY = 64.0 * 1024**3


Placement = Literal["requests", "use", "chance"]
"""By what a default scheduler puts each trial somewhere."""


@dataclass(frozen=True, slots=True)
class Assumptions:
    """What the thesis does not tell, and what its results may depend on.

    ``request`` is the CPU that each trial asks for, in cores. ``cores`` replaces the cores that each job can use.
    ``noise`` is the standard deviation of a report, as a part of a job's whole reduction. ``tail`` replaces the
    ``shape`` of its curve: below 1 it goes on improving for longer. ``contention`` is the part of its speed that each
    further trial costs a node. ``placement`` says by what the default scheduler chooses.
    """

    request: float = 1.0
    cores: float | None = None
    noise: float = 0.002
    tail: float | None = None
    reports: int = 200
    contention: float = 0.0
    costs: Costs = field(default_factory=Costs.thesis)
    placement: Placement = "requests"


@dataclass(frozen=True, slots=True)
class Published:
    """What the paper says of a run under ``policy``; None where it does not tell.

    ``mean_change`` and ``makespan_change`` are parts, so -0.147 for -14.7 %; ``faster`` is the share of trials that
    are. ``measures`` holds what was published of the experiment's own measures, by name.
    """

    policy: str
    makespan_s: float | None = None
    mean_completion_s: float | None = None
    median_completion_s: float | None = None
    makespan_change: float | None = None
    mean_change: float | None = None
    faster: float | None = None
    worst_loser: float | None = None
    measures: Mapping[str, float] = field(default_factory=dict)


def equal_nodes(number: int, cores: float) -> tuple[NodeSpec, ...]:
    """Return ``number`` nodes of so many cores each: ``worker-1`` and those after it."""
    return tuple(NodeSpec(NodeName(f"worker-{place}"), cores) for place in range(1, number + 1))


@dataclass(frozen=True)
class OwnExperiment:
    """A workload of ours or of the user's: ``draw`` gives that of a seed. No policy's parameters were published.

    Where trials search, ``surrogates`` gives how those of a seed train with what they get.
    """

    id: str
    title: str
    draw: Callable[[int], Workload]
    published: tuple[Published, ...] = ()
    measures: tuple[RunMeasure, ...] = ()
    costs: Costs = field(default_factory=Costs.argo)
    compared: tuple[str, ...] = ("default", "specon", "flowcon")
    surrogates: Callable[[int], Surrogate] | None = None

    @property
    def policies(self) -> tuple[str, ...]:
        """The policies that something was published of, or else those to compare."""
        return tuple(published.policy for published in self.published) or self.compared

    def workload(self, seed: int) -> Workload:
        """Return the workload of ``seed``."""
        return self.draw(seed)

    def surrogate(self, seed: int) -> Surrogate | None:
        """Return how trials of ``seed`` train with what a search gives them, None where none searches."""
        return None if self.surrogates is None else self.surrogates(seed)

    def scheduler(self, seed: int) -> Policy[Any]:  # noqa: ARG002 - as that of a published experiment
        """Return the default scheduler."""
        return Default()

    def parameterised(self, policy: Policy[Any]) -> Policy[Any]:
        """Return ``policy``: nothing was published."""
        return policy


def given_workload(name: str, workload: Workload) -> OwnExperiment:
    """Return the experiment of one workload, in which only ties between nodes are left to chance."""
    return OwnExperiment(name, "a workload from a file", partial(_given, workload), measures=measures_of(workload))


def _given(workload: Workload, seed: int) -> Workload:  # noqa: ARG001 - OwnExperiment.draw's shape; pickled, so no lambda
    return workload


@dataclass(frozen=True)
class Experiment:
    """One row of published results.

    ``jobs`` are submitted as they stand (``drawn`` None), or that many are drawn from them. ``settings`` are the
    published parameters: a policy that is named without them gets these. ``measures`` are what it is judged by beside
    its times. ``sizes`` are the cores of each node where these differ.
    """

    id: str
    title: str
    jobs: tuple[TrainingJob, ...]
    arrivals: ArrivalPattern
    nodes: int
    published: tuple[Published, ...]
    settings: Mapping[str, Mapping[str, float]]
    drawn: int | None = None
    measures: tuple[RunMeasure, ...] = ()
    sizes: tuple[float, ...] = ()
    assumptions: Assumptions = field(default_factory=Assumptions)

    @property
    def policies(self) -> tuple[str, ...]:
        """The policies that something was published of, the default scheduler first."""
        return tuple(published.policy for published in self.published)

    @property
    def costs(self) -> Costs:
        """What starts and moves are assumed to cost."""
        return self.assumptions.costs

    def surrogate(self, seed: int) -> Surrogate | None:  # noqa: ARG002 - as that of an experiment of ours
        """Return None: no trial of a published experiment searches."""
        return None

    def scheduler(self, seed: int) -> Policy[Any]:
        """Return the policy under which the initial placement of all is found."""
        match self.assumptions.placement:
            case "requests":
                return Default()
            case "use":
                return LeastUsed(seed=seed)
            case "chance":
                return LeastUsed(seed=seed, told_apart=1.0)

    def workload(self, seed: int) -> Workload:
        """Return the workload of ``seed``: jobs, arrivals and noise are drawn, each by a generator of its own."""
        chance = generator(seed, self.id, "jobs")
        jobs = self.jobs if self.drawn is None else tuple(chance.choice(self.jobs) for _ in range(self.drawn))
        times = self.arrivals.times(len(jobs), generator(seed, self.id, "arrivals"))
        trials = [self._trial(number, job, at, seed) for number, (job, at) in enumerate(zip(jobs, times, strict=True))]
        sizes = self.sizes or (NODE_CORES,) * self.nodes
        nodes = tuple(
            NodeSpec(NodeName(f"worker-{number}"), cores, NODE_MEMORY, contention=self.assumptions.contention)
            for number, cores in enumerate(sizes, start=1)
        )
        return Workload(tuple(trials), nodes)

    def under(self, assumptions: Assumptions) -> "Experiment":
        """Return the same experiment under other assumptions."""
        return replace(self, assumptions=assumptions)

    def parameterised(self, policy: Policy[Any]) -> Policy[Any]:
        """Return ``policy`` with the published parameters wherever it was named without its own."""

        def published(part: Policy[Any]) -> Policy[Any]:
            if not isinstance(part, PolicySettings):
                return part
            ours = self.settings.get(part.name, {})
            missing = {name: value for name, value in ours.items() if name not in part.model_fields_set}
            return part.model_copy(update=missing)

        return with_parts(policy, published)

    def _trial(self, number: int, job: TrainingJob, at: float, seed: int) -> TrialSpec:
        name = trial_name(number, job)
        given = self.assumptions
        curve = replace(job.curve, noise=given.noise, **({} if given.tail is None else {"shape": given.tail}))
        chance = generator(seed, self.id, "noise", number)
        cores = job.cores if given.cores is None else given.cores
        return TrialSpec(
            id=name,
            submitted_at=at,
            work_s=job.lone_s,
            reports=curve.reports(job.lone_s, given.reports, chance),
            cpu=given.request,
            speedup=Speedup.linear(cores),
        )


Setup = Experiment | OwnExperiment
"""Something that policies can be compared on, over seeds. Its ``id`` is the name that people type. The first of its
``policies`` is the baseline; they are what it is run under unless others are asked for."""


def trial_name(number: int, job: TrainingJob) -> TrialId:
    """Return the name of the trial that is submitted as the ``number``-th from 0."""
    return TrialId(f"job-{number + 1:02d}-{job.name}")
