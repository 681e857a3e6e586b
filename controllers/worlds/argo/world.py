"""The Argo world: one campaign's trials as pods of an Argo workflow, resized in place and moved between nodes."""

import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import assert_never

from controllers.core import labels
from controllers.core.actions import ACTION_KINDS, Action, Migrate, Place, Resize, Stop, Suspend
from controllers.core.annotations import AnnotationError
from controllers.core.model import Node, NodeName, Phase, Sample, Trial, TrialId
from controllers.core.ports import BUSY, DONE, ComingTrial, Outcome, refused
from controllers.core.results import TrialResult
from controllers.worlds.argo.api import WORKFLOWS, ApiError
from controllers.worlds.argo.attempts import idling_of, why_no_more, why_not_the_last
from controllers.worlds.argo.commands import ChoosePlace, Command, OpenGate, Planner, Recreate, Timeouts
from controllers.worlds.argo.definitions import warn_once
from controllers.worlds.argo.events import EventSink
from controllers.worlds.argo.executor import Counts, Executor, RunOf
from controllers.worlds.argo.gang_planner import GangPlanner
from controllers.worlds.argo.gangs import MOST_ATTEMPTS, why_unwritable, written_nodes
from controllers.worlds.argo.pod_changes import whole_milli
from controllers.worlds.argo.pods import MainState, PodRecord
from controllers.worlds.argo.snapshot import CampaignSnapshot, PendingAction, take_snapshot
from controllers.worlds.argo.trials import PodHistory, TrialState
from controllers.worlds.argo.view import Campaign, ClusterView, rest_s
from controllers.worlds.argo.workflow_notes import plan_notes, stop_notes

_LOOK_EVERY_S = 0.2
_LEAVING = frozenset({Phase.MOVING, Phase.SUSPENDING, Phase.STOPPING})


