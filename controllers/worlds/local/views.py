"""What the local world shows of a job: the trial that policies see, and the result at the end. Pure."""

from controllers.core import labels
from controllers.core.goals import aims_in, goals_in
from controllers.core.lineage import lineage_in
from controllers.core.model import Direction, NodeName, Phase, Sample, Trial, TrialId
from controllers.core.parameters import parameters_in
from controllers.core.results import TrialResult
from controllers.worlds.local.gpus import devices_of
from controllers.worlds.local.jobs import LocalJob
from mlflow_hooks import contract


def trial_of(job: LocalJob, *, waits: bool) -> Trial:
    """Return ``job`` as policies see it; ``waits`` tells that it waits for a place."""
    return Trial(
        id=TrialId(job.trial),
        phase=job.phase,
        cpu=job.cpu,
        base_cpu=job.step.cpu,
        memory=job.step.memory,
        direction=Direction(job.step.annotations[labels.ANNOTATION_DIRECTION]),
        submitted_at=job.submitted_at,
        nodes=tuple(NodeName(node) for node in job.nodes) if job.placed else (),
        attempt=job.attempt,
        moves=job.moves,
        workers=job.size,
        min_workers=job.step.min_workers,
        max_workers=job.step.workers,
        destination=tuple(NodeName(node) for node in job.targets) if job.phase is Phase.MOVING else (),
        gated=waits,
        suspensions=job.suspensions,
        devices=devices_of(job.step.gpus),
        goals=goals_in(job.step.annotations).since(job.submitted_at),
        parameters=parameters_in(job.step.environment.get(contract.ENV_PARAMS, "")),
        search=job.step.annotations.get(labels.ANNOTATION_SEARCH, ""),
        sweep=job.step.labels.get(labels.LABEL_SWEEP, ""),
        threads=job.threads if job.placed else 0,
        aims=aims_in(job.step.annotations),
        lineage=lineage_in(job.step.annotations.get(labels.ANNOTATION_LINEAGE, ""), TrialId(job.trial)),
    )


def result_of(job: LocalJob, short: str, sample: Sample | None) -> TrialResult:
    """Return how a trial went, whose id in every run of its sweep is ``short``; ``sample`` is its newest report."""
    return TrialResult(
        id=short,
        submitted_s=job.submitted_at,
        completed_s=job.ended_at if job.ended_at is not None else job.submitted_at,
        node=job.nodes[0] if job.nodes else "",
        moves=job.moves,
        attempts=job.attempt,
        final_metric=None if sample is None else sample.value,
        succeeded=job.exit_code == 0,
        suspensions=job.suspensions,
        stopped=job.stop if job.phase is Phase.STOPPED else "",
        resizes=job.resizes,
        first_node=job.first_nodes[0] if job.first_nodes else "",
        scales=job.scales,
        workers=job.size,
        first_nodes=job.first_nodes,
        params=job.params,
        cpu_seconds=round(job.cpu_seconds, 3),
        deadline_s=goals_in(job.step.annotations).deadline_s,
        objective=job.step.annotations[labels.ANNOTATION_OBJECTIVE],
        direction=job.step.annotations[labels.ANNOTATION_DIRECTION],
        further_objectives=job.step.annotations.get(labels.ANNOTATION_FURTHER_OBJECTIVES, ""),
        constraints=job.step.annotations.get(labels.ANNOTATION_CONSTRAINTS, ""),
        values={} if sample is None else dict(sample.also),
        remark="" if sample is None else sample.remark,
        sweep=job.step.labels.get(labels.LABEL_SWEEP, ""),
        exit_code=job.exit_code,
        given_up=job.given_up,
        begun_again=max(job.begun_again, 0 if sample is None else sample.begun_again),
    )
