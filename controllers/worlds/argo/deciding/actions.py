"""The command that carries an action of a policy out, or why it cannot be done as things are. Pure."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, assert_never

from controllers.core import labels
from controllers.core.actions import Action, Clone, Migrate, Place, Resize, Stop, Suspend
from controllers.core.annotations import MOST_OF_ONE, AnnotationError, check_fits, reason_that_fits
from controllers.core.lineage import MOST_CLONES, clone_annotations
from controllers.core.model import NodeName, Phase
from controllers.worlds.argo.deciding.bounded_shares import bounded
from controllers.worlds.argo.deciding.commands import (
    Annotate,
    Annotations,
    Command,
    Leave,
    OpenGates,
    SetShare,
    Told,
    bound_to,
)
from controllers.worlds.argo.deciding.planner import choice
from controllers.worlds.argo.meaning.attempts import Attempt
from controllers.worlds.argo.meaning.limits import why_no_more, why_not_the_last
from controllers.worlds.argo.meaning.snapshot import CampaignSnapshot, rise_of_next
from controllers.worlds.argo.meaning.trials import TrialState, node_names
from controllers.worlds.argo.reading.marks import written_nodes
from controllers.worlds.argo.reading.pods import whole_milli
from controllers.worlds.argo.reading.versions import RESIZES_SINCE
from mlflow_hooks.contract import ENV_LINEAGE

_NOT_RUNNING: Final = "the trial is not running"


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why there is no command for an action, in words for people."""

    why: str


def command_for(action: Action, state: TrialState, seen: CampaignSnapshot, *, hooked: bool = True) -> Command | Refusal:
    """Return the command that carries ``action`` out on a trial, or why that cannot be.

    Args:
        action: What a policy wants.
        state: The trial as it is.
        seen: What there is beside it: the workflow, the room on the nodes, and what is granted.
        hooked: Whether its program is known to have our hooks.
    """
    attempt = state.attempt
    if attempt is None:
        return Refusal(_NOT_RUNNING)
    match action:
        case Resize():
            return _resize(action, state, attempt, seen)
        case Migrate():
            why_not = _why_it_stays(state, attempt, seen, hooked=hooked)
            return Refusal(why_not) if why_not else _move(action, state, attempt, seen)
        case Place():
            return _place(action, state, attempt, seen)
        case Suspend():
            why_not = _why_it_stays(state, attempt, seen, hooked=hooked) or _why_no_quota(
                state, attempt, seen, state.definition.min_workers
            )
            return Refusal(why_not) if why_not else _suspend(state, attempt, signals=seen.grants.signals)
        case Stop():
            return _stop(action, state, attempt, seen, hooked=hooked)
        case Clone():
            return _clone(action, state, attempt, seen)
        case _:
            assert_never(action)


def _resize(action: Resize, state: TrialState, attempt: Attempt, seen: CampaignSnapshot) -> SetShare | Refusal:
    if state.phase is not Phase.RUNNING:
        return Refusal(f"the trial is {state.phase}")
    if not attempt.runs:
        return Refusal(_NOT_RUNNING)
    allowed = bounded(action, state, attempt, seen)
    if not isinstance(allowed, Resize):
        return Refusal(allowed)
    why_not = _why_not_resize(allowed.cpu, attempt, seen)
    return Refusal(why_not) if why_not else SetShare(attempt, allowed.cpu)


def _why_not_resize(cpu: float, attempt: Attempt, seen: CampaignSnapshot) -> str | None:
    share, quality = attempt.share, attempt.lead.quality
    if whole_milli(cpu) < 1:
        return f"{cpu:g} cores are too few: the least is 0.001"
    # Kubernetes refuses a resize that would change the pod's quality of service, which its first requests fixed.
    if quality != "Burstable" or not share.wanted:
        cure = "give it a CPU request" if quality == "BestEffort" else "set no limits, or some above the requests"
        return f"a pod of quality of service {quality} would lose it with a request of {cpu:g} cores: {cure}"
    old = next((record for node in attempt.nodes if (record := seen.room.nodes.get(node)) and not record.resizes), None)
    if old is not None:
        return f"the kubelet of {old.name}, {old.kubelet}, changes no share of a running pod: it takes {RESIZES_SINCE}"
    if share.limit is not None and cpu > share.limit:
        return f"{cpu:g} cores are more than the container's limit of {share.limit:g}"
    more: dict[str, float] = {}
    for worker in attempt.workers:
        more[worker.node] = more.get(worker.node, 0.0) + cpu - max(worker.share.wanted, worker.share.has)
    lacking = next((node for node, cores in more.items() if seen.room.lacks(node, cores)), None)
    return None if lacking is None else f"{cpu:g} cores do not fit on {lacking}"


