"""One campaign at one instant: its trials, and the nodes with the room that they have for it. Cheap to take anew."""

import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import assert_never

from controllers.core.actions import Action, Migrate, Place, Resize, Stop, Suspend
from controllers.core.model import Node, NodeName, Phase, Trial, TrialId
from controllers.worlds.argo.choices import Choices
from controllers.worlds.argo.gangs import NO_PLAN
from controllers.worlds.argo.nodes import NodeRoom
from controllers.worlds.argo.pods import PodRecord, Resources
from controllers.worlds.argo.trials import PodHistory, TrialState, group_by_trial
from controllers.worlds.argo.view import Campaign, ClusterView
from controllers.worlds.argo.workflows import Step, WorkflowRecord

_SHOWS_WITHIN_S = 30.0
_LEAST_CPU = 0.001
_NOTHING = Resources(0.0, 0.0)


@dataclass(frozen=True, slots=True)
class PendingAction:
    """An action that was taken on and does not show in the cluster yet; ``until`` is on the monotonic clock."""

    action: Action
    pod_uid: str
    until: float

    @classmethod
    def on(cls, pod: PodRecord, action: Action) -> "PendingAction":
        """Return the pending ``action`` on ``pod``."""
        return cls(action, pod.uid, time.monotonic() + _SHOWS_WITHIN_S)

    @property
    def targets(self) -> tuple[NodeName, ...]:
        """The node of each worker that it moves its trial to."""
        return self.action.nodes if isinstance(self.action, Migrate) else ()

    @property
    def rest(self) -> Phase | None:
        """The phase of a trial that it suspends or stops."""
        match self.action:
            case Suspend():
                return Phase.SUSPENDING
            case Stop():
                return Phase.STOPPING
            case _:
                return None

    @property
    def cpu(self) -> float | None:
        """The cores that it gives its trial."""
        return self.action.cpu if isinstance(self.action, Resize) else None

    @property
    def opens_gate(self) -> bool:
        """Whether it opens a gate."""
        return isinstance(self.action, Place)

    @property
    def first_nodes(self) -> tuple[NodeName, ...]:
        """The node of each worker that it opens a gate for, where it chooses them."""
        return self.action.nodes if isinstance(self.action, Place) else ()

    def shown_by(self, state: TrialState) -> bool:
        """Whether the trial's newest pod shows that it was carried out, or that it no longer can be."""
        pod = state.pod
        if pod is None or pod.uid != self.pod_uid or pod.over or time.monotonic() > self.until:
            return True
        match self.action:
            case Resize(cpu=cpu):
                return abs(pod.share.wanted - cpu) < _LEAST_CPU
            case Migrate():
                return bool(pod.marks.move_to)
            case Place():
                return not pod.gated or bool(pod.marks.place)
            case Suspend():
                return bool(pod.marks.rest)
            case Stop():
                return bool(state.stopped)
            case _:
                assert_never(self.action)


@dataclass(slots=True)
class CampaignSnapshot:
    """What was seen at ``taken_at`` (monotonic); ``version`` is the view's of then.

    ``pending`` names the trials that are shown as if a pending action had been carried out.
    """

    version: int
    taken_at: float
    workflow: WorkflowRecord | None
    states: dict[TrialId, TrialState]
    trials: dict[TrialId, Trial]
    nodes: dict[NodeName, Node]
    room: NodeRoom
    pending: set[TrialId]
    choices: Choices

    def include(self, trial: TrialId, pending: PendingAction, origin: float) -> None:
        """Take in an action that was just taken on; ``origin`` is when the sweep began, in Unix seconds."""
        state = replace(self.states[trial], pending_targets=pending.targets, pending_rest=pending.rest)
        self.states[trial] = state
        self.pending.add(trial)
        may_use = self.trials[trial].may_use
        self.trials[trial] = state.as_trial(origin, gate_opens=pending.opens_gate, may_use=may_use)
        _reserve(self.room, state, pending)


def take_snapshot(
    view: ClusterView,
    campaign: Campaign,
    histories: Mapping[TrialId, PodHistory],
    pending: Mapping[TrialId, PendingAction],
    last: CampaignSnapshot | None = None,
) -> CampaignSnapshot:
    """Return what can be seen now.

    Args:
        view: the cluster.
        campaign: whose trials to look for.
        histories: what is known of each trial's pods from before.
        pending: what was taken on and may not show yet.
        last: the snapshot before; what has not changed since is taken from it.
    """
    pending = dict(pending)  # the threads that carry actions out take failed ones away at any time
    version = view.version
    workflow = view.workflow(campaign.uid)
    states = _trial_states(view, campaign, workflow, histories, pending, last)
    requests = view.requests()
    choices = last.choices if last is not None and last.choices.nodes == requests.nodes else Choices(requests.nodes)
    choices.serve((state.demands for state in states.values()), f"workflow {campaign.namespace}/{campaign.workflow}")
    trials: dict[TrialId, Trial] = {}
    for trial, state in states.items():
        may_use = choices.for_trial(state.demands)
        unchanged = last is not None and state is last.states.get(trial) and trial not in last.pending
        if last is not None and unchanged and trial not in pending and last.trials[trial].may_use == may_use:
            # The engine, too, skips what it finds to be the very same object.
            trials[trial] = last.trials[trial]
        else:
            opens = trial in pending and pending[trial].opens_gate
            trials[trial] = state.as_trial(campaign.created_epoch_s, gate_opens=opens, may_use=may_use)
    room = NodeRoom(requests)
    for trial, state in states.items():
        if not trials[trial].steady or trial in pending:
            _reserve(room, state, pending.get(trial))
    with_pods = {trial: state.pod for trial, state in states.items() if state.pod is not None}
    live = [one for trial, pod in with_pods.items() if trials[trial].live for one in pod.pods]
    starting = [
        (node, one)
        for trial, pod in with_pods.items()
        for one in pod.pods
        if (node := _starts_on(states[trial], one, pending.get(trial)))
    ]
    nodes = requests.nodes_for(live, starting, choices.tolerated)
    return CampaignSnapshot(version, time.monotonic(), workflow, states, trials, nodes, room, set(pending), choices)


