"""The tags of a trial's run in MLflow: what was done to it, or with ``--recommend`` what would have been."""

from collections.abc import Callable, Mapping
from typing import Final

from controllers.cluster.action_report import Recommendation, in_words
from controllers.core.model import Assessment, Trial, TrialId
from controllers.tracking.tags import Compose, trial_tags
from mlflow_hooks import contract

RECOMMENDED: Final = "specon.recommended."
"""Begins the tags of a controller that only recommends; the rest of the name is that of the tag it stands for."""
_PARENT: Final = "mlflow.parentRunId"
_PREFIX: Final = "specon."


def done_tags(parent_of: Callable[[str], str | None]) -> Compose:
    """Return what composes the tags of a controller that acts; each run is nested under its sweep's."""

    def compose(trial: Trial, assessment: Assessment | None, reason: str | None) -> dict[str, str]:
        return {**trial_tags(trial, assessment, reason), **_nested(parent_of(trial.id))}

    return compose


def recommended_tags(parent_of: Callable[[str], str | None], recommended: Mapping[TrialId, Recommendation]) -> Compose:
    """Return what composes the tags of a controller that acts on nothing."""

    def compose(trial: Trial, assessment: Assessment | None, _reason: str | None) -> dict[str, str]:
        wanted = recommended.get(trial.id)
        told = trial_tags(trial, assessment, wanted.reason if wanted else None)
        kept = (contract.TAG_CATEGORY, contract.TAG_GROWTH, contract.TAG_REASON, contract.TAG_OUTLOOK)
        tags = {RECOMMENDED + name.removeprefix(_PREFIX): told[name] for name in kept if name in told}
        if wanted is not None:
            tags[RECOMMENDED + "action"] = in_words(wanted.action)
        return {**tags, **_nested(parent_of(trial.id))}

    return compose


def _nested(parent: str | None) -> dict[str, str]:
    return {} if parent is None else {_PARENT: parent}
