"""One campaign at one instant: its trials, and the nodes with the room that they have for it. Cheap to take again."""

import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Final

from controllers.core.actions import Action, Migrate, Place, Resize, Suspend
from controllers.core.model import Node, NodeName, Phase, Trial, TrialId
from controllers.worlds.argo.calls.grants import Grants
from controllers.worlds.argo.meaning.attempts import Attempt
from controllers.worlds.argo.meaning.choices import Choices
from controllers.worlds.argo.meaning.namespace_room import NamespaceRoom
from controllers.worlds.argo.meaning.room import NodeRoom
from controllers.worlds.argo.meaning.shown import trial_of
from controllers.worlds.argo.meaning.trials import PodHistory, TrialState, group_by_trial
from controllers.worlds.argo.meaning.view import Campaign, ClusterView
from controllers.worlds.argo.reading.pods import NO_RESOURCES, PodRecord, Resources
from controllers.worlds.argo.reading.workflows import NO_NOTES, Step, WorkflowRecord

_UNKNOWN: Final = PodHistory()


@dataclass(slots=True)
class CampaignSnapshot:
    """What was seen at ``taken_at`` (monotonic); ``version`` is the view's of then."""

    version: int
    taken_at: float
    workflow: WorkflowRecord | None
    states: dict[TrialId, TrialState]
    trials: dict[TrialId, Trial]
    nodes: dict[NodeName, Node]
    room: NodeRoom
    choices: Choices
    grants: Grants
    limits: NamespaceRoom

    @property
    def adopted(self) -> bool:
        """Whether the workflow is marked as steered."""
        return self.workflow is not None and self.workflow.adopted

    def include(self, action: Action, origin: float) -> None:
        """Take in an action that was just taken on; ``origin`` is when the sweep began, in Unix seconds."""
        trial = action.trial
        self.states[trial] = state = replace(self.states[trial], pending=action)
        before = self.trials[trial]
        self.trials[trial] = trial_of(state, origin, before.may_use, before.may_ask)
        _reserve(self.room, state)
        _reserve_quota(self.limits, state)


def take_snapshot(
    view: ClusterView,
    campaign: Campaign,
    histories: Mapping[TrialId, PodHistory],
    pending: Mapping[TrialId, Action],
    last: CampaignSnapshot | None = None,
) -> CampaignSnapshot:
    """Return what can be seen now.

    Args:
        view: the cluster.
        campaign: whose trials to look for.
        histories: what is known of each trial's attempts from before.
        pending: what was taken on and may not show yet.
        last: the snapshot before; what has not changed since is taken from it.
    """
    version = view.version
    workflow = view.workflow(campaign.uid)
    states = _trial_states(view, campaign, workflow, histories, pending, last)
    requests = view.requests()
    same = last is not None and last.choices.nodes == requests.nodes
    choices = last.choices if last is not None and same else Choices(requests.nodes, view.kinds_seen)
    choices.serve((state.demands for state in states.values()), f"workflow {campaign.namespace}/{campaign.workflow}")
    trials: dict[TrialId, Trial] = {}
    for trial, state in states.items():
        may_use, may_ask = choices.for_trial(state.demands), choices.kinds_for_trial(state.demands)
        before = last.trials.get(trial) if last is not None and state is last.states.get(trial) else None
        if before is not None and (before.may_use, before.may_ask) == (may_use, may_ask):
            # The engine, too, skips what it finds to be the very same object.
            trials[trial] = before
        else:
            trials[trial] = trial_of(state, campaign.created_epoch_s, may_use, may_ask)
    room = NodeRoom(requests)
    for trial, state in states.items():
        if not trials[trial].steady or state.pending is not None:
            _reserve(room, state)
    pods = [(name, pod) for name, state in states.items() if state.attempt is not None for pod in state.attempt.workers]
    live = [pod for name, pod in pods if trials[name].live]
    starts = ((_starts_on(states[name], pod), pod) for name, pod in pods if pod.requests.devices)
    nodes = requests.nodes_for(live, [(node, pod) for node, pod in starts if node], choices.tolerated)
    for name, until in requests.leaving.items():
        going = nodes[NodeName(name)]
        nodes[going.name] = replace(going, leaves_at=until - campaign.created_epoch_s)
    grants, limits = view.grants(campaign.namespace), NamespaceRoom(*view.limits(campaign.namespace))
    for state in states.values() if limits.counts else ():
        _reserve_quota(limits, state)
    return CampaignSnapshot(version, time.monotonic(), workflow, states, trials, nodes, room, choices, grants, limits)


