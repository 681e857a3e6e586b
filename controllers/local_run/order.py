"""What was asked for of a run on this machine: which sweep, under which policies, on how many nodes."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import psutil

from controllers.core import labels
from controllers.core.errors import SpeconError
from controllers.core.goals import aims_in
from controllers.core.policy import Policy
from controllers.driving.assembly import check_policy
from controllers.driving.clones import why_no_clones
from controllers.local_run.checks import check_nodes, check_sweep, cores_here, gpus_to_give
from controllers.local_run.run_folder import RunFolder
from controllers.policies.registry import parse_policy, policy_spec
from controllers.tracking.access import shown
from controllers.worlds.local.gpus import gpus_here
from controllers.worlds.local.jobs import file_name
from controllers.worlds.local.room import Machine
from controllers.worlds.local.workflow import PlannedTrial, PodStep, Program, WorkflowError, read_workflow
from controllers.worlds.local.world import LocalWorld
from mlflow_hooks import contract
from mlflow_hooks.run_artifacts import ADDRESS as RUN_ARTIFACTS


@dataclass(frozen=True)
class LocalSettings:
    """How this machine is cut into nodes, and where runs are kept.

    ``cpus_per_node`` is in cores, for all nodes or for each of them; None divides all cores of the machine evenly.
    ``jobs`` is how many trials run at a time, None for as many as pay. ``seed`` breaks the default scheduler's ties.
    ``fresh`` starts from nothing where an unfinished run is. ``as_begun`` goes on with the newest run of the sweep as
    it was asked for then, whatever is asked for now. ``adds_policies`` adds the policies to those that the newest run
    of the same sweep ran under. ``extends`` trains what that run has not trained of a sweep that has more trials by
    now, under the policies of that run. ``trains_anyway`` trains all trials though the objective does not show.
    ``inherit`` names variables of an outer launcher that trials get all the same.
    """

    nodes: int = 1
    cpus_per_node: float | tuple[float, ...] | None = None
    seed: int = 0
    state_dir: Path = Path(".specon")
    fresh: bool = False
    as_begun: bool = False
    adds_policies: bool = False
    extends: bool = False
    trains_anyway: bool = False
    jobs: int | None = None
    inherit: tuple[str, ...] = ()
    parameters: Mapping[str, str] = field(default_factory=dict)

    @property
    def cores(self) -> tuple[float, ...]:
        """Cores of each node."""
        if isinstance(self.cpus_per_node, tuple):
            return self.cpus_per_node
        evenly = cores_here() / self.nodes
        return (math.floor(evenly * 1000) / 1000 if self.cpus_per_node is None else self.cpus_per_node,) * self.nodes

    @property
    def told_cores(self) -> float | tuple[float, ...]:
        """Cores of every node, one by one only where they differ."""
        return self.cores[0] if len(set(self.cores)) == 1 else self.cores

    def machine(self, pinned: Mapping[str, Sequence[str]], *, gate_first: bool = False) -> Machine:
        """Return the nodes; memory is divided evenly among them. The rest is as in ``Machine``."""
        width = len(str(self.nodes))
        nodes = {f"node-{number:0{width}d}": cpu for number, cpu in enumerate(self.cores, start=1)}
        return Machine(nodes, psutil.virtual_memory().total / self.nodes, self.seed, pinned, gate_first, jobs=self.jobs)


@dataclass(frozen=True)
class Order:
    """What was asked for: one sweep, under which policies, on what."""

    workflow: Mapping[str, Any]
    source: Path
    policies: Sequence[Policy[Any]]
    settings: LocalSettings

    @property
    def sweep(self) -> str:
        """What the run is named after."""
        metadata = self.workflow.get("metadata") or {}
        name = metadata.get("name") or str(metadata.get("generateName") or self.source.stem).rstrip("-")
        return file_name(name).replace(".", "-")

    @property
    def continues(self) -> str:
        """Id of the sweep that this one goes on with, which was begun elsewhere; empty for none."""
        declared = ((self.workflow.get("spec") or {}).get("arguments") or {}).get("parameters") or []
        written = {parameter.get("name"): parameter.get("value") for parameter in declared}
        name = labels.PARAMETER_CONTINUE
        return str(self.settings.parameters.get(name, written.get(name)) or "")

    def program(self, uid: str) -> Program:
        """Return the workflow as a program whose trials bear ``uid``."""
        try:
            return read_workflow(self.workflow, self.sweep, uid, self.settings.parameters, self.settings.cores)
        except WorkflowError as error:
            message = "this workflow cannot run on this machine:\n" + "\n".join(f"  {line}" for line in error.problems)
            raise SpeconError(message) from error

    def checked(self) -> tuple[PlannedTrial, ...]:
        """Return the trials that are known before running, once nothing speaks against running them here."""
        check_nodes(self.settings.nodes, self.settings.cores)
        for policy in self.policies:
            check_policy(policy, LocalWorld.can, "local")
        planned = check_sweep(self.program("check"), self.settings.machine({}), str(self.source))
        gpus_to_give(planned, gpus_here())
        several = any(aims_in(trial.step.annotations).further for trial in planned)
        for policy in self.policies:
            check_policy(policy, LocalWorld.can, "local", several=several)
        for step in (trial.step for trial in planned):
            self._check_clones(step)
        return planned

    def _check_clones(self, step: PodStep) -> None:
        """Refuse a policy that would clone trials which cannot be cloned.

        Raises:
            SpeconError: says why.
        """
        store = step.env.get(contract.ENV_STATE_STORE, "")
        for policy in self.policies:
            why_not = why_no_clones(
                policy,
                search=step.annotations.get(labels.ANNOTATION_SEARCH, ""),
                gang=step.workers > 1,
                store="" if store == RUN_ARTIFACTS else store,  # where a sweep runs here, that is not used
                printed=contract.ENV_PRINTED in step.env,
            )
            if why_not is not None:
                raise SpeconError(why_not)

    def identity(self) -> dict[str, Any]:
        """Return what makes two orders the same: an unfinished run of the same order is gone on with."""
        return {
            "workflow": self.workflow,
            "policies": [policy_spec(policy) for policy in self.policies],
            "nodes": self.settings.nodes,
            "cpus_per_node": self.settings.told_cores,
            "seed": self.settings.seed,
            "parameters": dict(self.settings.parameters),
        }

    @classmethod
    def kept_in(cls, folder: RunFolder) -> "Order":
        """Return what a run in ``folder`` was asked for.

        Raises:
            SpeconError: an older version began it, which did not keep that.
        """
        kept = folder.order()
        state_dir, cores = folder.path.parent.parent, kept["cpus_per_node"]
        settings = LocalSettings(
            nodes=kept["nodes"],
            cpus_per_node=tuple(cores) if isinstance(cores, list) else cores,
            jobs=kept.get("jobs"),
            inherit=tuple(kept.get("inherit", ())),
            seed=kept["seed"],
            state_dir=state_dir,
            parameters=kept["parameters"],
        )
        policies = [parse_policy(spec) for spec in kept["policies"]]
        return cls(kept["workflow"], Path(kept["source"]), policies, settings)

    def facts(self, planned: Sequence[PlannedTrial], uri: str) -> dict[str, Any]:
        """Return what ``run.json`` tells of the order to people and to the report."""
        annotations = planned[0].step.annotations
        return {
            "file": str(self.source),
            "policies": [policy_spec(policy) for policy in self.policies],
            "seed": self.settings.seed,
            "nodes": self.settings.nodes,
            "cpus_per_node": self.settings.told_cores,
            "started": datetime.now(UTC).isoformat(timespec="seconds"),
            "objective": annotations[labels.ANNOTATION_OBJECTIVE],
            "direction": annotations[labels.ANNOTATION_DIRECTION],
            **{
                fact: annotations[name]
                for fact, name in (
                    ("further_objectives", labels.ANNOTATION_FURTHER_OBJECTIVES),
                    ("constraints", labels.ANNOTATION_CONSTRAINTS),
                )
                if name in annotations
            },
            "tracking_uri": shown(uri),
        }