def _trial_states(
    view: ClusterView,
    campaign: Campaign,
    workflow: WorkflowRecord | None,
    histories: Mapping[TrialId, PodHistory],
    pending: Mapping[TrialId, PendingAction],
    last: CampaignSnapshot | None,
) -> dict[TrialId, TrialState]:
    steps: dict[TrialId, Step] = {}
    if workflow is not None and workflow.unread and last is not None:
        # What Argo recorded before it put its record where nobody can read it: a failed trial stays one.
        steps = {trial: state.step for trial, state in last.states.items() if state.step is not None}
    for step in workflow.steps.values() if workflow is not None else ():
        if campaign.owns(step.definition):
            steps.setdefault(step.definition.id, step)
    made = view.pods_of(workflow) if workflow is not None else ()
    pods = group_by_trial([pod for pod in made if pod.definition is not None and campaign.owns(pod.definition)])
    over_since = None if workflow is None else workflow.over_since
    states: dict[TrialId, TrialState] = {}
    for trial in dict.fromkeys((*steps, *pods, *histories)):
        found = steps.get(trial)
        history = histories.get(trial, PodHistory()).after(pods.get(trial, ()))
        definition = found.definition if found is not None else history.newest.definition if history.newest else None
        if definition is None:
            continue
        if definition.search and history.params != definition.params:
            definition = definition.with_params(history.params)
        targets, rest = (pending[trial].targets, pending[trial].rest) if trial in pending else ((), None)
        plan = NO_PLAN if workflow is None else workflow.plan(definition)
        stopped = "" if workflow is None else workflow.why_stopped(definition)
        tries = None if workflow is None else workflow.tries(definition)
        idle = None if workflow is None else workflow.idle(definition)
        before = None if last is None else last.states.get(trial)
        if before is None or before.history is not history or before.step != found:
            states[trial] = TrialState(
                definition, found, history, over_since, stopped, targets, rest, plan, tries, idle
            )
            continue
        said = (before.pending_targets, before.pending_rest, before.stopped, before.over_since, before.plan)
        if (*said, before.tries, before.idle) == (targets, rest, stopped, over_since, plan, tries, idle):
            states[trial] = before
        else:
            states[trial] = replace(
                before,
                pending_targets=targets,
                pending_rest=rest,
                stopped=stopped,
                over_since=over_since,
                plan=plan,
                tries=tries,
                idle=idle,
            )
    return states


def _starts_on(state: TrialState, pod: PodRecord, pending: PendingAction | None) -> str:
    """Return the node on which a pod with devices was placed that does not run yet; empty where there is none."""
    if not pod.requests.devices or pod.over or state.phase is not Phase.PENDING:
        return ""
    nodes = pending.first_nodes if pending is not None else ()
    chosen = nodes[(pod.rank or 0) % len(nodes)] if nodes and pod.gated else pod.marks.placed_on
    return pod.node or chosen


def _reserve(room: NodeRoom, state: TrialState, pending: PendingAction | None) -> None:
    """Reserve what a place, a move or a resize under way will request."""
    pod, trial = state.pod, state.definition.id
    if pending is not None and pending.cpu is not None and pod is not None:
        for one in pod.pods:
            room.reserve(one.node, Resources(pending.cpu - max(one.share.wanted, one.share.has), 0.0), trial)
    first_nodes = pending.first_nodes if pending is not None else ()
    placed = (first_nodes or pod.marks.place) if pod is not None and pod.gated else ()
    to_come = placed or (state.targets if state.phase is Phase.MOVING else ())
    waits = pod is not None and bool(pod.workers) and pod.gated
    if waits and pod is not None and room.why_no_gang(to_come, pod.requests, pod.demands, trial):
        return  # two gangs that hold parts of the same room for each other would wait for good
    leaves = pod is not None and bool(pod.marks.move_to or (pending is not None and pending.targets))
    waiting = pod.pods if pod is not None and not leaves else ()
    for name in dict.fromkeys(to_come):
        # A pod that was bound to the target already counts there by its own mark.
        bound = sum(one.marks.placed_on == name and not one.gated for one in waiting)
        wanted = (pod.requests if placed and pod is not None else state.next_requests) * (to_come.count(name) - bound)
        # What its workers hold there now will be free by then.
        held = [one.requests for one in pod.pods if one.on_node and one.node == name] if pod is not None else []
        less = sum(held, _NOTHING) if leaves else _NOTHING
        room.reserve(name, (wanted - less).positive(), trial)
