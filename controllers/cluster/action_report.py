"""What the controller tells of each action that a policy wanted: in its log, its metrics, and tags of MLflow runs."""

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final, assert_never

from controllers.cluster.instruments import Instruments
from controllers.cluster.logs import fields
from controllers.core.actions import Action, Assessment, Clone, Migrate, Place, Resize, Stop, Suspend, written
from controllers.core.model import Trial, TrialId
from controllers.core.ports import Outcome, OutcomeKind
from controllers.tracking.tag_boards import Compose, trial_tags
from mlflow_hooks import contract

_LOG = logging.getLogger(__name__)
RECOMMENDED_TAG: Final = "specon.recommended."
"""Prefix of the tags of a controller that only recommends, in place of ``specon.``."""
_PARENT: Final = "mlflow.parentRunId"
_PREFIX: Final = "specon."


@dataclass(frozen=True, slots=True)
class Recommendation:
    """What would have been done to a trial, and why."""

    action: Action
    reason: str


class ActionReport:
    """An action log that writes to the process's log, counts for Prometheus, and remembers what was recommended.

    Args:
        instruments: where actions are counted.
        about: what every line says of the sweep.
    """

    def __init__(self, instruments: Instruments, about: Mapping[str, str]) -> None:
        self._instruments = instruments
        self._about = about
        self._refused: dict[TrialId, tuple[type[Action], str]] = {}
        self.recommended: dict[TrialId, Recommendation] = {}

    def acted(self, now: float, action: Action, reason: str, outcome: Outcome) -> None:
        """Log and count an action and what became of it."""
        del now
        self._instruments.acted(action, outcome.kind)
        level = self._level(action, reason, outcome)
        if not _LOG.isEnabledFor(level):
            return  # thousands of vetoes may come of one decision
        kind = type(action).__name__.lower()
        # Only gangs have a node for each worker, and only trials of a search get a point.
        told = {name: None if value == () else value for name, value in written(action).items()}
        told |= {"outcome": outcome.kind, "reason": reason, "detail": outcome.detail or None}
        extra = fields(**self._about, kind=kind, **told)
        _LOG.log(level, "%s %s: %s", outcome.kind, in_words(action), reason, extra=extra)

    def _level(self, action: Action, reason: str, outcome: Outcome) -> int:
        match outcome.kind:
            case OutcomeKind.DONE:
                return logging.INFO
            case OutcomeKind.RECOMMENDED:
                known = self.recommended.get(action.trial)
                self.recommended[action.trial] = Recommendation(action, reason)
                return logging.INFO if known is None or known.action != action else logging.DEBUG
            case OutcomeKind.REFUSED:
                # What is wanted again and again is refused again and again: one warning is enough.
                known_refusal, this = self._refused.get(action.trial), (type(action), outcome.detail)
                self._refused[action.trial] = this
                return logging.DEBUG if known_refusal == this else logging.WARNING
            case OutcomeKind.BUSY | OutcomeKind.VETOED | OutcomeKind.CHANGED:
                return logging.DEBUG
            case _:
                assert_never(outcome.kind)


def in_words(action: Action) -> str:
    """Return what an action does, for people."""
    match action:
        case Resize(trial, cpu):
            return f"resize of {trial} to {cpu:.3g} cores"
        case Migrate(trial):
            return f"move of {trial} to {action.node}"
        case Place(trial, ()):
            return f"start of {trial} where the scheduler wants it"
        case Place(trial):
            return f"start of {trial} on {action.node}"
        case Suspend(trial):
            return f"suspension of {trial}"
        case Stop(trial):
            return f"stop of {trial}"
        case Clone(trial, parent):
            return f"clone of {parent} for {trial}"
        case _:
            assert_never(action)


def done_tags(parent_of: Callable[[str], str | None]) -> Compose:
    """Return what makes the tags of a controller that acts; each run is nested under its sweep's."""

    def compose(trial: Trial, assessment: Assessment | None, reason: str | None) -> dict[str, str]:
        return {**trial_tags(trial, assessment, reason), **_nested(parent_of(trial.id))}

    return compose


def recommended_tags(parent_of: Callable[[str], str | None], recommended: Mapping[TrialId, Recommendation]) -> Compose:
    """Return what makes the tags of a controller that only recommends."""

    def compose(trial: Trial, assessment: Assessment | None, _reason: str | None) -> dict[str, str]:
        wanted = recommended.get(trial.id)
        told = trial_tags(trial, assessment, wanted.reason if wanted else None)
        kept = (contract.TAG_CATEGORY, contract.TAG_GROWTH, contract.TAG_REASON, contract.TAG_OUTLOOK)
        tags = {RECOMMENDED_TAG + name.removeprefix(_PREFIX): told[name] for name in kept if name in told}
        if wanted is not None:
            tags[RECOMMENDED_TAG + "action"] = in_words(wanted.action)
        return {**tags, **_nested(parent_of(trial.id))}

    return compose


def _nested(parent: str | None) -> dict[str, str]:
    return {} if parent is None else {_PARENT: parent}
