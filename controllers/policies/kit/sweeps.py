"""Trials by their sweep. Pure."""

from collections.abc import Iterable

from controllers.core.model import Trial


def by_sweep(trials: Iterable[Trial]) -> dict[str, list[Trial]]:
    """Return the trials of each sweep: only these can be compared."""
    found: dict[str, list[Trial]] = {}
    for trial in trials:
        found.setdefault(trial.sweep, []).append(trial)
    return found
