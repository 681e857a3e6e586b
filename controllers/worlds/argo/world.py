"""The Argo world: one campaign's trials as pods of an Argo workflow, resized in place and moved between nodes."""

import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import assert_never

from controllers.core import labels
from controllers.core.model import Action, Migrate, Node, NodeName, Phase, Place, Resize, Sample, Trial, TrialId
from controllers.core.ports import BUSY, DONE, Outcome, refused
from controllers.core.results import TrialResult
from controllers.worlds.argo import resize
from controllers.worlds.argo.api import WORKFLOWS, ApiError
from controllers.worlds.argo.deeds import Deed, Open, Recreate
from controllers.worlds.argo.doing import Doer, Tally
from controllers.worlds.argo.events import EventSink
from controllers.worlds.argo.facts import warn_once
from controllers.worlds.argo.moves import Outlook, Patience, due
from controllers.worlds.argo.outcome import trial_result
from controllers.worlds.argo.pods import MainState, PodRecord
from controllers.worlds.argo.sight import Intent, Sight, look, next_load
from controllers.worlds.argo.trials import Remembered, TrialState
from controllers.worlds.argo.view import Campaign, ClusterView, rest_s

_LOOK_EVERY_S = 0.2


class ArgoWorld:
    """The trials of one campaign. ``advance`` keeps moves going; nothing here waits for the API server.

    Args:
        view: the cluster, synced.
        campaign: one of ``view.campaigns()``.
        events: where to tell people what was done.
        patience: how long to wait for what.
    """

    can: frozenset[type[Action]] = frozenset({Resize, Migrate, Place})

    def __init__(
        self, view: ClusterView, campaign: Campaign, *, events: EventSink, patience: Patience | None = None
    ) -> None:
        self._view = view
        self._campaign = campaign
        self._events = events
        self._patience = patience or Patience()
        self._doer = Doer(view.api, view.writes, events)
        self._known: dict[TrialId, Remembered] = {}
        self._intents: dict[TrialId, Intent] = {}
        self._unmarked: set[TrialId] = set()
        self._look_s = self._rest_until = 0.0
        self._sight = look(view, campaign, {}, {})

    @property
    def finished(self) -> bool:
        """Whether the whole workflow was over, or deleted, at the last look."""
        workflow = self._sight.workflow
        return workflow is None or workflow.finished

    @property
    def failed(self) -> bool:
        """Whether the workflow had come to a bad end, or was deleted, at the last look."""
        workflow = self._sight.workflow
        return workflow is None or workflow.failed

    def advance(self, now: float) -> bool:
        """Do what is due at ``now`` seconds of the sweep's clock; return whether any trial or node has changed."""
        began = time.monotonic()
        if began < self._rest_until or self._view.age_s() > self._patience.stale:
            return False
        before, self._sight = self._sight, self._look()
        self._adopt()
        outlook = Outlook(self._sight.room, self._campaign.created_epoch_s + now, self._patience)
        for trial, state in self._sight.states.items():
            self._tell_changes(before.trials.get(trial), state)
            deed = due(state, self._doer.asked(state.pod), outlook)
            if deed is not None:
                self._begin(trial, state, deed)
        ended = time.monotonic()
        self._rest_until = ended + rest_s(ended - began)
        return (before.trials, before.nodes) != (self._sight.trials, self._sight.nodes)

    def trials(self) -> Sequence[Trial]:
        """Return every trial that Argo has begun so far."""
        return list(self._seen().trials.values())

    def trial(self, name: TrialId) -> Trial | None:
        """Return one trial."""
        return self._seen().trials.get(name)

    def nodes(self) -> Sequence[Node]:
        """Return every node with what it has for this campaign's trials: less what all other pods request."""
        return list(self._seen().nodes.values())

    def node(self, name: NodeName) -> Node | None:
        """Return one node."""
        return self._seen().nodes.get(name)

    def pod(self, trial: TrialId) -> PodRecord | None:
        """Return a trial's newest pod, None where it has none now."""
        state = self._seen().states.get(trial)
        return None if state is None else state.pod

    def objectives(self) -> Mapping[TrialId, str]:
        """Return the name of each trial's objective."""
        return {trial: state.facts.objective for trial, state in self._seen().states.items()}

    def short(self, trial: str) -> str:
        """Return the trial's id without the workflow's uid: the same in every run of the sweep."""
        return trial.removeprefix(f"{self._campaign.sweep_uid}.")

    def results(self, samples: Mapping[TrialId, Sample]) -> tuple[TrialResult, ...]:
        """Return how each trial went, in the order of submission; all have ended once ``finished``."""
        origin = self._campaign.created_epoch_s
        found = [
            trial_result(self.short(trial), state, samples.get(trial), origin)
            for trial, state in self._seen().states.items()
        ]
        return tuple(sorted(found, key=lambda result: (result.submitted_s, result.id)))

    def apply(self, action: Action) -> Outcome:
        """Take on ``action`` if the trial and its node allow it; how it fares shows in later looks."""
        if self._view.age_s() > self._patience.stale:
            return refused(f"nothing was heard from the API server for {self._view.age_s():.0f} s")
        state = self._seen().states.get(action.trial)
        if state is None or state.pod is None:
            return refused("the trial is not running")
        if isinstance(action, Migrate) and self._view.writes.overtake(state.pod.uid):
            self._drop(action.trial)
        if action.trial in self._intents or self._view.writes.busy(state.pod.uid) or state.phase is Phase.MOVING:
            return BUSY
        match action:
            case Resize():
                return self._resize(state, state.pod, action)
            case Migrate():
                return self._migrate(state, state.pod, action)
            case Place():
                return self._place(state, state.pod, action)
            case _:
                assert_never(action)

    def _resize(self, state: TrialState, pod: PodRecord, action: Resize) -> Outcome:
        if state.phase is not Phase.RUNNING:
            return refused(f"the trial is {state.phase}")
        why_not = resize.objection(pod, action.cpu, self._sight.room)
        if why_not:
            return refused(why_not)
        return self._take_on(
            action,
            pod,
            self._doer.resize(
                pod,
                action.cpu,
                lambda: resize.carry_out(self._view.api, pod, action.cpu, state.known.resizes),
                lambda: self._drop(action.trial),
            ),
        )

    def _migrate(self, state: TrialState, pod: PodRecord, action: Migrate) -> Outcome:
        if state.phase is not Phase.RUNNING or pod.main is not MainState.RUNNING or pod.deleted_at is not None:
            return refused("the trial is not running")
        if action.node == pod.node:
            return refused(f"the trial is on {action.node} already")
        if not self._adopted():
            return refused("the workflow is not marked as steered yet")
        why_not = self._sight.room.unfit(action.node, next_load(state))
        if why_not:
            return refused(why_not)
        marked = self._doer.mark_and_ask(pod, action.node, lambda: self._drop(action.trial))
        return self._take_on(action, pod, marked)

    def _place(self, state: TrialState, pod: PodRecord, action: Place) -> Outcome:
        if state.phase is not Phase.PENDING or not pod.gated:
            return refused("the trial does not wait for a place")
        why_not = "" if action.node is None else self._sight.room.unfit(action.node, pod.load)
        if why_not:
            return refused(why_not)
        node = None if action.node is None else self._sight.room.nodes[action.node]
        deed = Open(pod, node, "as its policy wants")
        begun = self._doer.carry_out(deed, _tally(state), lambda failure: self._drop_if(action.trial, failure))
        return self._take_on(action, pod, begun)

    def _take_on(self, action: Action, pod: PodRecord, begun: bool) -> Outcome:  # noqa: FBT001 - what the call before said
        if not begun:
            return BUSY
        intent = Intent.of(action, pod)
        self._intents[action.trial] = intent
        self._sight.promise(action.trial, intent, self._campaign.created_epoch_s)
        return DONE

    def _drop(self, trial: TrialId) -> None:
        self._intents.pop(trial, None)

    def _drop_if(self, trial: TrialId, failure: ApiError | None) -> None:
        if failure is not None:
            self._drop(trial)

    def _begin(self, trial: TrialId, state: TrialState, deed: Deed) -> None:
        def done(failure: ApiError | None) -> None:
            if failure is None and isinstance(deed, Recreate):
                self._unmarked.add(trial)

        self._doer.carry_out(deed, _tally(state), done)

    def _forget_marks(self) -> None:
        """Forget the marks of moves that were given up, also where the marked pod is gone and only remembered."""
        while self._unmarked:
            trial = self._unmarked.pop()
            known = self._known.get(trial)
            if known is not None and known.before is not None:
                before = replace(known.before, marks=replace(known.before.marks, move_to=""))
                self._known[trial] = replace(known, before=before)

    def _seen(self) -> Sight:
        """Return the newest sight; a tick that asks thousands of times does not look thousands of times."""
        old = time.monotonic() - self._sight.made_at > max(_LOOK_EVERY_S, rest_s(self._look_s))
        if old and self._view.version != self._sight.version:
            self._sight = self._look()
        return self._sight

    def _look(self) -> Sight:
        began = time.monotonic()
        self._forget_marks()
        sight = look(self._view, self._campaign, self._known, self._intents, self._sight)
        self._known = {trial: state.known for trial, state in sight.states.items()}
        shown = [t for t, i in list(self._intents.items()) if t not in sight.states or i.shows(sight.states[t].pod)]
        for trial in shown:
            self._drop(trial)
        self._doer.forget_all_but(frozenset(s.pod.uid for s in sight.states.values() if s.pod is not None))
        if shown:
            sight = look(self._view, self._campaign, self._known, self._intents, sight)
        self._look_s = time.monotonic() - began
        return sight

    def _tell_changes(self, before: Trial | None, state: TrialState) -> None:
        pod, trial = state.pod, self._sight.trials[state.facts.id]
        if pod is None or before is None:
            return
        if before.steady and trial.steady and before.attempt == trial.attempt and before.cpu != trial.cpu:
            self._events.tell(pod, "Resized", f"from {before.cpu:g} to {trial.cpu:g} cores on {pod.node}")
        if trial.moves > before.moves:
            self._events.tell(pod, "Moved", f"goes on on {pod.node}, its move number {trial.moves}")

    def _adopted(self) -> bool:
        workflow = self._sight.workflow
        return workflow is not None and workflow.annotations.get(labels.ANNOTATION_ADOPTED) == workflow.uid

    def _adopt(self) -> None:
        """Say on the workflow that a controller is there, so that the pods that follow a move wait for it."""
        workflow = self._sight.workflow
        if workflow is None or workflow.finished or self._adopted():
            return
        self._view.writes.submit(
            workflow.uid,
            lambda: self._note_adoption(workflow.uid),
            lambda failure: (
                warn_once(workflow.uid, f"workflow {workflow.name} can't be marked as steered: {failure}")
                if failure
                else None
            ),
        )

    def _note_adoption(self, value: str) -> None:
        campaign = self._campaign
        path = WORKFLOWS.path(campaign.namespace, campaign.workflow)
        notes = {labels.ANNOTATION_ADOPTED: value}
        self._view.api.patch(path, {"metadata": {"uid": campaign.uid, "annotations": notes}})


def _tally(state: TrialState) -> Tally:
    return Tally(state.moves, state.known.resizes)
