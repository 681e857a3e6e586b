"""The Argo world: one campaign's trials as pods of an Argo workflow, resized in place and moved between nodes."""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Final

from controllers.core import labels
from controllers.core.actions import ACTION_KINDS, Action, Migrate, Place, Resize, Stop, Suspend
from controllers.core.model import Node, NodeKind, NodeName, Phase, Sample, Trial, TrialId
from controllers.core.ports import BUSY, DONE, ComingTrial, Outcome, refused
from controllers.core.results import TrialResult
from controllers.worlds.argo.calls.api import WORKFLOWS
from controllers.worlds.argo.calls.errors import ApiError
from controllers.worlds.argo.deciding.actions import Refusal, command_for
from controllers.worlds.argo.deciding.bounded_shares import why_kept
from controllers.worlds.argo.deciding.commands import Annotate, Command, Evict, SetShare, WithdrawShare
from controllers.worlds.argo.deciding.denied_shares import DeniedShares
from controllers.worlds.argo.deciding.planner import Planner, Timeouts
from controllers.worlds.argo.meaning.attempts import Attempt
from controllers.worlds.argo.meaning.looks import Looks
from controllers.worlds.argo.meaning.node_kinds import kinds_that_come
from controllers.worlds.argo.meaning.shown import result_of
from controllers.worlds.argo.meaning.trials import TrialState, node_names
from controllers.worlds.argo.meaning.view import Campaign, ClusterView, rest_s
from controllers.worlds.argo.reading.definitions import warn_once
from controllers.worlds.argo.reading.resize_answers import answer_to
from controllers.worlds.argo.writing.events import EventSink
from controllers.worlds.argo.writing.executor import Executor
from controllers.worlds.argo.writing.runs import RunOf

_LEAVING: Final = frozenset({Phase.MOVING, Phase.SUSPENDING, Phase.STOPPING})


