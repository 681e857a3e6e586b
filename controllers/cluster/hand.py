"""The controller's hand: every action of a campaign passes here, is counted, logged, and done only by the leader."""

import logging
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from typing import Final

from controllers.cluster.instruments import Instruments
from controllers.cluster.logs import fields
from controllers.cluster.wrapped import Wrapped
from controllers.core.model import Action, Migrate, Place, Resize, TrialId
from controllers.core.ports import Cluster, Journal, Outcome

_LOG = logging.getLogger(__name__)
RECOMMENDED: Final = Outcome(accepted=False, detail="recommended only: this controller acts on nothing")
NOT_LEADING: Final = Outcome(accepted=False, detail="another controller leads by now")


@dataclass(frozen=True, slots=True)
class Recommendation:
    """What would have been done to a trial, and why."""

    action: Action
    reason: str


class Hand(Wrapped):
    """A cluster that acts only while ``leading``, and not at all where it is only to recommend."""

    def __init__(self, cluster: Cluster, leading: Callable[[], bool], *, recommend: bool) -> None:
        super().__init__(cluster)
        self._leading = leading
        self._recommend = recommend
        self.last: Action | None = None

    def apply(self, action: Action) -> Outcome:
        """Carry out ``action``, if this controller may."""
        self.last = action
        if self._recommend:
            return RECOMMENDED
        return self._cluster.apply(action) if self._leading() else NOT_LEADING


class ForgetfulJournal:
    """Keeps nothing: for a controller that may write nothing. It begins anew with each start."""

    def load(self) -> str | None:
        """Return no state."""

    def save(self, state: Callable[[], str], *, urgent: bool) -> None:
        """Drop ``state``."""

    def acted(self, now: float, action: Action, reason: str, outcome: Outcome) -> None:
        """Drop it."""

    def flush(self) -> None:
        """Nothing waits."""


class WatchedJournal:
    """A journal that also logs and counts what was tried, and remembers what was recommended."""

    def __init__(self, journal: Journal, hand: Hand, instruments: Instruments, about: Mapping[str, str]) -> None:
        self._journal = journal
        self._hand = hand
        self._instruments = instruments
        self._about = about
        self._refused: dict[TrialId, tuple[type[Action], str]] = {}
        self.recommended: dict[TrialId, Recommendation] = {}

    def load(self) -> str | None:
        """Return the state saved last."""
        return self._journal.load()

    def save(self, state: Callable[[], str], *, urgent: bool) -> None:
        """Keep what ``state`` returns."""
        self._journal.save(state, urgent=urgent)

    def acted(self, now: float, action: Action, reason: str, outcome: Outcome) -> None:
        """Record an action that was tried, vetoed or recommended."""
        del now
        # Not handed on: a journal of a cluster would only log it once more.
        became = self._became(action, outcome)
        self._instruments.acted(action, became)
        if became == "recommended":
            self._recommend(action, reason)
        elif became == "refused":
            self._refuse(action, reason, outcome)
        else:
            self._tell(logging.INFO if outcome.accepted else logging.DEBUG, action, became, reason, outcome)

    def _became(self, action: Action, outcome: Outcome) -> str:
        if outcome is RECOMMENDED:
            return "recommended"
        reached, self._hand.last = self._hand.last, None
        if reached is not action:
            return "vetoed"
        return "accepted" if outcome.accepted else "refused"

    def _recommend(self, action: Action, reason: str) -> None:
        known = self.recommended.get(action.trial)
        self.recommended[action.trial] = Recommendation(action, reason)
        if known is None or known.action != action:
            self._tell(logging.INFO, action, "recommended", reason, RECOMMENDED)

    def _refuse(self, action: Action, reason: str, outcome: Outcome) -> None:
        """Tell a refusal once: what is wanted again and again is refused again and again."""
        level = logging.DEBUG if outcome.busy or self._told(action, outcome) else logging.WARNING
        self._tell(level, action, "refused", reason, outcome)

    def _told(self, action: Action, outcome: Outcome) -> bool:
        """Return whether this was the last refusal of an action on the trial, and remember that it is now."""
        known, this = self._refused.get(action.trial), (type(action), outcome.detail)
        self._refused[action.trial] = this
        return known == this

    def _tell(self, level: int, action: Action, became: str, reason: str, outcome: Outcome) -> None:
        if not _LOG.isEnabledFor(level):
            return  # thousands of vetoes may come of one decision
        detail = None if outcome is RECOMMENDED else outcome.detail or None
        kind = type(action).__name__.lower()
        about = fields(**self._about, kind=kind, **asdict(action), outcome=became, reason=reason, detail=detail)
        _LOG.log(level, "%s %s: %s", became, in_words(action), reason, extra=about)


def in_words(action: Action) -> str:
    """Return what an action does, for people."""
    match action:
        case Resize(trial, cpu):
            return f"resize of {trial} to {cpu:.3g} cores"
        case Migrate(trial, node):
            return f"move of {trial} to {node}"
        case Place(trial, None):
            return f"start of {trial} where the scheduler wants it"
        case Place(trial, node):
            return f"start of {trial} on {node}"
