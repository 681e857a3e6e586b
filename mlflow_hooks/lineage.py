"""A trial goes on from another's checkpoint: the first attempt that is told so takes it over, once.

The trial's own checkpoints are replaced, its points stay. Where its parent had come further, the points between are the
parent's, since they are the model's: so the history has no gap. Where it had not, the steps in between are trained
again, and logged no second time.
"""

import json
from collections.abc import Callable, Mapping
from typing import Any, Final, TypeGuard

from mlflow_hooks import contract
from mlflow_hooks.checkpoints import CHECKPOINTS, Checkpoints
from mlflow_hooks.journal import Journal, points_of
from mlflow_hooks.settings import AttemptSettings
from mlflow_hooks.state_folder import read_object, report, write_whole

TAKEN: Final = "lineage.json"
"""In a trial's folder: the lineage of the attempt that last looked for a parent's checkpoint."""


def follow_parent(
    settings: AttemptSettings,
    checkpoints: Checkpoints,
    journal: Journal,
    held: Callable[[], bool],
    before: Mapping[str, Any],
) -> None:
    """Take over the newest checkpoint of the trial's last parent, if no attempt has looked for that one before.

    Args:
        settings: of the attempt, whose trial has no other attempt now.
        checkpoints: the trial's own.
        journal: the trial's own.
        held: whether the attempt still owns the trial.
        before: hyperparameters of the attempt before.
    """
    known = read_object(settings.folder / TAKEN).get("lineage")
    if len(settings.lineage) <= (len(known) if isinstance(known, list) else 0):
        return
    parent = settings.lineage[-1]
    if settings.store or settings.workers_max > 1:
        report(f"{settings.trial_id} cannot follow {parent}: it is a gang, or keeps its checkpoints in a store")
        return
    theirs = settings.folder.with_name(f"{settings.trial_id.rpartition('.')[0]}.{parent}")
    try:
        step = checkpoints.take_over(theirs / CHECKPOINTS, held)
        if step is not None:
            journal.take_over(point for point in points_of(theirs) if point.step < step and not _is_ours(point.key))
            _note_changes(journal, step, before, settings.params)
        if held():
            write_whole(settings.folder / TAKEN, json.dumps({"lineage": settings.lineage}))
    except OSError as error:
        report(f"{settings.trial_id} could not take over the checkpoint of {parent} ({error}), and may try again")
        return
    from_where = f"at step {step} from the checkpoint of" if step is not None else "from its own checkpoint: none is in"
    report(f"{settings.trial_id} goes on {from_where} {parent}")


def _note_changes(journal: Journal, step: int, before: Mapping[str, Any], params: Mapping[str, Any]) -> None:
    """Journal the numbers among ``params`` that are others than ``before``, or once were."""
    for name, value in params.items():
        key, old = contract.METRIC_PARAM + name, before.get(name)
        if _is_number(value) and _is_number(old) and (value != old or key in journal.high_water):
            journal.note(key, 0, float(old))
            journal.note(key, max(step, journal.high_water[key] + 1), float(value))


def _is_ours(key: str) -> bool:
    return key.startswith("specon.")


def _is_number(value: Any) -> TypeGuard[float]:  # noqa: ANN401 - a hyperparameter
    return isinstance(value, int | float) and not isinstance(value, bool)
