"""What the Argo world shows of a trial: the trial that policies see, and the result at the end. Pure."""

from itertools import pairwise
from typing import Final

from controllers.core.actions import Place
from controllers.core.model import NodeName, Phase, Sample, Trial
from controllers.core.results import TrialResult
from controllers.worlds.argo.meaning.limits import given_up
from controllers.worlds.argo.meaning.trials import TrialState, node_names

_ON_NODES: Final = frozenset({Phase.RUNNING, Phase.MOVING, Phase.SUSPENDING, Phase.STOPPING})


def trial_of(
    state: TrialState,
    origin: float,
    may_use: frozenset[NodeName] | None = None,
    may_ask: frozenset[str] | None = None,
) -> Trial:
    """Return the trial for policies.

    Args:
        state: It.
        origin: The sweep's beginning, in Unix seconds.
        may_use: The nodes that it may use.
        may_ask: The kinds of nodes that it may use.
    """
    definition, phase, attempt, asked = state.definition, state.phase, state.attempt, state.asked
    waits = phase is Phase.SUSPENDED or (phase is Phase.PENDING and state.waits_to_begin)
    # First Kueue admits it, and its claims are made. A node that was chosen before might be full by then.
    waits = waits and not (attempt is not None and (attempt.queued or attempt.devices_pending))
    if waits and isinstance(state.pending, Place):
        waits, phase = False, Phase.PENDING
    submitted_at = max(0.0, state.submitted_at - origin)
    # Between two attempts a trial holds no node, and has the share that its next pods will start with.
    held = attempt if attempt is not None and attempt.on_nodes and phase in _ON_NODES else None
    return Trial(
        id=definition.id,
        phase=phase,
        cpu=asked.cpu if held is None else held.share.has,
        base_cpu=asked.cpu,
        memory=asked.memory,
        direction=definition.direction,
        submitted_at=submitted_at,
        nodes=() if held is None else node_names(held.nodes),
        attempt=state.attempts,
        moves=state.moves,
        workers=state.workers,
        min_workers=definition.min_workers,
        max_workers=definition.workers,
        destination=state.targets if phase is Phase.MOVING else (),
        gated=waits,
        goals=definition.goals.since(submitted_at),
        devices=asked.devices,
        parameters=definition.parameters,
        suspensions=state.suspensions,
        search=definition.search,
        sweep=definition.sweep,
        may_use=may_use,
        may_ask=may_ask,
        aims=definition.aims,
        lineage=definition.lineage,
    )


def result_of(state: TrialState, short: str, sample: Sample | None, origin: float) -> TrialResult:
    """Return how a trial went.

    Args:
        state: It.
        short: Its id in every run of its sweep.
        sample: The newest report of its training, if there is one.
        origin: The sweep's beginning, in Unix seconds.
    """
    step, definition, newest = state.step, state.definition, state.history.newest
    nodes = [attempt.node for attempt in step.attempts if attempt.node] if step is not None else []
    if not nodes and newest is not None and newest.node:
        nodes = [newest.node]
    ended = step.finished_at if step is not None else None
    further, constraints = definition.aims.written
    sizes = state.notes.plan.sizes[: state.attempts]
    return TrialResult(
        id=short,
        submitted_s=max(0.0, state.submitted_at - origin),
        completed_s=max(0.0, (state.submitted_at if ended is None else ended) - origin),
        node=nodes[-1] if nodes else "",
        moves=state.moves,
        attempts=state.attempts,
        final_metric=None if sample is None else sample.value,
        succeeded=state.phase in {Phase.SUCCEEDED, Phase.STOPPED},
        suspensions=state.suspensions,
        stopped=state.stopped if state.phase is Phase.STOPPED else "",
        resizes=state.history.resizes,
        given_up=state.phase is Phase.FAILED and given_up(state),
        scales=sum(size != other for size, other in pairwise(sizes)),
        workers=state.workers,
        first_node=nodes[0] if nodes else "",
        params=definition.hyperparameters(),
        deadline_s=definition.goals.deadline_s,
        objective=definition.objective,
        direction=definition.direction.value,
        further_objectives=further,
        constraints=constraints,
        values={} if sample is None else dict(sample.also),
        remark="" if sample is None else sample.remark,
        sweep=definition.sweep,
    )