def _why_it_stays(state: TrialState, attempt: Attempt, seen: CampaignSnapshot, *, hooked: bool) -> str | None:
    """Return why a trial cannot leave so that it goes on later, None where it can."""
    if why_not := _why_it_cannot_leave(state, attempt, seen, hooked=hooked):
        return why_not
    if not seen.grants.signals and attempt.was_asked:
        return f"pod {attempt.lead.name} was asked to leave before, and has not: nobody may send it a signal"
    return why_no_more(state, attempt)


def _why_it_cannot_leave(state: TrialState, attempt: Attempt, seen: CampaignSnapshot, *, hooked: bool) -> str | None:
    if state.phase is not Phase.RUNNING or not attempt.runs:
        return _NOT_RUNNING
    if why_not := attempt.why_unasked(seen.grants):
        return f"pod {attempt.lead.name} cannot be asked to leave: {why_not}"
    if not hooked and not seen.grants.signals:
        return (
            f"pod {attempt.lead.name} cannot be asked to leave: this controller may not exec, and nothing in MLflow "
            "tells yet that its program has the hooks, which look at the annotation"
        )
    # Argo gates the pod that follows a move only in an adopted workflow: this one would start anywhere.
    return None if seen.adopted else "the workflow is not marked as steered yet"


def _move(action: Migrate, state: TrialState, attempt: Attempt, seen: CampaignSnapshot) -> Leave | Refusal:
    if attempt.devices_unread:
        return Refusal(f"no node can be chosen for it: {attempt.devices_unread}")
    nodes = action.nodes
    to, here = written_nodes(nodes), written_nodes(attempt.nodes)
    if to == here:
        return Refusal(f"the trial is on {to} already")
    why_not = (
        _why_not_so_many(nodes, state, attempt)
        or _why_unwritable(nodes)
        or seen.room.why_unfit(nodes, state.next_requests, attempt.demands, state.definition.id, attempt.workers)
        or _why_no_quota(state, attempt, seen, len(nodes))
    )
    if why_not:
        return Refusal(why_not)
    return Leave(
        attempt,
        Told("Moving", f"asked to save and leave {here} for {to}"),
        seen.grants.signals,
        on_pod={labels.ANNOTATION_MOVE_TO: to},
        on_workflow=_plan(state, attempt, len(nodes)),
    )


def _why_no_quota(state: TrialState, attempt: Attempt, seen: CampaignSnapshot, workers: int) -> str | None:
    """Return why Argo could not make the next attempt, of so many workers; None where the quotas have room for it."""
    more, pods = rise_of_next(state, attempt, workers)
    return seen.limits.why_not(more, pods)


def _suspend(state: TrialState, attempt: Attempt, *, signals: bool) -> Leave:
    return Leave(
        attempt,
        Told("Suspending", f"asked to save and leave {written_nodes(attempt.nodes)}, and to wait"),
        signals,
        on_pod={labels.ANNOTATION_REST: "suspend"},
        on_workflow=_plan(state, attempt, state.definition.min_workers),
    )


def _stop(
    action: Stop, state: TrialState, attempt: Attempt, seen: CampaignSnapshot, *, hooked: bool
) -> Leave | Refusal:
    # One that waits for room is on no node: its pods make way for some that only end the step.
    unplaced = state.phase is Phase.PENDING and not any(attempt.nodes)
    waits = state.suspended or state.waits_to_begin or unplaced
    if not waits and (why_not := _why_it_cannot_leave(state, attempt, seen, hooked=hooked)):
        return Refusal(why_not)
    if why_not := why_not_the_last(state, attempt):
        return Refusal(why_not)
    workflow, mark = seen.workflow, state.definition.mark(labels.ANNOTATION_STOP)
    trials = len(seen.states) + (0 if workflow is None else len(workflow.to_come))
    noted = {mark: reason_that_fits(action.why, mark, trials)}
    try:
        check_fits(noted, {} if workflow is None else workflow.annotations, "the mark of the stop")
    except AnnotationError as error:
        return Refusal(str(error))
    # One that left too often for nothing may leave once more, so that its step succeeds.
    freed: Annotations = {} if state.notes.idle is None else {state.definition.mark(labels.ANNOTATION_IDLE): None}
    notes = {**_plan(state, attempt, 1), **freed, **noted}
    begins = Told("Stopping", f"the trial ends early: {action.why}")
    return Leave(attempt, begins, seen.grants.signals, on_workflow=notes)


