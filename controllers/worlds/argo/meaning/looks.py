"""The looks at one campaign, each as new as it need be, and what is remembered from one to the next."""

import time
from dataclasses import replace
from typing import Final

from controllers.core.actions import Action
from controllers.core.model import TrialId
from controllers.worlds.argo.meaning.attempts import Attempt
from controllers.worlds.argo.meaning.snapshot import CampaignSnapshot, take_snapshot
from controllers.worlds.argo.meaning.trials import PodHistory, TrialState
from controllers.worlds.argo.meaning.view import Campaign, ClusterView, rest_s

_LOOK_EVERY_S: Final = 0.2
_SHOWS_WITHIN_S: Final = 30.0
"""Seconds for which an action is shown as done that the cluster does not show."""


class Looks:
    """Takes snapshots of a campaign, and shows what was taken on as done: policies must not ask for it again.

    Args:
        view: the cluster, synced.
        campaign: one of ``view.campaigns()``.

    Attributes:
        last: the newest snapshot, however old.
    """

    def __init__(self, view: ClusterView, campaign: Campaign) -> None:
        self._view = view
        self._campaign = campaign
        self._pending: dict[TrialId, tuple[Action, str, float]] = {}
        """Each action with the uid of the attempt, and until when to wait for it, on the monotonic clock."""
        self._abandoned: set[TrialId] = set()
        self._took_s = 0.0
        self.last = take_snapshot(view, campaign, {}, {})
        # From the first look on: a pod that goes before the second one is remembered, too.
        self._histories = _histories(self.last)

    def current(self) -> CampaignSnapshot:
        """Return the newest snapshot; a tick that asks thousands of times does not take thousands of them."""
        old = time.monotonic() - self.last.taken_at > max(_LOOK_EVERY_S, rest_s(self._took_s))
        return self.look() if old and self._view.version != self.last.version else self.last

    def look(self) -> CampaignSnapshot:
        """Take a snapshot; drop the pending actions that it shows."""
        began = time.monotonic()
        self._forget_abandoned_moves()
        seen = self._taken(self.last)
        self._histories = _histories(seen)
        pending = list(self._pending.items())
        shown = [trial for trial, entry in pending if _is_shown(*entry, seen.states.get(trial))]
        for trial in shown:
            self.drop(trial)
        # Once more: until now these trials were shown as if their actions were still to come.
        self.last = self._taken(seen) if shown else seen
        self._took_s = time.monotonic() - began
        return self.last

    def pending(self, trial: TrialId) -> bool:
        """Return whether an action on ``trial`` was taken on that does not show yet."""
        return trial in self._pending

    def take_on(self, action: Action, attempt: Attempt) -> None:
        """Show ``action`` on its trial's newest attempt as done from now on."""
        self._pending[action.trial] = action, attempt.uid, time.monotonic() + _SHOWS_WITHIN_S
        self.last.include(action, self._campaign.created_epoch_s)

    def drop(self, trial: TrialId) -> None:
        """Forget what was taken on for ``trial``; from any thread."""
        self._pending.pop(trial, None)

    def abandon_move(self, trial: TrialId) -> None:
        """Take note that the mark of a trial's move is gone; from any thread."""
        self._abandoned.add(trial)

    def _taken(self, last: CampaignSnapshot) -> CampaignSnapshot:
        # The threads that carry actions out drop failed ones at any time.
        pending = {trial: action for trial, (action, *_) in list(self._pending.items())}
        return take_snapshot(self._view, self._campaign, self._histories, pending, last)

    def _forget_abandoned_moves(self) -> None:
        """Forget the marks of moves that were given up, also where the marked pod is gone and only remembered."""
        while self._abandoned:
            trial = self._abandoned.pop()
            history = self._histories.get(trial)
            if history is not None and history.previous is not None:
                lead, *others = history.previous.workers
                unmarked = replace(lead, marks=replace(lead.marks, move_to=()))
                self._histories[trial] = replace(history, previous=Attempt((unmarked, *others)))


def _histories(seen: CampaignSnapshot) -> dict[TrialId, PodHistory]:
    return {trial: state.history for trial, state in seen.states.items()}


def _is_shown(action: Action, uid: str, until: float, state: TrialState | None) -> bool:
    """Return whether a trial shows that ``action`` was carried out, or that it no longer can be."""
    attempt = None if state is None else state.attempt
    if state is None or attempt is None or attempt.uid != uid or attempt.over or time.monotonic() > until:
        return True
    return state.shows(action)