class ArgoWorld:
    """The trials of one campaign. ``advance`` keeps moves going; nothing here waits for the API server.

    Args:
        view: the cluster, synced.
        campaign: one of ``view.campaigns()``.
        events: where to tell people what was done.
        timeouts: how long to wait for what.
        run_of: tells the run in MLflow that an attempt shall log to.
        cluster_can: tells the actions that the cluster can carry out; they change where it is upgraded.
        hooked: tells whether a trial's program is known to have our hooks.
        ends_soon: tells whether a trial has less left to do than another attempt would take to begin.
    """

    can_at_best: frozenset[type[Action]] = frozenset(ACTION_KINDS)
    """What a world of a new enough cluster can do."""

    def __init__(  # noqa: PLR0913 - what it goes by, each named
        self,
        view: ClusterView,
        campaign: Campaign,
        *,
        events: EventSink,
        timeouts: Timeouts | None = None,
        run_of: RunOf = lambda *_, **__: "",
        cluster_can: Callable[[], frozenset[type[Action]]] | None = None,
        hooked: Callable[[TrialId], bool] = lambda _: True,
        ends_soon: Callable[[TrialId], bool] = lambda _: False,
    ) -> None:
        self._hooked = hooked
        self._ends_soon = ends_soon
        self._view = view
        self._cluster_can = cluster_can
        self._denied = DeniedShares()
        self._kept_told: set[str] = set()
        self._unread_told: set[str] = set()
        self._campaign = campaign
        self._events = events
        self._timeouts = timeouts or Timeouts()
        self._epoch_ahead_s = campaign.created_epoch_s - time.monotonic()
        self._executor = Executor(view.api, view.writes, events, run_of, self._epoch)
        self._looks = Looks(view, campaign)
        # What the last advance saw: in between, others ask for looks too, and nobody was told what these had changed.
        self._advanced_to = self._looks.last
        self._rest_until = 0.0

    @property
    def can(self) -> frozenset[type[Action]]:
        """The kinds of action that it can do as the cluster is now."""
        return self.can_at_best if self._cluster_can is None else self.can_at_best & self._cluster_can()

    @property
    def finished(self) -> bool:
        """Whether the whole workflow was over, or deleted, at the last look."""
        workflow = self._looks.last.workflow
        return workflow is None or workflow.finished

    @property
    def failed(self) -> bool:
        """Whether the workflow had come to a bad end, or was deleted, at the last look."""
        workflow = self._looks.last.workflow
        return workflow is None or workflow.failed

    def advance(self, now: float) -> bool:
        """Do what is due at ``now`` seconds of the sweep's clock; return whether any trial or node has changed."""
        began = time.monotonic()
        self._epoch_ahead_s = self._campaign.created_epoch_s + now - began
        if began < self._rest_until or self._age_s() > self._timeouts.stale:
            return False
        before = self._advanced_to
        self._advanced_to = seen = self._looks.look()
        uids = frozenset(state.attempt.uid for state in seen.states.values() if state.attempt)
        self._executor.forget_all_but(uids)
        self._denied.forget_all_but(uids)
        self._kept_told &= uids
        self._unread_told &= uids
        self._adopt_workflow()
        planner = Planner(seen.room, self._epoch(), self._timeouts, seen.grants, self._ends_soon)
        for trial, state in seen.states.items():
            self._tell_kept_share(seen.trials[trial], state.attempt)
            self._tell_unread_devices(state.attempt)
            self._tell_changes(before.trials.get(trial), seen.trials[trial], state.attempt)
            command = planner.next_command(state, self._executor.asked(state.attempt))
            if command is not None:
                self._carry_out(command, state)
        ended = time.monotonic()
        self._rest_until = ended + rest_s(ended - began)
        return (before.trials, before.nodes) != (seen.trials, seen.nodes)

    def _epoch(self) -> float:
        """Return the Unix time by the sweep's clock."""
        return time.monotonic() + self._epoch_ahead_s

    def trials(self) -> Sequence[Trial]:
        """Return every trial that Argo has begun so far."""
        return list(self._looks.current().trials.values())

    def trial(self, name: TrialId) -> Trial | None:
        """Return one trial."""
        return self._looks.current().trials.get(name)

    def to_come(self) -> Sequence[ComingTrial]:
        """Return every trial that the workflow has by its templates and Argo has not begun."""
        current = self._looks.current()
        planned = () if current.workflow is None or current.workflow.finished else current.workflow.to_come
        own = self._campaign.sweeps
        return [trial for trial in planned if trial.id not in current.trials and trial.id.rpartition(".")[0] in own]

    def nodes(self) -> Sequence[Node]:
        """Return every node with what it has for this campaign's trials: less what all other pods request."""
        return list(self._looks.current().nodes.values())

    def kinds(self) -> Sequence[NodeKind]:
        """Return the kinds of nodes that can come, one without a name among them: others may come as well."""
        began = self._campaign.created_epoch_s
        return kinds_that_come(self._view.requests(), self._view.kinds_seen, began, self._epoch())

    def node(self, name: NodeName) -> Node | None:
        """Return one node."""
        return self._looks.current().nodes.get(name)

    def attempt(self, trial: TrialId) -> Attempt | None:
        """Return a trial's newest attempt, None where it has none now."""
        state = self._looks.current().states.get(trial)
        return None if state is None else state.attempt

    def objectives(self) -> Mapping[TrialId, str]:
        """Return the name of each trial's objective, of the trials that were there at the last look."""
        # Metrics are read on another thread: a look of its own could end after a newer one, and replace it.
        return {trial: state.definition.objective for trial, state in self._looks.last.states.items()}

    def further_metrics(self) -> Mapping[TrialId, tuple[str, ...]]:
        """Return the metrics of each trial that count beside its objective, as ``objectives`` does."""
        states = self._looks.last.states.items()
        return {trial: state.definition.aims.metrics for trial, state in states if state.definition.aims}

    def short(self, trial: str) -> str:
        """Return the trial's id without the workflow's uid: the same in every run of the sweep."""
        return trial.removeprefix(f"{self._campaign.sweep_uid}.")

    def results(self, samples: Mapping[TrialId, Sample]) -> tuple[TrialResult, ...]:
        """Return how each trial went, in the order of submission; all have ended once ``finished``."""
        origin = self._campaign.created_epoch_s
        results = [
            result_of(state, self.short(trial), samples.get(trial), origin)
            for trial, state in self._looks.current().states.items()
        ]
        return tuple(sorted(results, key=lambda result: (result.submitted_s, result.id)))

    def apply(self, action: Action) -> Outcome:
        """Take on ``action`` if the trial and its nodes allow it; how it fares shows in later snapshots."""
        if self._age_s() > self._timeouts.stale:
            return refused(f"the API server has been silent for {self._age_s():.0f} s")
        seen, writes = self._looks.current(), self._view.writes
        state = seen.states.get(action.trial)
        if state is None or state.attempt is None:
            return refused("the trial is not running")
        uid = state.attempt.uid
        if isinstance(action, Migrate | Suspend | Stop) and writes.overtake(uid):
            # The next attempt starts with the share its author asked for: a resize that still waits is worth nothing.
            self._looks.drop(action.trial)
        if self._looks.pending(action.trial) or writes.busy(uid) or state.phase in _LEAVING:
            return BUSY
        command = command_for(action, state, seen, hooked=self._hooked(action.trial))
        if isinstance(command, Refusal):
            return refused(command.why)
        if isinstance(command, SetShare) and (
            why_not := self._denied.why_not(command.attempt, command.cpu, seen.room, time.monotonic())
        ):
            return refused(why_not)
        if isinstance(command, SetShare) and isinstance(action, Resize):
            action = replace(action, cpu=command.cpu)  # it may get less than was wanted
        return DONE if self._carry_out(command, state, action) else BUSY

    def _carry_out(self, command: Command, state: TrialState, action: Action | None = None) -> bool:
        """Begin ``command``, which carries ``action`` out if there is one; return whether it was begun."""
        trial = state.definition.id
        if isinstance(command, Annotate) and command.reserves:
            # Room that was chosen for a gang is no other's, from now on.
            action = Place(trial, node_names(command.reserves))

        def done(failure: ApiError | None) -> None:
            if failure is None and isinstance(command, Evict) and command.unmarked:
                self._looks.abandon_move(trial)
            if failure is not None and action is not None:
                self._looks.drop(trial)
            if failure is not None and isinstance(command, SetShare) and (answer := answer_to(failure)):
                self._denied.note(command.attempt, command.cpu, answer, self._looks.last.room, time.monotonic())

        begun = self._executor.carry_out(command, state, done)
        if begun and isinstance(command, WithdrawShare):
            attempt = command.attempt
            wanted, room = attempt.share.wanted, self._looks.last.room
            self._denied.note(attempt, wanted, command.answer, room, time.monotonic())
        if begun and action is not None:
            self._looks.take_on(action, command.attempt)
        return begun

    def _tell_kept_share(self, trial: Trial, attempt: Attempt | None) -> None:
        if attempt is None or attempt.uid in self._kept_told or not trial.steady:
            return
        if why := why_kept(attempt, self._looks.last.room.nodes):
            self._kept_told.add(attempt.uid)
            self._events.tell(attempt.lead, "ShareKept", why)
            warn_once(f"{self._campaign.uid}: shares", f"workflow {self._campaign.workflow}: {why}")

    def _tell_unread_devices(self, attempt: Attempt | None) -> None:
        if attempt is None or attempt.uid in self._unread_told or not (why := attempt.devices_unread):
            return
        self._unread_told.add(attempt.uid)
        self._events.tell(attempt.lead, "DevicesNotCounted", f"{why}; the scheduler finds its node")
        where = f"workflow {self._campaign.workflow}"
        warn_once(f"{self._campaign.uid}: devices", f"{where}: the devices of its trials are not counted: {why}")

    def _tell_changes(self, before: Trial | None, trial: Trial, attempt: Attempt | None) -> None:
        if attempt is None or before is None:
            return
        pod = attempt.lead
        if before.steady and trial.steady and before.attempt == trial.attempt and before.cpu != trial.cpu:
            self._events.tell(pod, "Resized", f"from {before.cpu:g} to {trial.cpu:g} cores on {pod.node}")
        if trial.moves > before.moves:
            self._events.tell(pod, "Moved", f"goes on on {pod.node}, its move number {trial.moves}")

    def _age_s(self) -> float:
        """Return how old what is known of the campaign's namespace is, in seconds."""
        return self._view.age_s(self._campaign.namespace)

    def _adopt_workflow(self) -> None:
        """Mark the workflow as steered, so that the pods that follow a move wait for the controller."""
        workflow = self._looks.last.workflow
        if workflow is None or workflow.finished or workflow.adopted:
            return
        path = WORKFLOWS.path(self._campaign.namespace, self._campaign.workflow)
        body = {"metadata": {"uid": workflow.uid, "annotations": {labels.ANNOTATION_ADOPTED: workflow.uid}}}

        def call() -> None:
            self._view.api.patch(path, body)

        def done(failure: ApiError | None) -> None:
            if failure is not None:
                warn_once(workflow.uid, f"cannot mark workflow {workflow.name} as steered: {failure}")

        self._view.writes.submit(workflow.uid, call, done, namespace=self._campaign.namespace)