def _clone(action: Clone, state: TrialState, attempt: Attempt, seen: CampaignSnapshot) -> Annotate | Refusal:
    trial = state.definition
    if not state.suspended:
        return Refusal("the trial is not suspended")
    if action.parent not in seen.states or action.parent == trial.id:
        return Refusal(f"{action.parent} is no other trial")
    if not trial.search or trial.gang:
        return Refusal("a search must give the trial its hyperparameters, and it must not be a gang")
    if not attempt.lead.takes_lineage:
        return Refusal(f"pod {attempt.lead.name} has no variable {ENV_LINEAGE}: build the workflow again")
    if len(trial.lineage) >= MOST_CLONES:
        return Refusal(f"it has gone on from another's checkpoint {MOST_CLONES} times, which is the most")
    told = Told("Cloned", f"goes on from the checkpoint of {action.parent} once it has a place")
    return Annotate(attempt, clone_annotations((*trial.lineage, action.parent), action.point), told=told)


def _plan(state: TrialState, attempt: Attempt, next_size: int) -> Annotations:
    """Return the annotations of the workflow for a gang that is asked to leave; none for a trial of one worker."""
    return state.planned(attempt, next_size, leaves=True).annotations(state.definition) if attempt.gang else {}


def _place(
    action: Place, state: TrialState, attempt: Attempt, seen: CampaignSnapshot
) -> OpenGates | Annotate | Refusal:
    if state.phase not in {Phase.PENDING, Phase.SUSPENDED} or not attempt.gated:
        return Refusal("the trial does not wait for a place")
    if attempt.queued:
        return Refusal("Kueue has not admitted it yet")
    if attempt.devices_pending:
        return Refusal("Kubernetes has not made all of its resource claims yet")
    trial, room, nodes = state.definition, seen.room, action.nodes
    point = action.point or trial.point
    if trial.asks and not point:
        return Refusal("a search has yet to find its hyperparameters")
    if attempt.gang and not nodes:
        least = max(attempt.size, trial.min_workers)
        sizes = range(max(least, state.workers), least - 1, -1)
        possible = (room.places(size, attempt.requests, attempt.demands, trial.id, ()) for size in sizes)
        nodes = node_names(next(filter(None, possible), ()))
        if not nodes:
            cores = attempt.requests.cpu
            return Refusal(f"no nodes have room for {least} workers of {cores:g} cores that it may use")
    if attempt.gang and len(nodes) < attempt.size:
        return Refusal(f"this attempt has {attempt.size} pods already, and cannot have {len(nodes)} workers")
    why_not = (
        _why_not_so_many(nodes, state, attempt)
        or _why_unwritable(nodes)
        or room.why_unfit(nodes, attempt.requests, attempt.demands, trial.id)
        or seen.limits.why_not(attempt.requests * (pods := max(0, len(nodes) - attempt.size)), pods)
    )
    if why_not:
        return Refusal(why_not)
    if attempt.gang:
        # The gates open together, once each worker has its pod.
        return choice(state, attempt, nodes, point)
    bound = bound_to(attempt, [room.nodes[node] for node in nodes]) or (None,)
    return OpenGates(attempt, bound, "as its policy wants", point=point)


def _why_not_so_many(nodes: Sequence[NodeName], state: TrialState, attempt: Attempt) -> str | None:
    least, most = (state.definition.min_workers, state.definition.workers) if attempt.gang else (1, 1)
    if not nodes or least <= len(nodes) <= most:
        return None
    return f"{len(nodes)} workers are asked for, and it has from {least} to {most}"


def _why_unwritable(nodes: Sequence[NodeName]) -> str | None:
    letters = len(written_nodes(nodes))
    return f"the names of its {len(nodes)} nodes have {letters} letters" if letters > MOST_OF_ONE else None