def _trial_states(
    view: ClusterView,
    campaign: Campaign,
    workflow: WorkflowRecord | None,
    histories: Mapping[TrialId, PodHistory],
    pending: Mapping[TrialId, Action],
    last: CampaignSnapshot | None,
) -> dict[TrialId, TrialState]:
    steps: dict[TrialId, Step] = {}
    before = {} if last is None else last.states
    if workflow is not None and workflow.unread:
        # What Argo recorded before it put its record where nobody can read it: a failed trial stays one.
        steps = {trial: state.step for trial, state in before.items() if state.step is not None}
    for step in workflow.steps.values() if workflow is not None else ():
        if campaign.owns(step.definition):
            steps.setdefault(step.definition.id, step)
    made = view.pods_of(workflow) if workflow is not None else ()
    pods = group_by_trial([pod for pod in made if pod.definition is not None and campaign.owns(pod.definition)])
    over_since = None if workflow is None else workflow.over_since
    states: dict[TrialId, TrialState] = {}
    for trial in dict.fromkeys((*steps, *pods, *histories)):
        recorded = steps.get(trial)
        history = histories.get(trial, _UNKNOWN).after(pods.get(trial, ()))
        made_for = None if history.newest is None else history.newest.lead.definition
        definition = made_for if recorded is None else recorded.definition
        if definition is None:
            continue
        known = (definition.params, definition.lineage)
        if definition.search and known != (history.params, history.lineage):
            definition = definition.with_params(history.params, history.lineage)
        notes = NO_NOTES if workflow is None else workflow.notes(definition)
        state = TrialState(definition, recorded, history, over_since, notes, pending.get(trial))
        states[trial] = before[trial] if before.get(trial) == state else state
    return states


def _starts_on(state: TrialState, pod: PodRecord) -> str:
    """Return the node on which a pod was placed that does not run yet; empty where there is none."""
    if pod.over or state.phase is not Phase.PENDING:
        return ""
    nodes = state.pending.nodes if isinstance(state.pending, Place) else ()
    chosen = nodes[pod.rank % len(nodes)] if nodes and pod.gated else pod.marks.placed_on
    return pod.node or chosen


def _reserve(room: NodeRoom, state: TrialState) -> None:
    """Reserve what a place, a move or a resize under way will request."""
    attempt, trial, pending = state.attempt, state.definition.id, state.pending
    workers = () if attempt is None else attempt.workers
    if isinstance(pending, Resize):
        for pod in workers:
            room.reserve(pod.node, Resources(pending.cpu - max(pod.share.wanted, pod.share.has), 0.0), trial)
    chosen = pending.nodes if isinstance(pending, Place) else ()
    placed = (chosen or attempt.marks.place) if attempt is not None and attempt.gated else ()
    to_come = placed or (state.targets if state.phase is Phase.MOVING else ())
    gathers = attempt is not None and attempt.gang and attempt.gated
    if gathers and attempt and room.why_unfit(to_come, attempt.requests, attempt.demands, trial):
        return  # two gangs that hold parts of the same room for each other would wait for good
    leaves = attempt is not None and bool(attempt.marks.move_to or isinstance(pending, Migrate))
    each = attempt.requests if placed and attempt is not None else state.next_requests
    for name in dict.fromkeys(to_come):
        # A pod that was bound to the target already counts there by its own mark.
        bound = 0 if leaves else sum(pod.marks.placed_on == name and not pod.gated for pod in workers)
        # What its workers hold there now will be free by then.
        held = [pod.requests for pod in workers if leaves and pod.on_node and pod.node == name]
        room.reserve(name, (each * (to_come.count(name) - bound) - sum(held, NO_RESOURCES)).positive(), trial)


def rise_of_next(state: TrialState, attempt: Attempt, workers: int) -> tuple[Resources, int]:
    """Return what the next attempt, of so many ``workers``, requests beyond the newest, and in how many more pods."""
    more = state.next_requests * workers - sum((pod.requests for pod in attempt.workers), NO_RESOURCES)
    return more.positive(), max(0, workers - len(attempt.workers))


def _reserve_quota(limits: NamespaceRoom, state: TrialState) -> None:
    """Reserve what Kubernetes will count and does not yet: shares that rise, and pods that are still to be made."""
    attempt, pending = state.attempt, state.pending
    if state.phase.ended:
        return
    if attempt is None or attempt.over:
        limits.reserve(state.next_requests * state.workers, state.workers)
    elif attempt.marks.move_to or attempt.marks.rest or isinstance(pending, Migrate | Suspend):
        to = pending.nodes if isinstance(pending, Migrate) else attempt.marks.move_to
        limits.reserve(*rise_of_next(state, attempt, len(to) or state.definition.min_workers))
    elif isinstance(pending, Resize):
        shares = (pod.share for pod in attempt.workers)
        rise = sum(max(0.0, pending.cpu - max(share.wanted, share.has)) for share in shares)
        limits.reserve(Resources(rise, 0.0))
    elif attempt.gang and attempt.gated:
        to = pending.nodes if isinstance(pending, Place) else attempt.marks.place
        more = max(0, len(to) - len(attempt.workers))
        limits.reserve(attempt.requests * more, more)
