"""One sight of a campaign: every trial of it, and the nodes, as they were at one instant. Cheap to make anew."""

import time
from collections.abc import Mapping
from dataclasses import dataclass, replace

from controllers.core.model import Migrate, Node, NodeName, Phase, Place, Resize, Trial, TrialId
from controllers.worlds.argo.pods import Load, PodRecord
from controllers.worlds.argo.room import Room
from controllers.worlds.argo.trials import Remembered, TrialState, group_by_trial, remember
from controllers.worlds.argo.view import Campaign, ClusterView
from controllers.worlds.argo.workflows import Step, WorkflowRecord

_SHOWS_WITHIN_S = 30.0


@dataclass(frozen=True, slots=True)
class Intent:
    """An action that was taken on and does not show yet; ``until`` is on the monotonic clock."""

    action: Resize | Migrate | Place
    pod_uid: str
    until: float

    @classmethod
    def of(cls, action: Resize | Migrate | Place, pod: PodRecord) -> "Intent":
        """Return the intent to carry out ``action`` on ``pod``."""
        return cls(action, pod.uid, time.monotonic() + _SHOWS_WITHIN_S)

    def shows(self, pod: PodRecord | None) -> bool:
        """Whether the trial's newest pod shows that it was carried out, or that it no longer can be."""
        if pod is None or pod.uid != self.pod_uid or pod.over or time.monotonic() > self.until:
            return True
        if isinstance(self.action, Resize):
            return abs(pod.share.wanted - self.action.cpu) < 0.001  # noqa: PLR2004 - a request's grain
        return bool(pod.marks.move_to) if isinstance(self.action, Migrate) else not pod.gated


@dataclass(slots=True)
class Sight:
    """What was seen at ``made_at`` (monotonic); ``version`` is the view's of then.

    ``intended`` names the trials that are shown as if an intent had been carried out.
    """

    version: int
    made_at: float
    workflow: WorkflowRecord | None
    states: dict[TrialId, TrialState]
    trials: dict[TrialId, Trial]
    nodes: dict[NodeName, Node]
    room: Room
    intended: set[TrialId]

    def promise(self, trial: TrialId, intent: Intent, origin: float) -> None:
        """Take in an action that was just taken on; ``origin`` is when the sweep began, in Unix seconds."""
        moving = intent.action.node if isinstance(intent.action, Migrate) else None
        state = replace(self.states[trial], wish=moving)
        self.states[trial] = state
        self.intended.add(trial)
        self.trials[trial] = state.shown(origin, opened=_is(intent, Place))
        _promise(self.room, state, intent)


def look(
    view: ClusterView,
    campaign: Campaign,
    known: Mapping[TrialId, Remembered],
    intents: Mapping[TrialId, Intent],
    last: Sight | None = None,
) -> Sight:
    """Return what can be seen now.

    Args:
        view: the cluster.
        campaign: whose trials to look for.
        known: what is remembered of each trial.
        intents: what was taken on and may not show yet.
        last: the sight before; what has not changed since is taken from it.
    """
    version = view.version
    workflow = view.workflow(campaign.uid)
    steps = {} if workflow is None else _by_trial(workflow, campaign)
    pods = group_by_trial([p for p in view.pods_of(campaign.uid) if p.facts is not None and campaign.owns(p.facts)])
    states: dict[TrialId, TrialState] = {}
    for trial in dict.fromkeys((*steps, *(TrialId(trial) for trial in pods), *known)):
        memory = remember(known.get(trial, Remembered()), pods.get(trial, ()))
        before = None if last is None else last.states.get(trial)
        state = _state(steps.get(trial), memory, workflow, intents.get(trial), before)
        if state is not None:
            states[trial] = state
    trials = {
        trial: last.trials[trial]
        if last is not None and state is last.states.get(trial) and trial not in last.intended and trial not in intents
        else state.shown(campaign.created_epoch_s, opened=_is(intents.get(trial), Place))
        for trial, state in states.items()
    }
    requests = view.requests()
    live = [s.pod for t, s in states.items() if s.pod is not None and trials[t].live]
    room = Room(requests)
    for trial, state in states.items():
        if not trials[trial].steady or trial in intents:
            _promise(room, state, intents.get(trial))
    nodes = requests.nodes_for(live)
    return Sight(version, time.monotonic(), workflow, states, trials, nodes, room, set(intents))


def _by_trial(workflow: WorkflowRecord, campaign: Campaign) -> dict[TrialId, Step]:
    found: dict[TrialId, Step] = {}
    for step in workflow.steps.values():
        if campaign.owns(step.facts):
            found.setdefault(step.facts.id, step)
    return found


def _state(
    step: Step | None,
    memory: Remembered,
    workflow: WorkflowRecord | None,
    intent: Intent | None,
    before: TrialState | None,
) -> TrialState | None:
    facts = step.facts if step is not None else memory.pod.facts if memory.pod is not None else None
    if facts is None:
        return None
    moving = intent.action.node if intent is not None and isinstance(intent.action, Migrate) else None
    over = None if workflow is None else workflow.over_since
    if before is not None and before.known is memory and before.step == step:
        unchanged = before.wish == moving and before.over_since == over
        return before if unchanged else replace(before, wish=moving, over_since=over)
    return TrialState(facts, step, memory, over, moving)


def _is(intent: Intent | None, kind: type) -> bool:
    return intent is not None and isinstance(intent.action, kind)


def _promise(room: Room, state: TrialState, intent: Intent | None) -> None:
    """Count in what a move or a resize under way will request."""
    pod = state.pod
    if intent is not None and isinstance(intent.action, Resize) and pod is not None:
        room.promise(pod.node, Load(intent.action.cpu - max(pod.share.wanted, pod.share.has), 0.0))
    target = state.target
    if target is None or state.phase is not Phase.MOVING:
        return
    if pod is None or not (pod.marks.placed_on == target and not pod.gated and not pod.marks.move_to):
        room.promise(target, next_load(state))


def next_load(state: TrialState) -> Load:
    """Return what the trial's next pod will request: as its author asked, whatever it has now."""
    pod = state.known.pod
    beside = 0.0 if pod is None else pod.load.cpu - max(pod.share.wanted, pod.share.has)
    memory = state.memory if pod is None else pod.load.memory
    return Load(state.base_cpu + max(0.0, beside), memory)