class ArgoWorld:
    """The trials of one campaign. ``advance`` keeps moves going; nothing here waits for the API server.

    Args:
        view: the cluster, synced.
        campaign: one of ``view.campaigns()``.
        events: where to tell people what was done.
        timeouts: how long to wait for what.
        run_of: tells the run in MLflow that an attempt shall log to.
    """

    can: frozenset[type[Action]] = frozenset(ACTION_KINDS)

    def __init__(
        self,
        view: ClusterView,
        campaign: Campaign,
        *,
        events: EventSink,
        timeouts: Timeouts | None = None,
        run_of: RunOf = lambda *_, **__: "",
    ) -> None:
        self._view = view
        self._campaign = campaign
        self._events = events
        self._timeouts = timeouts or Timeouts()
        self._epoch_ahead_s = campaign.created_epoch_s - time.monotonic()
        self._executor = Executor(view.api, view.writes, events, run_of, self._epoch)
        self._histories: dict[TrialId, PodHistory] = {}
        self._pending: dict[TrialId, PendingAction] = {}
        self._abandoned: set[TrialId] = set()
        self._look_s = self._rest_until = 0.0
        self._snapshot = take_snapshot(view, campaign, {}, {})

    @property
    def finished(self) -> bool:
        """Whether the whole workflow was over, or deleted, at the last look."""
        workflow = self._snapshot.workflow
        return workflow is None or workflow.finished

    @property
    def failed(self) -> bool:
        """Whether the workflow had come to a bad end, or was deleted, at the last look."""
        workflow = self._snapshot.workflow
        return workflow is None or workflow.failed

    def advance(self, now: float) -> bool:
        """Do what is due at ``now`` seconds of the sweep's clock; return whether any trial or node has changed."""
        began = time.monotonic()
        self._epoch_ahead_s = self._campaign.created_epoch_s + now - began
        if began < self._rest_until or self._age_s() > self._timeouts.stale:
            return False
        before, self._snapshot = self._snapshot, self._look()
        self._adopt_workflow()
        planner = Planner(self._snapshot.room, self._epoch(), self._timeouts)
        gangs = GangPlanner(planner)
        for trial, state in self._snapshot.states.items():
            self._tell_changes(before.trials.get(trial), state)
            rules = gangs if state.pod is not None and state.pod.workers else planner
            command = rules.next_command(state, self._executor.asked(state.pod))
            if command is not None:
                self._begin(trial, state, command)
        ended = time.monotonic()
        self._rest_until = ended + rest_s(ended - began)
        return (before.trials, before.nodes) != (self._snapshot.trials, self._snapshot.nodes)

    def _epoch(self) -> float:
        """Return the Unix time by the sweep's clock."""
        return time.monotonic() + self._epoch_ahead_s

    def trials(self) -> Sequence[Trial]:
        """Return every trial that Argo has begun so far."""
        return list(self._current().trials.values())

    def trial(self, name: TrialId) -> Trial | None:
        """Return one trial."""
        return self._current().trials.get(name)

    def to_come(self) -> Sequence[ComingTrial]:
        """Return every trial that the workflow has by its templates and Argo has not begun."""
        current = self._current()
        planned = () if current.workflow is None or current.workflow.finished else current.workflow.to_come
        own = self._campaign.sweeps
        return [trial for trial in planned if trial.id not in current.trials and trial.id.rpartition(".")[0] in own]

    def nodes(self) -> Sequence[Node]:
        """Return every node with what it has for this campaign's trials: less what all other pods request."""
        return list(self._current().nodes.values())

    def node(self, name: NodeName) -> Node | None:
        """Return one node."""
        return self._current().nodes.get(name)

    def pod(self, trial: TrialId) -> PodRecord | None:
        """Return a trial's newest pod, None where it has none now."""
        state = self._current().states.get(trial)
        return None if state is None else state.pod

    def objectives(self) -> Mapping[TrialId, str]:
        """Return the name of each trial's objective, of the trials that were there at the last look."""
        # Whoever reads metrics asks on another thread: a look of its own could end after a newer one, and replace it.
        return {trial: state.definition.objective for trial, state in self._snapshot.states.items()}

    def short(self, trial: str) -> str:
        """Return the trial's id without the workflow's uid: the same in every run of the sweep."""
        return trial.removeprefix(f"{self._campaign.sweep_uid}.")

    def results(self, samples: Mapping[TrialId, Sample]) -> tuple[TrialResult, ...]:
        """Return how each trial went, in the order of submission; all have ended once ``finished``."""
        origin = self._campaign.created_epoch_s
        found = [
            state.result(self.short(trial), samples.get(trial), origin)
            for trial, state in self._current().states.items()
        ]
        return tuple(sorted(found, key=lambda result: (result.submitted_s, result.id)))

    def apply(self, action: Action) -> Outcome:
        """Take on ``action`` if the trial and its node allow it; how it fares shows in later snapshots."""
        if self._age_s() > self._timeouts.stale:
            return refused(f"the API server has been silent for {self._age_s():.0f} s")
        state = self._current().states.get(action.trial)
        if state is None or state.pod is None:
            return refused("the trial is not running")
        if isinstance(action, Migrate | Suspend | Stop) and self._view.writes.overtake(state.pod.uid):
            # The next pod starts with the share its author asked for, so a resize that still waits is worth nothing.
            self._drop(action.trial)
        if action.trial in self._pending or self._view.writes.busy(state.pod.uid) or state.phase in _LEAVING:
            return BUSY
        match action:
            case Resize():
                return self._resize(state, state.pod, action)
            case Migrate():
                return self._migrate(state, state.pod, action)
            case Place():
                return self._place(state, state.pod, action)
            case Suspend():
                return self._suspend(state, state.pod, action)
            case Stop():
                return self._stop(state, state.pod, action)
            case _:
                assert_never(action)

    def _resize(self, state: TrialState, pod: PodRecord, action: Resize) -> Outcome:
        why_not = self._why_not_resize(state, pod, action.cpu)
        if why_not:
            return refused(why_not)
        resizes = state.history.resizes
        begun = self._executor.resize(pod, action.cpu, resizes, lambda: self._drop(action.trial))
        return self._take_on(action, pod, begun=begun)

    def _why_not_resize(self, state: TrialState, pod: PodRecord, cpu: float) -> str:
        share = pod.share
        if state.phase is not Phase.RUNNING:
            return f"the trial is {state.phase}"
        if pod.main is not MainState.RUNNING or pod.deleted_at is not None:
            return "the trial is not running"
        if whole_milli(cpu) < 1:
            return f"{cpu:g} cores are too few: the least is 0.001"
        # Kubernetes refuses a resize that would change the pod's quality of service, which its first requests fixed.
        if pod.quality != "Burstable" or not share.wanted:
            return f"a pod of quality of service {pod.quality} would lose it with a request of {cpu:g} cores"
        if share.limit is not None and cpu > share.limit:
            return f"{cpu:g} cores are more than the container's limit of {share.limit:g}"
        more: dict[str, float] = {}
        for one in pod.pods:
            more[one.node] = more.get(one.node, 0.0) + cpu - max(one.share.wanted, one.share.has)
        lacking = next((node for node, cores in more.items() if self._snapshot.room.lacks(node, cores)), None)
        return "" if lacking is None else f"{cpu:g} cores do not fit on {lacking}"

    def _migrate(self, state: TrialState, pod: PodRecord, action: Migrate) -> Outcome:
        if why_not := self._why_it_cannot_leave(state, pod) or why_no_more(state, pod):
            return refused(why_not)
        nodes = action.nodes
        if nodes == pod.nodes:
            return refused(f"the trial is on {written_nodes(nodes)} already")
        if pod.workers:
            why_not = self._why_no_gang(state, pod, nodes)
        else:
            why_not = self._snapshot.room.why_unfit(action.node, state.next_requests, state.demands, action.trial)
        if why_not:
            return refused(why_not)
        plan = plan_notes(state, pod, len(nodes))
        begun = self._executor.move(pod, nodes, plan, lambda: self._drop(action.trial))
        return self._take_on(action, pod, begun=begun)

    def _why_no_gang(self, state: TrialState, pod: PodRecord, nodes: tuple[NodeName, ...]) -> str:
        """Return why the next attempt of a gang cannot have its workers on ``nodes``, empty where it can."""
        trial = state.definition
        if not trial.min_workers <= len(nodes) <= trial.workers:
            return f"{len(nodes)} workers are asked for, and it has from {trial.min_workers} to {trial.workers}"
        if pod.attempt > MOST_ATTEMPTS:
            return f"it has had {pod.attempt} attempts, and must keep some for failures"
        room = self._snapshot.room
        return why_unwritable(nodes) or room.why_no_gang(nodes, state.next_requests, pod.demands, trial.id, pod.workers)

    def _suspend(self, state: TrialState, pod: PodRecord, action: Suspend) -> Outcome:
        if why_not := self._why_it_cannot_leave(state, pod) or why_no_more(state, pod):
            return refused(why_not)
        plan = plan_notes(state, pod, state.definition.min_workers)
        return self._take_on(action, pod, begun=self._executor.suspend(pod, plan, lambda: self._drop(action.trial)))

    def _stop(self, state: TrialState, pod: PodRecord, action: Stop) -> Outcome:
        waits = state.suspended or state.waits_to_begin
        if not waits and (why_not := self._why_it_cannot_leave(state, pod)):
            return refused(why_not)
        if why_not := why_not_the_last(state, pod):
            return refused(why_not)
        try:
            notes = stop_notes(self._snapshot, state, pod, action.why)
        except AnnotationError as error:
            return refused(str(error))
        begun = self._executor.stop(pod, notes, action.why, lambda: self._drop(action.trial))
        return self._take_on(action, pod, begun=begun)

    def _why_it_cannot_leave(self, state: TrialState, pod: PodRecord) -> str:
        if state.phase is not Phase.RUNNING or pod.main is not MainState.RUNNING or pod.deleted_at is not None:
            return "the trial is not running"
        if pod.shares_processes:
            return f"pod {pod.name} gets no signal: {pod.shares_processes}"
        # Argo gates the pod that follows a move only in an adopted workflow: this one would start anywhere.
        return "" if self._adopted() else "the workflow is not marked as steered yet"

    def _place(self, state: TrialState, pod: PodRecord, action: Place) -> Outcome:
        if state.phase not in {Phase.PENDING, Phase.SUSPENDED} or not pod.gated:
            return refused("the trial does not wait for a place")
        point = action.point or state.definition.point
        if state.definition.asks and not point:
            return refused("a search has yet to find its hyperparameters")
        room = self._snapshot.room
        if pod.workers:
            return self._place_gang(state, pod, action)
        why_not = "" if action.node is None else room.why_unfit(action.node, pod.requests, pod.demands, action.trial)
        if why_not:
            return refused(why_not)
        node = None if action.node is None else room.nodes[action.node]
        return self._carry_out(action, state, OpenGate(pod, node, "as its policy wants", point=point))

    def _place_gang(self, state: TrialState, pod: PodRecord, action: Place) -> Outcome:
        """Note where the workers of a gang go; the planner opens the gates together once each worker has its pod."""
        trial, room = state.definition, self._snapshot.room
        least, nodes = max(pod.size, trial.min_workers), action.nodes
        if not nodes:
            sizes = range(max(least, state.workers), least - 1, -1)
            found = (room.places(size, pod.requests, pod.demands, trial.id, ()) for size in sizes)
            nodes = tuple(NodeName(name) for name in next(filter(None, found), ()))
            if not nodes:
                return refused(f"no nodes have room for {least} workers of {pod.requests.cpu:g} cores that it may use")
        if len(nodes) < pod.size:
            return refused(f"this attempt has {pod.size} pods already, and cannot have {len(nodes)} workers")
        if not trial.min_workers <= len(nodes) <= trial.workers:
            return refused(f"it has from {trial.min_workers} to {trial.workers} workers, not {len(nodes)}")
        if why_not := why_unwritable(nodes) or room.why_no_gang(nodes, pod.requests, pod.demands, trial.id):
            return refused(why_not)
        chosen = Place(action.trial, nodes, action.point)
        return self._carry_out(chosen, state, ChoosePlace(pod, nodes, action.point or trial.point))

    def _carry_out(self, action: Place, state: TrialState, command: OpenGate | ChoosePlace) -> Outcome:
        def done(failure: ApiError | None) -> None:
            if failure is not None:
                self._drop(action.trial)

        return self._take_on(action, command.pod, begun=self._executor.carry_out(command, _counts(state), done))

    def _take_on(self, action: Action, pod: PodRecord, *, begun: bool) -> Outcome:
        if not begun:
            return BUSY
        pending = PendingAction.on(pod, action)
        self._pending[action.trial] = pending
        # Policies see it as done at once, lest they ask for it again before the API server shows it.
        self._snapshot.include(action.trial, pending, self._campaign.created_epoch_s)
        return DONE

    def _drop(self, trial: TrialId) -> None:
        self._pending.pop(trial, None)

    def _begin(self, trial: TrialId, state: TrialState, command: Command) -> None:
        def done(failure: ApiError | None) -> None:
            if failure is None and isinstance(command, Recreate):
                self._abandoned.add(trial)
            if failure is not None and isinstance(command, ChoosePlace):
                self._drop(trial)

        begun = self._executor.carry_out(command, _counts(state), done)
        if begun and isinstance(command, ChoosePlace):
            # Room that was chosen for a gang is no other's, from now on.
            nodes = tuple(NodeName(name) for name in command.nodes)
            self._take_on(Place(trial, nodes), command.pod, begun=True)

    def _current(self) -> CampaignSnapshot:
        """Return the newest snapshot; a tick that asks thousands of times does not take thousands of them."""
        old = time.monotonic() - self._snapshot.taken_at > max(_LOOK_EVERY_S, rest_s(self._look_s))
        if old and self._view.version != self._snapshot.version:
            self._snapshot = self._look()
        return self._snapshot

    def _look(self) -> CampaignSnapshot:
        """Take a snapshot; drop the pending actions that it shows."""
        began = time.monotonic()
        self._forget_abandoned_moves()
        snapshot = take_snapshot(self._view, self._campaign, self._histories, self._pending, self._snapshot)
        states = snapshot.states
        self._histories = {trial: state.history for trial, state in states.items()}
        pending = list(self._pending.items())
        shown = [trial for trial, one in pending if trial not in states or one.shown_by(states[trial])]
        for trial in shown:
            self._drop(trial)
        self._executor.forget_all_but(frozenset(s.pod.uid for s in states.values() if s.pod is not None))
        if shown:
            # Once more: until now these trials were shown as if their actions were still to come.
            snapshot = take_snapshot(self._view, self._campaign, self._histories, self._pending, snapshot)
        self._look_s = time.monotonic() - began
        return snapshot

    def _forget_abandoned_moves(self) -> None:
        """Forget the marks of moves that were given up, also where the marked pod is gone and only remembered."""
        while self._abandoned:
            trial = self._abandoned.pop()
            history = self._histories.get(trial)
            if history is not None and history.previous is not None:
                previous = replace(history.previous, marks=replace(history.previous.marks, move_to="", move_nodes=()))
                self._histories[trial] = replace(history, previous=previous)

    def _tell_changes(self, before: Trial | None, state: TrialState) -> None:
        pod, trial = state.pod, self._snapshot.trials[state.definition.id]
        if pod is None or before is None:
            return
        if before.steady and trial.steady and before.attempt == trial.attempt and before.cpu != trial.cpu:
            self._events.tell(pod, "Resized", f"from {before.cpu:g} to {trial.cpu:g} cores on {pod.node}")
        if trial.moves > before.moves:
            self._events.tell(pod, "Moved", f"goes on on {pod.node}, its move number {trial.moves}")

    def _age_s(self) -> float:
        """Return how old what is known of the campaign's namespace is, in seconds."""
        return self._view.age_s(self._campaign.namespace)

    def _adopted(self) -> bool:
        workflow = self._snapshot.workflow
        return workflow is not None and workflow.annotations.get(labels.ANNOTATION_ADOPTED) == workflow.uid

    def _adopt_workflow(self) -> None:
        """Mark the workflow as steered, so that the pods that follow a move wait for the controller."""
        workflow = self._snapshot.workflow
        if workflow is None or workflow.finished or self._adopted():
            return
        path = WORKFLOWS.path(self._campaign.namespace, self._campaign.workflow)
        body = {"metadata": {"uid": workflow.uid, "annotations": {labels.ANNOTATION_ADOPTED: workflow.uid}}}

        def call() -> None:
            self._view.api.patch(path, body)

        def done(failure: ApiError | None) -> None:
            if failure is not None:
                warn_once(workflow.uid, f"cannot mark workflow {workflow.name} as steered: {failure}")

        self._view.writes.submit(workflow.uid, call, done, namespace=self._campaign.namespace)


def _counts(state: TrialState) -> Counts:
    return Counts(state.moves, state.suspensions, state.history.resizes, idling_of(state), goes_on=state.goes_on)
